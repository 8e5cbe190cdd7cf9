"""The benchmark of fine-tuning in Chinese: its sides on toy files, resuming, differences with intervals, sentences."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from small_task import examples_of, family_model

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import finetune_chinese, finetune_tfidf, report, report_finetune
from benchmarks.finetune_cells import Data
from maskery.checkpoint.load import load
from maskery.errors import InputError
from maskery.tasks.examples import Example, Examples
from maskery.tasks.resolve import Splits

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "bert"
    family_model(folder, "bert")
    return folder


def test_tfidf_is_asked_where_it_has_an_answer():
    found = finetune_chinese.places(list(finetune_chinese.TASKS), finetune_chinese.SIDES)
    asked = {task for task, side in found if side == "tfidf"}
    assert asked == {"ChnSentiCorp", "THUCNews", "TNEWS", "AFQMC", "OCNLI"}
    assert len(found) == 8 * 2 + 5


def test_the_untrained_network_differs_in_its_numbers_alone(toy, tmp_path):
    fresh = load(finetune_chinese.untrained(toy, tmp_path / "fresh", 3))
    known = load(toy)
    assert fresh.config == known.config
    assert fresh.tokenizer.vocabulary == known.tokenizer.vocabulary
    one, other = fresh.network.state_dict(), known.network.state_dict()
    assert one.keys() == other.keys()
    words = next(name for name in one if name.startswith("embeddings") and one[name].dim() == 2)
    assert not torch.equal(one[words], other[words])


def labelled(task, rows):
    fields = ("text",) if task == "classify" else ("text_a", "text_b")
    items = tuple(Example(guid=f"t-{number}", texts=texts, label=label) for number, (texts, label) in enumerate(rows))
    return Examples(task=task, fields=fields, items=items)


def test_tfidf_learns_words_and_what_two_texts_share():
    rows = [((f"{'天气很好' if number % 2 else '股票下跌'}第{number}条",), str(number % 2)) for number in range(40)]
    answers = finetune_tfidf.tfidf_answers(labelled("classify", rows[:30]), labelled("classify", rows[30:]))
    assert answers == [label for _, label in rows[30:]]
    signs = "甲乙丙丁戊己庚辛"
    pairs = [((one * 3, other * 3), str(int(one == other))) for one in signs for other in signs for _ in range(3)]
    even = [pair for pair in pairs if pair[1] == "1"] * 6 + [pair for pair in pairs if pair[1] == "0"]
    answers = finetune_tfidf.tfidf_answers(labelled("pair", even), labelled("pair", even))
    right = np.mean([one == label for one, (_, label) in zip(answers, even, strict=True)])
    assert right > 0.95, "no single text tells; only what both share does"


def test_units_of_a_text():
    assert finetune_tfidf.units("a 北京") == ["a", "北", "京", "a北", "北京"]


def test_differences_are_over_the_same_examples():
    gold = [str(number % 2) for number in range(200)]
    given = [*gold[:150], *("1" if each == "0" else "0" for each in gold[150:])]
    worse = ["1" if number < 10 and each == "0" else each for number, each in enumerate(given)]
    cells = {}
    for side, answers in (("pretrained", given), ("untrained", worse), ("tfidf", given)):
        found = finetune_chinese.judged("classify", gold, answers, ("0", "1"))
        cells["TNEWS", side] = {"rows": [9, 200], "length": 128, "seconds": 1.0} | found
    (row,) = finetune_chinese.compared(cells)
    assert row["ahead"]["untrained"]["value"] == pytest.approx(5 / 200)
    low, high = row["ahead"]["untrained"]["interval"]
    assert 0 < low < 5 / 200 < high
    whole = row["sides"]["pretrained"]["intervals"]["accuracy"]
    assert high - low < whole[1] - whole[0], "paired, the difference is surer than either figure"
    assert row["ahead"]["tfidf"] == {"value": 0.0, "interval": (0.0, 0.0)}
    found = {"finetune_chinese": {"tasks": [row]}}
    for language in report.PAGES:
        table = report.markdown("finetune_chinese", language, found)
        assert len({line.count("|") for line in table.splitlines()}) == 1
        assert "| 75.00 [" in table
        assert "| +2.50 [+" in table
    said = report_finetune.finetune_chinese_said(found["finetune_chinese"], "en")
    assert said == "Pretraining helps on TNEWS. Between it and TF-IDF no difference could be shown on TNEWS."


def test_sentences_say_where_pretraining_does_not_help():
    rows = [
        {"task": task, "ahead": {"untrained": {"interval": one}, "tfidf": {"interval": two}}}
        for task, one, two in (("A", (-0.1, 0.1), (-0.3, -0.1)), ("B", (-0.2, -0.1), (0.1, 0.2)))
    ]
    said = report_finetune.finetune_chinese_said({"tasks": rows}, "en")
    assert "Pretraining does harm on B." in said
    assert "makes no difference that could be shown on A." in said
    assert "TF-IDF beats it on A." in said
    assert "It beats TF-IDF on B." in said
    assert "不如 TF-IDF 的任务：A。" in report_finetune.finetune_chinese_said({"tasks": rows}, "zh")


def squad(examples):
    paragraphs = [
        {
            "context": each.texts[0],
            "qas": [
                {
                    "id": f"q{number}",
                    "question": each.texts[1],
                    "answers": [{"text": answer.text, "answer_start": answer.start} for answer in each.answers],
                }
            ],
        }
        for number, each in enumerate(examples)
    ]
    return json.dumps({"version": "1", "data": [{"title": "t", "paragraphs": paragraphs}]})


def test_sides_are_measured_kept_and_compared(toy, tmp_path, monkeypatch):
    for part, first in (("train", 0), ("dev", 40)):
        lines = [f"{each.label}\t{each.texts[0]}" for each in examples_of("classify", 16, first=first)]
        (tmp_path / f"toy.{part}.tsv").write_text("\n".join(["label\ttext", *lines]) + "\n")
    (tmp_path / "toy.json").write_text(squad(examples_of("qa", 20)))
    toys = {
        "TNEWS": Data(task="classify", train=("toy.train.tsv",), dev=("toy.dev.tsv",)),
        "CMRC": Data(task="qa", train=("toy.json",), together=lambda each: each.texts[0]),
    }
    monkeypatch.setattr(finetune_chinese, "TASKS", toys)
    asked = []

    def here(_module, arguments, _threads):
        asked.append(tuple(arguments[-2:]))
        assert finetune_chinese.main(arguments) == 0

    monkeypatch.setattr(finetune_chinese, "in_own_process", here)
    flags = ["--model", str(toy), "--model-name", "toy", "--data", str(tmp_path), "--out", str(tmp_path / "out")]
    flags += ["--json", str(tmp_path / "found.json"), "--epochs", "1", "--batch", "8", "--threads", "1"]
    options = finetune_chinese.parser().parse_args([*flags, "--tasks", *toys])
    finetune_chinese.run(options)
    sides = ("pretrained", "untrained")
    assert asked == [("TNEWS", "pretrained"), ("TNEWS", "untrained"), ("TNEWS", "tfidf"), *(("CMRC", s) for s in sides)]
    found = json.loads((tmp_path / "found.json").read_text())
    assert [row["task"] for row in found["tasks"]] == ["TNEWS", "CMRC"]
    assert [row["headline"] for row in found["tasks"]] == ["accuracy", "f1"]
    assert found["tasks"][0]["length"] == 40, "no more than the model reads"
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".json"}, "runs are removed"
    assert report.markdown("finetune_chinese", "zh", {"finetune_chinese": found}).count("\n") == 3
    (tmp_path / "out/TNEWS-tfidf.json").unlink()
    asked.clear()
    finetune_chinese.run(options)
    assert asked == [("TNEWS", "tfidf")]
    with pytest.raises(InputError, match=r"was measured with lr 0\.0001, not 0\.1"):
        finetune_chinese.run(finetune_chinese.parser().parse_args([*flags, "--lr", "0.1"]))


@pytest.mark.parametrize("task", ["tag", "choice"])
def test_spans_and_choices_are_judged(toy, tmp_path, monkeypatch, task):
    monkeypatch.setattr(finetune_chinese, "TASKS", {"toy": Data(task=task, train=())})
    flags = ["--model", str(toy), "--data", str(tmp_path), "--out", str(tmp_path), "--epochs", "1", "--batch", "8"]
    options = finetune_chinese.parser().parse_args([*flags, "--threads", "1"])
    splits = Splits(examples_of(task, 16), examples_of(task, 8, first=16))
    gold, given, labels, length = finetune_chinese.fine_tuned(options, "toy", "untrained", splits)
    assert length == 40
    found = finetune_chinese.judged(task, gold, given, labels)
    assert found["headline"] == {"tag": "span_f1", "choice": "accuracy"}[task]
    assert len(found["resamples"]) == 2000
    assert not list(tmp_path.iterdir()), "nothing is left behind"
