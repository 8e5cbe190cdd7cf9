"""Benchmarks of chosen settings and of budgets: cells become tables, and what was measured is not measured again."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import budgets, pretrain_defaults, report, report_defaults


def cell(seed, loss, **more):
    first = {"objective": "masked_token", "loss": loss, "frequencies": 7.0, "low": -1.2, "high": -0.8}
    place = {
        "corpus": "corpus-english",
        "recipe": "bert",
        "side": "default",
        "seed": seed,
        "budget": "3m",
        "size": None,
    }
    found = {"frequencies": [first], "eval": {"masked_token/accuracy": 0.155}, "tokens": 5_000_000, "seconds": 180.0}
    return {**place, **found, **more}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_values_of_seeds_stand_side_by_side(language):
    cells = [cell(1, 6.1), cell(0, 6.0), cell(0, 6.5, side="published"), cell(0, 5.0, budget="20m", size="mini")]
    lines = report_defaults.pretrain_defaults({"cells": cells}, language)
    assert [len(line) for line in lines] == [len(report_defaults.HEADS["pretrain_defaults"][language])] * 3
    both = next(line for line in lines if "6.00, 6.10" in line)
    assert "-1.00 [-1.20, -0.80], -0.90 [-1.20, -0.80]" in both
    assert any("20m, mini" in line for line in lines)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_fine_tuning_shows_means_and_spread_and_no_side_of_the_search(language):
    place = {"model": "minilm", "set": "CoLA", "rows": 300}
    found = [
        {**place, "seed": seed, "side": side, "found": {"accuracy": 0.7, "mcc": mcc, "seconds": 9.0}}
        for side in ("finetune", "logistic", "training.lr=1e-4")
        for seed, mcc in enumerate((0.2, 0.4))
    ]
    (line,) = report_defaults.finetune_defaults({"cells": found}, language)
    assert len(line) == len(report_defaults.HEADS["finetune_defaults"][language])
    assert line[2] == "30.0 (20.0 to 40.0) MCC"
    assert line[3] == ""
    assert line[-1] == "9"
    beside = [{**each, "found": {**each["found"], "seconds": None}} for each in found]
    assert report_defaults.finetune_defaults({"cells": beside}, language)[0][-1] == "", "ran beside other work"


def test_budgets_have_a_ratio():
    found = {"cells": [{"name": "SST-2", "verb": "finetune", "budget": 60.0, "seconds": 57.0, "notes": []}]}
    for language in report.PAGES:
        (line,) = report_defaults.budgets(found, language)
        assert line[-1] == "0.95"
        assert len(line) == len(report_defaults.HEADS["budgets"][language])


def test_cells_are_measured_once_and_written_at_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    asked = []

    def measured(place, corpus, work):
        asked.append(place.seed)
        return cell(place.seed, 6.0, recipe=place.recipe, side=place.side)

    monkeypatch.setattr(pretrain_defaults, "measured", measured)
    monkeypatch.setattr(pretrain_defaults, "corpus_of", lambda language, text, work: work)
    command = ["x", "--english", "t", "--work", str(tmp_path), "--languages", "english", "--recipes", "bert"]
    for seeds in (["0"], ["0", "1"]):
        monkeypatch.setattr(sys, "argv", [*command, "--sides", "default", "--seeds", *seeds])
        pretrain_defaults.main()
    assert asked == [0, 1]
    assert [each["seed"] for each in json.loads((tmp_path / "pretrain_defaults.json").read_text())["cells"]] == [0, 1]
    assert capsys.readouterr().out.count("accuracy 15.5 %") == 3


def test_commands_of_budgets_are_typed_as_a_user_would(tmp_path, monkeypatch):
    (tmp_path / "STSB.train.tsv").touch()
    (tmp_path / "STSB.dev.tsv").touch()
    monkeypatch.setattr(budgets, "model_folder", lambda given: Path("minilm"))
    found = budgets.arguments_of(budgets.COMMANDS["STS-B"], tmp_path, tmp_path, tmp_path / "run")
    assert found[:2] == ["finetune", "minilm"]
    assert found[-2:] == ["--label", "score"]
    assert found[found.index("--budget") + 1] == "45s"
    assert len(budgets.COMMANDS) >= 10
