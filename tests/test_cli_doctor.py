"""`maskery doctor`: what is damaged is found and is exit 2."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file
from tiny import SMALL, build

from maskery.cli import main
from maskery.cli.doctor import dependencies


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a corpus and a run."""
    folder = tmp_path_factory.mktemp("doctor")
    corpus = build(folder)
    arguments = ["--corpus", str(corpus.path), "--out", str(folder / "run"), "--steps", "2", "--batch", "2"]
    assert main(["pretrain", "bert", *arguments, "--length", "16", *SMALL]) == 0
    return folder


@pytest.fixture
def copy(made, tmp_path):
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy"


def flip(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def examine(capsys, *paths):
    code = main(["doctor", "--json", *map(str, paths)])
    return code, json.loads(capsys.readouterr().out)["folders"]


def test_the_machine(capsys):
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["machine"]["matmul_gflops"] >= 1
    assert found["machine"]["float32_products"] in ("oneDNN", "as torch chooses")
    assert found["packages"]["torch"].startswith("2.13")
    assert found["folders"] == []
    assert main(["doctor"]) == 0
    assert "cpu capability" in capsys.readouterr().out


def test_dependencies_are_those_of_the_package():
    core, extras = dependencies()
    assert {"torch", "tokenizers", "numpy", "pydantic", "typer"} <= core.keys()
    assert all(core.values())
    assert "pytest" in extras["test"]


def test_whole_folders(made, capsys):
    checkpoint = made / "run" / "checkpoints" / "step-2"
    code, found = examine(capsys, made / "corpus", made / "run", checkpoint)
    assert (code, [each["kind"] for each in found]) == (0, ["corpus", "run", "model"])
    assert all(each["whole"] for each in found)
    assert found[0]["facts"]["documents"] == 40
    assert found[1]["facts"]["checkpoints"] == 2
    assert found[1]["facts"]["finished"] == "yes"
    assert main(["doctor", str(made / "corpus")]) == 0
    out = capsys.readouterr().out
    assert "corpus, whole (documents 40, held out documents 5, " in out, out


def test_a_pickle_is_opened_on_request_only(made, tmp_path, capsys):
    model = tmp_path / "m"
    shutil.copytree(made / "run" / "checkpoints" / "step-2", model)
    torch.save(load_file(model / "model.safetensors"), model / "pytorch_model.bin")
    for name in ("model.safetensors", "manifest.json"):
        (model / name).unlink()
    assert main(["doctor", str(model)]) == 0
    assert f"{model}: model, pickle, not opened" in capsys.readouterr().out
    code, (found,) = examine(capsys, model)
    assert (code, found["whole"], found["opened"]) == (0, False, False)
    code, (found,) = examine(capsys, model, "--allow-pickle")
    assert (code, found["whole"], found["opened"]) == (0, True, True)
    (model / "pytorch_model.bin").write_bytes(b"x")
    code, (found,) = examine(capsys, model, "--allow-pickle")
    assert (code, found["whole"]) == (2, False)


def test_one_changed_byte_anywhere_is_found(copy, capsys):
    for path, name in (
        ("corpus", "tokens.bin"),
        ("corpus", "flags.bin"),
        ("run", "model.safetensors"),
        ("run", "checkpoints/step-1/optimizer.safetensors"),
    ):
        file = copy / path / name
        flip(file)
        code, (found,) = examine(capsys, copy / path)
        assert code == 2
        assert file.name in " ".join(found["problems"])
        flip(file)
        assert examine(capsys, copy / path)[0] == 0


def test_all_damage_of_a_run_is_told(copy, capsys):
    for step in (1, 2):
        flip(copy / "run" / "checkpoints" / f"step-{step}" / "model.safetensors")
    (copy / "run" / "state.json").write_text("{")
    assert main(["doctor", str(copy / "run")]) == 2
    out = capsys.readouterr().out
    assert "run, DAMAGED" in out, out
    assert all(told in out for told in ("step-1", "step-2", "state.json")), out


def test_cut_short_and_missing(copy, tmp_path, capsys):
    (copy / "corpus" / "tokens.bin").write_bytes(b"")
    (copy / "run" / "config.json").unlink()
    code, found = examine(capsys, copy / "corpus", copy / "run", tmp_path, tmp_path / "no")
    assert code == 2
    assert [each["whole"] for each in found] == [False] * 4
    assert found[2]["problems"] == ["is no corpus, no run and no model"]
    assert found[3]["problems"] == ["no such path"]
