"""The benchmark of learned vectors: a toy run of every part, resuming, what is learned from and judged, tables."""

import json
import sys
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from small_encoder import small_encoder, text

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import report, report_vectors, vectors_cells, vectors_data, vectors_gather, vectors_learning
from maskery.errors import InputError
from maskery.vectors.encoder import Encoder

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")
numbers = count()


def pair(same):
    number = next(numbers)
    return text(number, number, 1), text(number, number if same else number + 1, 2)


def table(path, rows, head="text_a\ttext_b\tscore"):
    path.write_text("\n".join([head, *("\t".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """A folder with a model, an encoder, a text, and files of all sets."""
    folder = tmp_path_factory.mktemp("toy")
    small_encoder().model.save(folder / "mini")
    Encoder(small_encoder(seed=1)).save(folder / "minilm")
    (folder / "data").mkdir()
    for name in (*vectors_data.SETS, "STSB"):
        scores = [(number % 6 if name.startswith("STS") else number % 2) for number in range(40)]
        for part in ("dev", "train"):
            rows = [(*pair(score in (1, 4, 5)), score) for score in scores]
            table(folder / "data" / f"{name}.{part}.tsv", rows)
    table(folder / "data/ATEC.train_small.tsv", [(*pair(number % 2), number % 2) for number in range(40)])
    names = ("entailment", "neutral", "contradiction")
    rows = [(*pair(number % 3 == 0), names[number % 3]) for number in range(30)]
    table(folder / "data/OCNLI.train50k.tsv", rows, "premise\thypothesis\tlabel")
    sentences = [text(number, number, 9).capitalize() + "." for number in range(80)]
    (folder / "text.txt").write_text("\n".join(" ".join(sentences[at : at + 4]) for at in range(0, 80, 4)) + "\n")
    return folder


def flags_of(toy, out):
    paths = {"model": "mini", "minilm": "minilm", "corpus-text": "text.txt", "data": "data"}
    given = [flag for name, path in paths.items() for flag in (f"--{name}", str(toy / path))]
    given += ["--out", str(out / "cells"), "--json", str(out / "found.json"), "--threads", "1", "--seeds", "0", "1"]
    given += ["--sentences", "40", "--most", "30", "--most-train", "20", "--held-out", "6", "--length", "16"]
    return [*given, "--batch", "16", "--epochs", "1", "--simbert-epochs", "1"]


def measured_here(patch):
    """Cells are measured in this process, and two of SBERT's joins alone; the list of the cells that were."""
    found = []

    def here(_module, arguments, _threads):
        found.append(arguments[-1])
        assert vectors_learning.main(arguments) == 0

    patch.setattr(vectors_learning, "in_own_process", here)
    patch.setattr(vectors_cells, "JOINS", ("uv", "uv_difference"))
    return found


@pytest.fixture(scope="module")
def whole(toy, tmp_path_factory):
    """A run of everything: its folder, the cells in their order, the result."""
    out = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda descriptor: None)
        asked = measured_here(patch)
        assert vectors_learning.main(flags_of(toy, out)) == 0
    return out, asked, json.loads((out / "found.json").read_text(encoding="utf-8"))


def test_every_part_is_measured(whole):
    out, asked, found = whole
    assert asked[:4] == ["simcse-mean", "simcse-first_last", "simcse-0", "simcse-1"]
    assert len(asked) == len(set(asked)) == 4 + 6 + 3 + 2 + 1 + 4
    assert list(found) == ["machine", "settings", "seconds", *vectors_cells.PARTS]
    for row in found["simcse"]["sets"]:
        assert row["n"] == 30
        assert len(row["after"]["plain"]["seeds"]) == 2
        assert set(row["poolings"]) == set(vectors_cells.POOLS)
    assert found["simcse"]["fitted_on"] == 40
    assert set(found["supervised"]["sides"]) == {"before", "simcse", *vectors_cells.LOSSES}
    assert found["supervised"]["sides"]["simcse"]["BQ"] == found["simcse"]["sets"][2]["after"]["plain"]
    assert [row["join"] for row in found["sbert"]["joins"]] == ["untrained", "uv", "uv_difference"]
    assert found["sbert"]["pairs"] == 20
    assert [row["side"] for row in found["geometry"]["sides"]] == ["before", "simcse", "minilm"]
    left = {path.name for path in (out / "cells").iterdir() if path.is_dir()}
    assert left == {"encoder-simcse-0", "encoder-simcse-1"}, "runs are removed, encoders to go on from are kept"


def test_whitening_and_flow_are_fitted_twice(whole):
    model = whole[2]["whitening"]["models"]["model"]
    assert [(row["after"], row["dimensions"]) for row in model["afters"]] == [
        ("centring", 16),
        ("whitening", 16),
        ("flow", 16),
    ]
    assert model["afters"][1]["asked"]["value"] != model["afters"][1]["train"]["value"]
    for facts in model["flow"].values():
        assert facts["error"] <= 1e-4
    assert whole[2]["whitening"]["models"]["minilm"]["set"] == "STSB"


def test_simbert_searches_and_writes(whole):
    found = whole[2]["simbert"]
    assert list(found["search"]) == ["mean", "first_last", "first", "simbert"]
    for each in found["search"].values():
        assert each["n"] == each["documents"] <= 12
        assert 0 <= each["recall@1"]["value"] <= each["recall@10"]["value"] <= 1
    assert len(found["written"]) == 6
    assert sum(found["sources"].values()) == found["pairs"]
    assert {"STS-B.train.tsv", "ATEC.train_small.tsv"} <= set(found["sources"])


def test_a_stopped_benchmark_goes_on_and_other_settings_are_refused(toy, whole, tmp_path, monkeypatch, capsys):
    asked = measured_here(monkeypatch)
    (whole[0] / "cells/sbert-uv-0.json").unlink()
    assert vectors_learning.main(flags_of(toy, whole[0])) == 0
    assert asked == ["sbert-uv-0"]
    told = capsys.readouterr().err
    assert "20 cells, 1 of them to be measured" in told
    assert "sbert: 1 of 3 cells" in told
    again = json.loads((whole[0] / "found.json").read_text(encoding="utf-8"))
    assert again["sbert"] == whole[2]["sbert"], "a cell is the same when it is measured again"
    assert vectors_learning.main([*flags_of(toy, whole[0]), "--lr", "0.5"]) == 2
    assert "was measured with lr 0.0001, not 0.5" in capsys.readouterr().err
    assert vectors_learning.main([*flags_of(toy, tmp_path), "--cells", "sbert-uw-0"]) == 2
    assert "there is no such cell" in capsys.readouterr().err
    assert asked == ["sbert-uv-0"]


def test_a_part_alone_leaves_the_others_unmeasured(toy, tmp_path, monkeypatch):
    asked = measured_here(monkeypatch)
    assert vectors_learning.main([*flags_of(toy, tmp_path), "--parts", "sbert", "--cells", "sbert-untrained-0"]) == 0
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert asked == ["sbert-untrained-0"]
    assert not set(found) & set(vectors_cells.PARTS), "one that was not trained is no comparison"


def test_what_is_missing_is_told_before_anything_is_measured(toy, tmp_path, monkeypatch, capsys):
    asked = measured_here(monkeypatch)
    flags = flags_of(toy, tmp_path)
    assert vectors_learning.main([*flags, "--minilm", str(toy / "nowhere")]) == 2
    assert "--minilm: there is no" in capsys.readouterr().err
    (tmp_path / "data").mkdir()
    assert vectors_learning.main([*flags, "--data", str(tmp_path / "data")]) == 2
    assert "there is no STS-B.dev.tsv" in capsys.readouterr().err
    assert not asked


# -- what is read


def test_sentences_are_split_chosen_and_kept_in_order(toy, tmp_path):
    every = vectors_data.sentences_of(toy / "text.txt", 0)
    assert len(every) == len(set(every)) <= 80
    assert all(8 <= len(each) <= 60 and each.endswith(".") for each in every)
    some = vectors_data.sentences_of(toy / "text.txt", 20)
    assert [each for each in every if each in some] == some
    (tmp_path / "short.txt").write_text("ab.\n")
    with pytest.raises(InputError, match="0 sentences of 8 to 60 characters"):
        vectors_data.sentences_of(tmp_path / "short.txt", 0)


def test_partners_share_no_text_with_what_is_judged_or_held_out(toy):
    found = vectors_data.partners(toy / "data", 30, 6)
    judged = set(vectors_data.texts_of(vectors_data.judged_sets(toy / "data", 30).values()))
    held_out = {each for one in found.held_out for each in one}
    train = {each for one in found.train for each in one}
    assert len(found.held_out) == 6
    assert not train & judged
    assert not held_out & judged
    assert not train & held_out
    assert set(found.sources) == {*vectors_data.WHOLE, "BQ.dev.tsv", "LCQMC.dev.tsv"}
    everything = vectors_data.partners(toy / "data", 0, 6)
    assert set(everything.sources) == set(vectors_data.WHOLE), "where all is judged, nothing is left to learn from"
    with pytest.raises(InputError, match="0 pairs to learn from"):
        vectors_data.partners(toy / "data", 30, 10**6)


def test_a_text_looks_for_its_partners_among_all_others():
    asked = vectors_cells.searched([("a", "b"), ("a", "c"), ("d", "e")])
    vectors = {"a": (1, 0), "b": (1, 0.1), "c": (1, 0.3), "d": (0, 1), "e": (-1, 1)}

    class Fixed:
        def encode(self, texts):
            return np.array([vectors[each] for each in texts], dtype=np.float32)

    found = vectors_cells._recalls(Fixed(), asked)
    assert [found["n"], found["documents"]] == [5, 5]
    # a finds b alone of its two at once; b and c look for a: b finds it, c finds b; d and e find each other
    assert found["recall@1"]["value"] == pytest.approx((0.5 + 1 + 0 + 1 + 1) / 5)
    assert found["recall@10"]["value"] == 1


# -- means, differences, tables


def figure(value, spread=0.01, seed=0):
    drawn = value + spread * np.random.default_rng(seed).standard_normal(400)
    return {"value": value, "interval": [value - spread, value + spread], "n": 9, "resamples": drawn.tolist()}


def test_a_difference_is_over_the_same_draws():
    one, other = figure(0.6), figure(0.5)
    found = vectors_gather.ahead(one, other)
    assert found["value"] == pytest.approx(0.1)
    assert found["interval"] == pytest.approx([0.1, 0.1]), "the same draws move both alike"
    both = vectors_gather.mean_of([figure(0.6, seed=1), figure(0.4, seed=2)])
    assert both["value"] == pytest.approx(0.5)
    assert both["seeds"] == [0.6, 0.4]
    assert 0.5 - 0.02 < both["interval"][0] < 0.5 < both["interval"][1] < 0.5 + 0.02


def test_the_better_pooling_is_told_for_plain_and_whitened_apart():
    sets = vectors_data.SETS
    plain = {"mean": 0.5, "first_last": 0.4, "0": 0.6}
    cells = {
        f"simcse-{what}": {
            "plain": {name: figure(value) for name in sets},
            "whitened": {name: figure(0.9 - value) for name in sets},
            "fitted_on": 7,
        }
        for what, value in plain.items()
    }
    found = vectors_gather.gathered(cells)
    assert list(found) == ["simcse"]
    assert found["simcse"]["pool"] == {"plain": "mean", "whitened": "first_last"}
    row = found["simcse"]["sets"][0]
    assert row["learned"]["value"] == pytest.approx(0.1)
    assert row["learned_to_whitened"]["value"] == pytest.approx(0.1)
    assert row["whitened_after"]["value"] == pytest.approx(-0.3)
    said = report_vectors.simcse_said(found["simcse"], "en")
    assert "Before training mean is the better" in said
    assert "SimCSE is better than the model before on STS-B, ATEC, BQ, LCQMC, PAWSX." in said
    assert "Whitening on top of SimCSE does harm on STS-B" in said


def test_sentences_say_what_could_not_be_shown_and_what_is_not_reached():
    none, some = {"interval": [-0.1, 0.1]}, {"interval": [-0.3, -0.1]}
    found = {"pairs": 5, "ahead": {"cosent/cosine": {"STS-B": none, "BQ": some}}}
    said = report_vectors.supervised_said(found, "en")
    assert "CoSENT against cosine: worse on BQ." in said
    assert "CoSENT against cosine: no difference that could be shown on STS-B." in said
    assert "CoSENT 对 cosine，较差的集合：BQ。" in report_vectors.supervised_said(found, "zh")
    flow = {"before": 1.0, "fitted": 1.5, "error": 0.01}
    model = {"set": "STSB", "afters": [], "flow": {"asked": flow}}
    said = report_vectors.whitening_said({"models": {"minilm": model}}, "en")
    assert "rises in 0 of 1 fits" in said
    assert "more than the 1e-4" in said


@pytest.mark.parametrize("language", report.PAGES)
def test_tables_and_sentences_are_made_of_a_result(whole, language):
    path = whole[0] / report_vectors.FILE
    path.write_text(json.dumps(whole[2]), encoding="utf-8")
    found = report_vectors.found(whole[0])
    assert set(found) == set(report_vectors.PARTS)
    for name in report_vectors.PARTS:
        made = report.markdown(name, language, found)
        assert made != report.NOT_YET[language]
        if name in report_vectors.TABLES:
            assert len({line.replace("\\|", "").count("|") for line in made.splitlines()}) == 1, made
            assert len(made.splitlines()) > 2
        else:
            assert "{" not in made
    path.write_text(json.dumps({key: whole[2][key] for key in ("settings", "sbert")}), encoding="utf-8")
    assert set(report_vectors.found(whole[0])) == {"vectors_sbert", "vectors_sbert_said"}
    assert report_vectors.found(whole[0] / "cells") == {}


@pytest.mark.parametrize("language", report.PAGES)
def test_every_table_has_its_place(language):
    pages = "".join(path.read_text(encoding="utf-8") for path in report.PAGES[language])
    for name in report_vectors.PARTS:
        assert pages.count(f"<!-- {name} -->") == 1, name
        assert (name in report_vectors.TABLES) != (name in report_vectors.SAID)
