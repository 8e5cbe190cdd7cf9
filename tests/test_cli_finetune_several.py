"""`maskery finetune` with several trainings, and what predict and evaluate make of the folder; numbers of columns."""

from __future__ import annotations

import json

import pytest
from networks import model_of
from small_task import of_two_classes, write_tsv

from maskery.cli import main

SMALL = ("--epochs", 1, "--batch", 8, "--lr", "3e-3")


@pytest.fixture(scope="module")
def place(tmp_path_factory, no_waiting_for_the_disk):
    folder = tmp_path_factory.mktemp("several")
    model_of(pooler=True).save(folder / "model")
    (folder / "data").mkdir()
    write_tsv(folder / "data" / "train.tsv", of_two_classes(0, 32, times=6))
    write_tsv(folder / "data" / "dev.tsv", of_two_classes(100, 16, times=6))
    return folder


@pytest.fixture
def command(capsys):
    def call(*arguments):
        code = main([*map(str, arguments)])
        output = capsys.readouterr()
        return code, output.out, output.err

    return call


@pytest.fixture
def run(place, command):
    return lambda *arguments: command("finetune", place / "model", "--data", place / "data", *arguments, *SMALL)


def test_three_ends_together_predict_and_are_evaluated(place, run, command, tmp_path):
    out = tmp_path / "run"
    code, printed, told = run("--out", out, "--truncate", "fuse", "--length", 10)
    assert code == 0
    assert "training 3 of 3, head+tail" in told
    assert "the three together: accuracy" in told
    accuracy = printed.splitlines()[1].split(" = ")[1]
    code, printed, told = command("evaluate", out, "--data", place / "data", "--json")
    assert (code, json.loads(printed)["accuracy"]) == (0, pytest.approx(float(accuracy)))
    code, printed, told = command("predict", out, place / "data" / "dev.tsv", "--json")
    fused = [json.loads(line)["probabilities"]["animal"] for line in printed.splitlines()]
    ends = [out / end for end in ("head", "tail", "head+tail")]
    _, printed, _ = command("predict", *ends, place / "data" / "dev.tsv", "--json")
    assert fused == pytest.approx([json.loads(line)["probabilities"]["animal"] for line in printed.splitlines()])
    assert len(fused) == 16


def test_seeds_and_curve_are_printed_as_tables(run, tmp_path):
    out = tmp_path / "run"
    code, printed, told = run("--out", out, "--seeds", 2, "--curve")
    assert code == 0
    table = [line.split() for line in printed.splitlines()[:3]]
    assert table[0][:3] == ["examples", "accuracy", "sd"]
    assert [line[0] for line in table[1:]] == ["16", "32"]
    assert "training 4 of 4, examples-32/seed-1" in told
    code, printed, told = run("--out", out, "--seeds", 2, "--curve", "--resume", "--json")
    found = json.loads(printed)
    assert [(point["size"], point["seed"]) for point in found["learning"]] == [(16, 0), (16, 1), (32, 0), (32, 1)]
    assert (found["kept"], "already finished" in told) == ("examples-32", True)


def test_a_budget_and_adapting_go_together(run, tmp_path):
    code, _, told = run("--out", tmp_path / "run", "--adapt", 2, "--budget", "5m")
    assert code == 0
    assert "adapting: 2 steps of 32 rows" in told
    assert "all 1 epochs fit (4 steps" in told
    assert (tmp_path / "run" / "adapted" / "model.safetensors").is_file()


def test_the_model_is_looked_for_before_data_are_read(command, tmp_path):
    code, _, told = command("finetune", tmp_path / "nowhere", "--data", tmp_path / "neither", "--out", tmp_path / "run")
    assert (code, "nowhere: no such folder" in told) == (2, True)


def test_numbers_of_columns_are_kept(place, command, tmp_path):
    """Both texts look alike, so only the number tells; the other one would give other answers."""
    rows = [
        (label, " ".join(text.split()[-4:]), " ".join(text.split()[3::-1]))
        for label, text in of_two_classes(0, 24, times=6)
    ]
    train = write_tsv(tmp_path / "train.tsv", rows)
    out = tmp_path / "run"
    code, _, told = command("finetune", place / "model", "--train", train, "--text", 2, "--out", out, *SMALL)
    assert code == 0
    assert 'places = ["2"]' in (out / "task.toml").read_text()
    code, printed, told = command("predict", out, train)
    assert (code, "text = column 2 (as in the training data)" in told) == (0, True)
    alone = write_tsv(tmp_path / "alone.tsv", ([row[1]] for row in rows))
    code, again, _ = command("predict", out, alone)
    answers = [[line.split("\t")[1:] for line in text.splitlines()] for text in (printed, again)]
    assert (code, answers[0]) == (0, answers[1])


def test_a_folder_of_hugging_face_is_evaluated(place, run, command, tmp_path):
    out, plain = tmp_path / "run", tmp_path / "plain"
    assert run("--out", out, "--pool", "pooler")[0] == 0
    plain.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        if (out / name).is_file():
            (plain / name).write_bytes((out / name).read_bytes())
    told = [command("evaluate", folder, "--data", place / "data" / "dev.tsv", "--json") for folder in (out, plain)]
    assert [code for code, _, _ in told] == [0, 0], told
    assert json.loads(told[0][1])["accuracy"] == json.loads(told[1][1])["accuracy"]
    code, printed, _ = command("predict", plain, out, place / "data" / "dev.tsv")
    assert (code, len(printed.splitlines())) == (0, 17)
