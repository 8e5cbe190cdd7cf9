"""The benchmark of rows longer than in training: its counting by place, that it goes on where it stopped, and what it
writes."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from small_run import corpus_in

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import longer_rows
from benchmarks.longer_rows import Study, by_stretch, markdown, summary
from maskery.compare.plan import Length

TOY = {"model.layers": 2, "model.width": 16, "model.heads": 2, "training.batch": 4, "training.eval_rows": 4}


def test_answers_are_counted_where_they_stand():
    study = Study(None, trained=4, asked=10)
    assert study.stretches == [(0, 4), (4, 8), (8, 10)]
    index = np.array([0, 3, 4, 9, 10 + 5, 10 + 7, 10 + 8])
    hits = np.array([True, False, True, True, False, True, True])
    found = by_stretch(hits, index, 2, 10, study)
    assert found[0].tolist() == [[1, 1, 1], [0, 1, 1]]
    assert found[1].tolist() == [[2, 1, 1], [0, 2, 1]]


def test_the_summary_holds_shares_and_paired_differences():
    study = Study(None, trained=4, asked=8)
    asked = [[4, 4]] * 50
    good = {"hits": [[2, 2]] * 50, "asked": asked}
    bad = {"hits": [[2, 0], [2, 1]] * 25, "asked": asked}
    found = summary(study, {"learned": [bad, bad], "nezha": [good, good]})
    assert found["asked"] == [200, 200]
    assert found["models"]["nezha"]["accuracy"] == [0.5, 0.5]
    assert found["models"]["learned"]["accuracy"] == pytest.approx([0.5, 0.125])
    low, high = found["models"]["nezha"]["from_learned"][1]
    assert low <= 0.375 <= high
    assert 0 < high - low < 0.2
    assert found["models"]["nezha"]["from_first_stretch"] == [(0, 0), (0, 0)]
    assert found["models"]["learned"]["from_first_stretch"][1][1] < -0.3
    page = markdown(found)
    assert "| positions | 0-3 | 4-7 |" in page
    assert "| nezha | 50.00 [50.00, 50.00] (50.00 50.00) |" in page


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """Two models of two seeds, trained at 12 and asked at 36."""
    folder = tmp_path_factory.mktemp("longer")
    study = Study(corpus_in(folder, documents=120), trained=12, asked=36, rows=64, size="tiny")
    plan = study.plan(["learned", "nezha"], Length(steps=3), 0, TOY)
    return study, plan, folder / "out", longer_rows.measure(study, plan, [0, 1], folder / "out")


def test_positions_alone_differ(toy):
    _, plan, _, _ = toy
    one, other = (each.recipe.plain() for each in plan.contestants)
    assert (one["model"].pop("positions"), other["model"].pop("positions")) == ("learned", "nezha")
    assert one == other
    assert (one["model"]["max_length"], one["training"]["length"]) == (36, 12)


def test_what_is_written(toy):
    _study, _, out, found = toy
    written = json.loads((out / "longer_rows.json").read_text())
    assert written["stretches"] == [[0, 12], [12, 24], [24, 36]]
    assert all(count > 0 for count in written["asked"])
    assert written["short"].keys() == {"learned", "nezha"}
    for model in written["models"].values():
        assert len(model["by_seed"]) == 2
        assert all(0 <= share <= 1 for run in model["by_seed"] for share in run)
    assert (out / "longer_rows.md").read_text() == markdown(found)
    kept = json.loads((out / "nezha" / "longer-1.json").read_text())
    assert np.array(kept["hits"]).shape == (written["rows"], 3)
    assert 0 < written["rows"] < 64, "as many as the held-out part has"


def test_it_goes_on_without_training_or_asking_again(toy, monkeypatch):
    study, plan, out, found = toy
    (out / "learned" / "longer-0.json").unlink()
    opened = []
    real = longer_rows.load
    monkeypatch.setattr(longer_rows, "load", lambda path: opened.append(path) or real(path))
    again = longer_rows.measure(study, plan, [0, 1], out)
    assert opened == [out / "learned" / "seed-0"], "the one whose answers are gone"
    assert again["models"] == found["models"]


@pytest.mark.parametrize(("option", "value"), [("--positions", "nezah"), ("--rows", "0")])
def test_bad_input_is_refused(option, value, toy, capsys, monkeypatch):
    study, _, out, _ = toy
    arguments = ["longer_rows", "--corpus", str(study.corpus.path), "--out", str(out / "x"), option, value]
    monkeypatch.setattr(sys, "argv", arguments)
    assert longer_rows.main() == 2
    assert value in capsys.readouterr().err
