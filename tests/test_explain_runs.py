"""Summaries of runs, sparklines, comparisons, and `maskery info` on runs."""

import json
import math

import pytest
from networks import model_of
from pages import check_page
from run_folders import line_of, run_folder

from maskery.cli import main
from maskery.explain.history import histories
from maskery.explain.runs import comparison, differences, sparkline, summary


def measured(step, loss, accuracy):
    return line_of(step, eval__loss=loss, eval__accuracy=accuracy, eval__masked_token__loss=loss)


LINES = [line_of(1), measured(2, 5.0, 0.1), measured(3, 4.5, 0.3), measured(4, 4.75, 0.2), line_of(5)]


def test_a_summary(tmp_path):
    found = summary(histories(run_folder(tmp_path / "run", LINES, finished=False, training__steps=9))[0])
    assert found["steps"] == {"done": 5, "of": 9}
    assert (found["finished"], found["tokens"], found["seconds"]) == (False, 500, pytest.approx(10))
    assert found["tokens_per_second"] == 50
    assert found["loss"] == {"loss": pytest.approx(5.9), "loss/masked_token": pytest.approx(5.9)}
    assert found["evaluation"]["step"] == 4
    assert found["evaluation"]["last"] == {"loss": 4.75, "accuracy": 0.2, "masked_token/loss": 4.75}
    assert found["evaluation"]["best"] == {"loss": {"step": 3, "value": 4.5}, "accuracy": {"step": 3, "value": 0.3}}
    assert found["checkpoints"] == []
    json.dumps(found, allow_nan=False)


def test_what_is_not_a_number_is_null(tmp_path):
    lines = [line_of(1, math.nan, eval__loss=math.nan), line_of(2, math.inf)]
    found = summary(histories(run_folder(tmp_path / "run", lines))[0])
    assert found["loss"]["loss"] is None
    assert found["evaluation"] == {"step": 1, "last": {"loss": None}, "best": {}}


def test_sparklines(tmp_path):
    falling = histories(run_folder(tmp_path / "a", [line_of(s) for s in range(1, 9)]))[0]
    assert sparkline(falling) == "█▇▆▅▄▃▂▁"
    flat = histories(run_folder(tmp_path / "b", [line_of(s, 2.0) for s in range(1, 200)]))[0]
    assert sparkline(flat) == "▁" * 40
    gap = histories(run_folder(tmp_path / "c", [line_of(s, [1, math.nan, 2][s - 1]) for s in (1, 2, 3)]))[0]
    assert sparkline(gap) == "▁ █"
    assert sparkline(gap, "eval/loss") == ""


def test_a_comparison(tmp_path):
    one = run_folder(tmp_path / "one", LINES)
    two = run_folder(tmp_path / "two", [line_of(1)], recipe="roberta", training__lr=0.5)
    apart = differences(histories([one, two]))
    assert apart["training.lr"] == [3e-3, 0.5]
    assert apart["objectives.next_sentence.weight"] == [1.0, None]
    assert "problem" not in apart
    page = check_page(comparison([one, two]).html())
    for told in ("one", "two", "4.5000 at step 3", "none", "training.lr", "The runs ask different questions"):
        assert told in page.text
    assert "Nothing: the recipes are the same." in comparison([one, one]).html()


def test_info_of_one_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    run = run_folder(tmp_path / "run", LINES, finished=False, training__steps=9)
    assert main(["info", str(run), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["run"]["steps"]["done"]) == ("run", 5)
    assert "family" not in found, "no model is saved yet"
    assert main(["info", str(run)]) == 0
    out = capsys.readouterr().out
    assert "5 of 9, not finished" in out
    assert "best loss 4.5000 at step 3, last 4.7500; best accuracy 30.00 % at step 3, last 20.00 %" in out
    assert "█" in out
    assert "none yet" in out


def test_info_of_a_run_has_its_model_too(tmp_path, capsys):
    run = run_folder(tmp_path / "run", [line_of(7)])
    model_of("masked_token").save(run / "checkpoints/step-7")
    assert main(["info", str(run), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["run"]["checkpoints"] == [7]
    assert found["parameters"]["total"] > 0
    assert "step-7" in found["notes"][0]


def test_info_of_a_run_before_its_first_update(tmp_path, capsys):
    assert main(["info", str(run_folder(tmp_path / "run", [], finished=False))]) == 0
    assert "0 of 40, not finished" in capsys.readouterr().out


def test_info_compares_runs_and_draws_them(tmp_path, capsys):
    one, two = run_folder(tmp_path / "one", LINES), run_folder(tmp_path / "two", LINES, training__lr=0.5)
    assert main(["info", str(one), str(two), "--html", str(tmp_path / "c.html")]) == 0
    captured = capsys.readouterr()
    assert "training.lr" in captured.out
    assert captured.err.startswith("written: ")
    check_page((tmp_path / "c.html").read_text(encoding="utf-8"))
    assert main(["info", str(one), str(two), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [run["name"] for run in found["runs"]] == ["one", "two"]
    assert found["differences"] == {"training.lr": [0.003, 0.5]}
    assert main(["info", str(one), "--html", str(tmp_path / "one.html")]) == 0
    assert "What differs" not in (tmp_path / "one.html").read_text(encoding="utf-8")


def test_keys_of_many_runs_stay_whole(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    folders = [run_folder(tmp_path / f"a-run-of-number-{n}", LINES, training__lr=0.5 + n) for n in range(5)]
    folders.append(run_folder(tmp_path / "other", LINES, training__bias_correction=True))
    assert main(["info", *map(str, folders)]) == 0
    lines = capsys.readouterr().out.splitlines()
    line = next(each for each in lines if "training.bias_correction" in each)
    assert line.split()[1:] == ["false"] * 5 + ["true"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["bert", "roberta"], "is no run folder"),
        (["run", "bert"], "is no run folder"),
        (["bert", "--html", "x.html"], "is no run folder"),
        (["run", "--html", "x.png"], "cannot be saved as .png"),
        (["run", "--html", "no/x.html"], "no such folder"),
        (["new", "--html", "x.html"], "no update yet"),
        (["run", "run", "--size", "tiny"], "leave out --size"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "told",
)
def test_info_refuses(tmp_path, monkeypatch, capsys, arguments, told):
    run_folder(tmp_path / "run", LINES)
    run_folder(tmp_path / "new", [])
    monkeypatch.chdir(tmp_path)
    assert main(["info", *arguments]) == 2
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.out == ""
    assert not list(tmp_path.glob("*.html"))
