"""The benchmarks of fine-tuning: what is measured and in which order, that both sides do the same, and what is told."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_task import examples_of, family_model, quiet, task_model

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import finetune_cells, finetune_english, finetune_sides, report, report_finetune
from benchmarks.finetune_cells import Data
from maskery.errors import InputError
from maskery.tasks.resolve import Splits

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")
EVERY_SIDE = list(finetune_sides.SIDES)


# -- what is chosen


def test_examples_are_chosen_by_key_and_stay_in_order():
    every = examples_of("classify", 50)
    some = finetune_cells.fewer(every, 20, "toy")
    numbers = [every.items.index(each) for each in some]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) == 20
    assert finetune_cells.fewer(every, 20, "toy") == some
    assert finetune_cells.fewer(every, 20, "other") != some
    assert finetune_cells.fewer(every, 0, "toy") is every
    assert set(finetune_cells.fewer(every, 10, "toy")) < set(some), "fewer are a part of more"


def test_what_belongs_together_is_not_parted():
    every = examples_of("classify", 60)
    items = tuple(replace(each, texts=(f"text {number // 3}",)) for number, each in enumerate(every))
    train, dev = finetune_cells.parted(replace(every, items=items), 0.2, "toy", lambda each: each.texts[0])
    assert len(dev) == 12
    assert len(train) + len(dev) == 60
    assert not {each.texts for each in train} & {each.texts for each in dev}


def test_a_file_is_found_by_its_name(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    (tmp_path / "one/a.tsv").write_text("")
    assert finetune_cells.file_of(tmp_path, "a.tsv") == tmp_path / "one/a.tsv"
    with pytest.raises(InputError, match=r"there is no b\.tsv"):
        finetune_cells.file_of(tmp_path, "b.tsv")
    (tmp_path / "two/a.tsv").write_text("")
    with pytest.raises(InputError, match="2 times"):
        finetune_cells.file_of(tmp_path, "a.tsv")


def test_sides_take_turns_in_being_first():
    found = finetune_english.places(["A", "B"], [0, 1], EVERY_SIDE, [0])
    assert len(found) == len(set(found)) == 2 * (5 + 3)
    assert {seed for _, seed, side in found if side.startswith("grouped")} == {0}
    firsts = [next(side for task, seed, side in found if (task, seed) == each) for each in (("A", 0), ("B", 0))]
    assert firsts == ["ours", "grouped_bfloat16"]
    assert next(side for task, seed, side in found if (task, seed) == ("A", 1)) == "trainer"


# -- cells that are made up


def cell_of(place, value, seconds, options):
    task, seed, side = place
    metrics = dict.fromkeys(finetune_english.METRICS[task], value)
    times = {"total": seconds, "training": seconds / 2, "step": 0.1, "processor": seconds}
    made = {"task": task, "seed": seed, "side": side, "settings": finetune_english.described(options)}
    made |= {"processor": "toy", "threads": 2, "alone": True, "loss": seconds / 100}
    return made | {"metrics": metrics, "rows": [100, 10], "tokens": 7, "steps": 5, "seconds": times}


def options_of(tmp_path, *flags):
    paths = ["--data", str(tmp_path), "--out", str(tmp_path / "out"), "--json", str(tmp_path / "found.json")]
    return finetune_english.parser().parse_args([*paths, "--model", str(tmp_path / "model"), *flags])


@pytest.fixture
def measured(monkeypatch):
    """Cells are made up instead of measured; the list of those that were asked for."""
    asked = []

    def measure(_module, arguments, _threads):
        options = finetune_english.parser().parse_args(arguments)
        place = (options.cell[0], int(options.cell[1]), options.cell[2])
        asked.append(place)
        value = {"ours": 0.8, "trainer": 0.78}.get(place[2], 0.7) + place[1] / 100
        seconds = {"ours": 30.0, "trainer": 60.0}.get(place[2], 40.0)
        cell = cell_of(place, value, seconds, options)
        finetune_english.path_of(options.out, place).write_text(json.dumps(cell))

    monkeypatch.setattr(finetune_english, "in_own_process", measure)
    monkeypatch.setattr(finetune_english, "require_trainer", lambda: None)
    return asked


def test_a_stopped_benchmark_goes_on_with_what_is_missing(tmp_path, measured):
    options = options_of(tmp_path, "--tasks", "SST2", "CoLA", "--seeds", "0", "1")
    finetune_english.run(options)
    assert len(measured) == 2 * (5 + 3)
    first = json.loads((tmp_path / "found.json").read_text())
    measured.clear()
    (tmp_path / "out/CoLA-1-ours.json").unlink()
    (tmp_path / "found.json").unlink()
    finetune_english.run(options)
    assert measured == [("CoLA", 1, "ours")]
    assert json.loads((tmp_path / "found.json").read_text()) == first
    with pytest.raises(InputError, match=r"was measured with lr 5e-05, not 0\.001"):
        finetune_english.run(options_of(tmp_path, "--lr", "1e-3"))


def test_a_benchmark_goes_on_from_the_written_result(tmp_path, measured):
    asked = ["--tasks", "SST2", "--seeds"]
    finetune_english.run(options_of(tmp_path, *asked, "0"))
    first = json.loads((tmp_path / "found.json").read_text())
    shutil.rmtree(tmp_path / "out")
    measured.clear()
    finetune_english.run(options_of(tmp_path, *asked, "0", "1", "--sides", "ours", "trainer"))
    assert set(measured) == {("SST2", 1, "ours"), ("SST2", 1, "trainer")}
    (row,) = json.loads((tmp_path / "found.json").read_text())["tasks"]
    assert row["seeds"][0] == first["tasks"][0]["seeds"][0]
    assert len(row["differences"]["ours"]) == 2
    measured.clear()
    finetune_english.run(options_of(tmp_path, *asked, "0", "--sides", "ours", "--anew"))
    assert measured == [("SST2", 0, "ours")]
    assert len(json.loads((tmp_path / "found.json").read_text())["tasks"][0]["differences"]["ours"]) == 2


def test_a_trial_is_no_result(tmp_path, measured, capsys):
    finetune_english.run(options_of(tmp_path, "--tasks", "RTE", "--seeds", "0", "--steps", "3"))
    assert measured
    assert not (tmp_path / "found.json").exists()
    assert "no result was written" in capsys.readouterr().err


def test_an_estimate_counts_what_is_missing(tmp_path, measured, capsys):
    finetune_english.run(options_of(tmp_path, "--tasks", "RTE", "--estimate", "3"))
    told = capsys.readouterr().err
    # 100 rows twice in batches of 32 are 7 steps of 0.1 s, beside half of the 30 s that are no training
    assert "RTE ours: 0.100 s a step, 16 s a cell, 3 missing" in told
    assert "RTE grouped: 0.100 s a step, 21 s a cell, 1 missing" in told
    assert set(measured) == {("RTE", 0, side) for side in EVERY_SIDE}
    assert not list((tmp_path / "out").glob("*.json"))


MADE = [
    (("SST2", 0, "ours"), 0.90, 10.0),
    (("SST2", 0, "trainer"), 0.91, 20.0),
    (("SST2", 0, "grouped"), 0.5, 16.0),
    (("SST2", 1, "ours"), 0.94, 14.0),
    (("SST2", 1, "trainer"), 0.91, 28.0),
    (("SST2", 2, "ours"), 0.10, 99.0),
    (("RTE", 0, "trainer"), 0.5, 1.0),
]


def made_rows(tmp_path, made=MADE):
    options = options_of(tmp_path)
    return finetune_english.compared({place: cell_of(place, *numbers, options) for place, *numbers in made})


def test_seeds_are_paired_and_those_that_lack_a_side_left_out(tmp_path):
    row, other = made_rows(tmp_path)
    assert [row["task"], other["task"], other["differences"]["ours"]] == ["SST2", "RTE", []]
    assert row["differences"]["ours"] == pytest.approx([-0.01, 0.03])
    assert row["differences"]["ours_bfloat16"] == []
    (to_trainer, to_grouped) = row["ratios"]
    assert [to_trainer["total"], to_trainer["training"], to_trainer["seeds"]] == [0.5, 0.5, [0, 1]]
    assert to_grouped["total"] == pytest.approx(10 / 16), "only the seed that has both"
    found = {"tasks": [row]}
    table = report.markdown("finetune", "en", {"finetune": found})
    assert "| **91.00** (91.00 91.00) |" in table
    assert "**+1.00** (-1.00 +3.00)" in table
    assert "| 0.2400 / 0.1200 |" in table, "the mean loss with the two seeds that both have"
    assert len({line.count("|") for line in table.splitlines()}) == 1
    table = report.markdown("finetune_time", "en", {"finetune_time": found})
    assert "| ours / Trainer | 0.50 |  |  |  |  | 24 / 48 | **0.50** | 0.50 |" in table
    assert "| ours / Trainer by length | 0.62 |" in table


@pytest.mark.parametrize("other", [{"processor": "another"}, {"threads": 1}, {"alone": False}])
def test_only_times_of_like_cells_are_compared(tmp_path, other):
    options = options_of(tmp_path)
    cells = {place: cell_of(place, *numbers, options) for place, *numbers in MADE}
    cells["SST2", 1, "trainer"] |= other
    row, _ = finetune_english.compared(cells)
    assert row["differences"]["ours"] == pytest.approx([-0.01, 0.03]), "answers are"
    assert row["ratios"][0]["seeds"] == [0]


def test_the_whole_is_the_ratio_of_the_sums(tmp_path):
    rows = made_rows(tmp_path, [*MADE, (("RTE", 0, "ours"), 0.5, 3.0)])
    pairs = report_finetune._by_pair({"tasks": rows})
    ratio, sums = report_finetune.over_all(pairs["ours", "trainer"].values(), "total")
    assert sums == [10 + 14 + 3, 20 + 28 + 1]
    assert ratio == pytest.approx(27 / 49)


def told_of(differences, ratio, pair=("ours", "trainer")):
    ratios = [{"of": pair[0], "to": pair[1], "total": ratio, "total_seconds": [ratio, 1.0]}]
    row = {"task": "RTE", "differences": {"ours": differences, "ours_bfloat16": []}, "ratios": ratios}
    return {language: report_finetune.finetune_said({"tasks": [row]}, language) for language in ("en", "zh")}


def test_sentences_say_who_is_ahead_and_who_is_slow():
    found = told_of([0.01, 0.02], 0.5)["en"]
    assert "Quality, ours (seeds: 2): ahead of Trainer with every seed on RTE;" in found
    assert "nowhere a point against us" in found
    assert "Time, ours by Trainer: 0.50, within the 0.6" in found
    assert "bfloat16" not in found
    found = told_of([-0.03, -0.01], 0.7, ("ours_bfloat16", "grouped"))
    assert "behind it with every seed on RTE;" in found["en"]
    assert "a point or more against us on RTE (-2.00)." in found["en"]
    assert "Time, ours in bfloat16 by Trainer by length: 0.70, more than the 0.6" in found["en"]
    assert "每个种子都落后的任务是 RTE；" in found["zh"]
    assert "0.70，超过我们的目标 0.6。" in found["zh"]
    assert "now ahead, now behind on RTE" in told_of([-0.01, 0.01], 0.5)["en"]


def test_the_pages_know_all_tasks_and_sides():
    assert tuple(finetune_english.TASKS) == report_finetune.TASKS
    assert finetune_sides.OURS == report_finetune.OURS
    assert all(set(words) == set(finetune_sides.SIDES) for words in report_finetune._SIDES.values())


@pytest.mark.parametrize("language", report.PAGES)
def test_what_is_not_measured_says_so(language):
    for name in report_finetune.FILES:
        assert report.markdown(name, language, {}) == report.NOT_YET[language]
        pages = [path.read_text(encoding="utf-8") for path in report.PAGES[language]]
        assert "".join(pages).count(f"<!-- {name} -->") == 1


# -- both sides


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "bert"
    family_model(folder, "bert", dropout=0.1, attention_dropout=0.1)
    return folder


def toy_cell(toy, tmp_path, task, seed=0, steps=0, batch=8):
    settings = finetune_sides.Settings(epochs=2, batch=batch, lr=3e-3, length=24)
    splits = Splits(examples_of(task, 40), examples_of(task, 16, first=40))
    folder = tmp_path / "run"
    asked = {"model": toy, "read": lambda: splits, "settings": settings, "seed": seed, "folder": folder}
    return finetune_sides.Cell(**asked, steps=steps, threads=1)


@pytest.mark.parametrize("task", ["classify", "pair", "regress"])
def test_both_sides_begin_alike_and_read_the_same_rows(toy, task):
    from transformers import AutoTokenizer

    from maskery.checkpoint.load import load
    from maskery.tasks.read.labels import labels_of

    train = examples_of(task, 12)
    labels = labels_of(train, task)
    made = task_model(load(toy), task, train, rows={"length": 7}, training={"seed": 5}, head={"dropout": 0.1})
    other = finetune_sides.begun(toy, task, len(labels), 5, 0.1).eval()
    assert other.config.hidden_dropout_prob == made.model.config.dropout == 0.1
    assert other.config.attention_probs_dropout_prob == made.model.config.attention_dropout == 0.1
    tokenizer = AutoTokenizer.from_pretrained(toy)
    rows = finetune_sides.rows_of(tokenizer, train, labels, 7)
    feed = made.feed(train, quiet)
    mine = [
        feed.rows.ids[start:stop].tolist() for start, stop in zip(feed.rows.start, feed.rows.start[1:], strict=False)
    ]
    assert [row["input_ids"] for row in rows] == mine
    assert max(map(len, mine)) == 7
    scores = made.scores(feed)
    keys = ("input_ids", "attention_mask", "token_type_ids")
    for number, row in enumerate(rows):
        with torch.no_grad():
            found = other(**{key: torch.tensor([row[key]]) for key in keys}).logits[0]
        assert found.tolist() == pytest.approx(scores[number].tolist(), abs=1e-5)


def test_trainer_reads_rows_in_our_order(toy, tmp_path):
    from maskery.checkpoint.load import load

    train = examples_of("classify", 10)
    feed = task_model(load(toy), "classify", train, training={"seed": 5, "batch": 4}).feed(train, quiet)
    steps = [feed.micro_batches(step, 0, 1, 4)[0].rows.tolist() for step in range(6)]
    rows = [{"number": number} for number in range(10)]
    found = finetune_sides.in_our_order(rows, 6, toy_cell(toy, tmp_path, "classify", seed=5, batch=4))
    assert [row["number"] for row in found] == [number for step in steps for number in step]


def test_our_side_is_measured(toy, tmp_path):
    found = finetune_sides.measured("ours", toy_cell(toy, tmp_path, "classify"))
    assert found["steps"] == 10
    assert found["rows"] == [40, 16]
    assert 0 <= found["metrics"]["accuracy"] <= 1
    assert found["seconds"]["total"] > found["seconds"]["training"] > found["seconds"]["step"] > 0
    assert not (tmp_path / "run").exists()
    assert finetune_sides.measured("ours", toy_cell(toy, tmp_path, "classify", steps=3))["steps"] == 3


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("task", ["classify", "regress"])
def test_without_dropout_both_sides_learn_the_same(tmp_path, task):
    """The same rows at every step, and the same updates: only dropout is chance."""
    family_model(tmp_path / "model", "bert", dropout=0.0, attention_dropout=0.0)
    cell = toy_cell(tmp_path / "model", tmp_path, task)
    calm = replace(cell, settings=replace(cell.settings, head_dropout=0.0, lr=3e-4))
    mine, other = (finetune_sides.measured(side, calm)["loss"] for side in ("ours", "trainer"))
    assert mine == pytest.approx(other, abs=1e-2), "Trainer's rate is one update behind"


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("task", ["classify", "regress"])
def test_trainer_is_measured_on_as_many_tokens(toy, tmp_path, task):
    mine = finetune_sides.measured("ours", toy_cell(toy, tmp_path, task))
    for side in ("ours_bfloat16", "trainer", "grouped", "grouped_bfloat16"):
        found = finetune_sides.measured(side, toy_cell(toy, tmp_path, task))
        for key in ("tokens", "steps", "rows"):
            assert found[key] == mine[key]
        assert set(found["metrics"]) == set(mine["metrics"])


def test_what_has_to_be_installed_is_said(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(finetune_sides, "find_spec", lambda name: None if name == "accelerate" else object())
    flags = ["--data", str(tmp_path), "--out", str(tmp_path / "out"), "--model", str(tmp_path)]
    assert finetune_english.main(flags) == 2
    told = capsys.readouterr().err
    assert "pip install accelerate" in told
    assert "--sides ours" in told


def test_a_cell_is_measured_and_written(toy, tmp_path, monkeypatch):
    for part, first in (("train", 0), ("dev", 40)):
        lines = [f"{each.label}\t{each.texts[0]}" for each in examples_of("classify", 24, first=first)]
        (tmp_path / f"toy.{part}.tsv").write_text("\n".join(["label\ttext", *lines]) + "\n")
    monkeypatch.setitem(
        finetune_english.TASKS, "SST2", Data(task="classify", train=("toy.train.tsv",), dev=("toy.dev.tsv",))
    )
    monkeypatch.setattr(
        finetune_english, "in_own_process", lambda _module, arguments, _threads: finetune_english.main(arguments)
    )
    flags = ["--tasks", "SST2", "--sides", "ours", "--seeds", "4", "--batch", "8", "--length", "24", "--rows", "16"]
    flags += ["--data", str(tmp_path), "--out", str(tmp_path / "out"), "--json", str(tmp_path / "found.json")]
    assert finetune_english.main([*flags, "--threads", "1", "--model", str(toy)]) == 0
    cell = json.loads((tmp_path / "out/SST2-4-ours.json").read_text())
    assert [cell["task"], cell["seed"], cell["side"], cell["rows"]] == ["SST2", 4, "ours", [16, 24]]
    (row,) = json.loads((tmp_path / "found.json").read_text())["tasks"]
    assert row["differences"] == {"ours": [], "ours_bfloat16": []}, "one side is no comparison, and is kept for later"
    assert "| SST2 | 16 / 24 |" in report.markdown("finetune", "en", {"finetune": {"tasks": [row]}})
    for name in ("finetune_said", "finetune_time"):
        assert report.markdown(name, "en", {name: {"tasks": [row]}}) == report.NOT_YET["en"]
