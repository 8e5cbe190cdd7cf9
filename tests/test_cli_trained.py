"""`doctor` and `info` of runs that finetune and `vectors train` wrote: no false alarm, every real damage, all facts."""

from __future__ import annotations

import json
import shutil

import pytest
from networks import model_of
from tf_writer import flip

from maskery.cli import main
from maskery.cli.doctor import examine


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A fine-tuning of two seeds, and a vector training."""
    folder = tmp_path_factory.mktemp("trained")
    model_of("masked_token").save(folder / "base")
    lines = [f"{'x cat' if each % 2 else 'y mat'} sat\t{'odd' if each % 2 else 'even'}" for each in range(16)]
    (folder / "train.tsv").write_text("text\tlabel\n" + "\n".join(lines) + "\n")
    command = ["finetune", str(folder / "base"), "--epochs", "1", "--batch", "16", "--train", str(folder / "train.tsv")]
    command += ["--dev", str(folder / "train.tsv")]
    assert main([*command, "--out", str(folder / "run")]) == 0
    assert main([*command, "--out", str(folder / "runs"), "--seeds", "2"]) == 0
    (folder / "pairs.tsv").write_text("a\tb\n" + "".join(f"x cat{' sat' * each}\tthe cat\n" for each in range(4)))
    command = ["vectors", "train", str(folder / "base"), "--loss", "multiple_negatives", "--header", "yes"]
    command += ["--train", str(folder / "pairs.tsv"), "--epochs", "1", "--out", str(folder / "vrun")]
    assert main(command) == 0
    return folder


@pytest.mark.parametrize("name", ["run", "runs", "vrun"])
def test_whole_runs_are_whole(made, name):
    found = examine(made / name)
    assert found.problems == []
    assert found.kind == ("vector training" if name == "vrun" else "fine-tuning")
    assert found.facts["finished"] == "yes"


@pytest.mark.parametrize(
    "file",
    [
        "run/model.safetensors",
        "run/checkpoints/step-1/weights.safetensors",
        "run/checkpoints/step-1/optimizer.safetensors",
        "run/task.toml",
        "run/state.json",
        "runs/seed-1/model.safetensors",
        "vrun/model.safetensors",
        "vrun/checkpoints/step-1/weights.safetensors",
        "vrun/tokenizer.json",
    ],
)
def test_damage_is_found(made, tmp_path, file):
    name = file.partition("/")[0]
    shutil.copytree(made / name, tmp_path / name)
    flip(tmp_path / file, 3)
    assert examine(tmp_path / name).problems
    (tmp_path / file).unlink()
    if not file.endswith("state.json"):
        assert examine(tmp_path / name).problems, "and where it is missing"


def test_info_shows_what_was_trained_and_how_well(made, capsys, tmp_path):
    assert main(["info", str(made / "run"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["trained"]
    assert (facts["task"], facts["labels"], facts["base"]) == ("classify", ["even", "odd"], str(made / "base"))
    assert (facts["examples"], facts["evaluation"]["examples"]) == (16, 16)
    saved = json.loads((made / "run" / "evaluation.json").read_text())
    assert facts["evaluation"]["metrics"]["accuracy"]["value"] == saved["accuracy"]
    assert {"epochs", "lr", "batch_size", "max_length", "pool", "seed"} <= set(facts["settings"])
    assert main(["info", str(made / "runs")]) == 0
    shown = capsys.readouterr().out
    assert "seed-0, seed-1; kept: " in shown
    assert "2: even, odd" in shown
    assert main(["info", str(made / "vrun")]) == 0
    shown = capsys.readouterr().out
    assert "multiple_negatives" in shown
    assert "not measured" in shown


@pytest.mark.parametrize("name", ["run", "runs", "vrun"])
def test_info_draws_them(made, name, tmp_path, capsys):
    assert main(["info", str(made / name), "--html", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert ("accuracy" in page) == (name != "vrun")
    assert "<svg" in page
