"""Classes of the user's own that fail, folders that are no model, full disks, and Ctrl-C in a process of its own."""

from __future__ import annotations

import errno
import json
import shutil
import signal

import pytest
from bad_tasks import GOOD, prepared, refused
from crash import Effects, Refusing
from processes import Command

from maskery.cli import main
from maskery.tasks.folder import TaskFolder
from maskery.tasks.model import TaskModel

CODE = """from types import SimpleNamespace as Row
ROWS = [Row(guid=f"r{n}", text_a="cat" if n % 2 else "mat", text_b=None, label=str(n % 2)) for n in range(8)]
class Good:
    def get_labels(self): return ["0", "1"]
    def get_train_examples(self, folder): yield from ROWS
    def get_dev_examples(self, folder): return ROWS
"""
CLASSES = {
    "no train": ("def get_labels(self): return ['0']", "own.py: the class has no get_train_examples"),
    "no labels": ("get_labels = None", "own.py: the class has no get_labels"),
    "raises": ("def get_dev_examples(self, f): return {}['x']", "own.py:8: get_dev_examples failed: KeyError: 'x'"),
    "raises in a generator": (
        "def get_train_examples(self, f): yield 1 / 0",
        "own.py:8: get_train_examples failed: ZeroDivisionError",
    ),
    "leaves": ("def get_labels(self): raise SystemExit(3)", "own.py:8: get_labels failed: SystemExit"),
    "wants more": ("def __init__(self, size): pass", "own.py: Own failed: TypeError"),
    "texts alone": ("def get_train_examples(self, f): return ['a']", "own.py: example train-0 has no text_a"),
    "dicts": ("def get_dev_examples(self, f): return [{}]", "own.py: example dev-0 has no text_a; it is of type dict"),
    "a number": ("def get_train_examples(self, f): return 7", "own.py: get_train_examples gave 7, of type int"),
    "nothing": ("def get_dev_examples(self, f): pass", "own.py: get_dev_examples gave no examples"),
    "text is a number": (
        "def get_dev_examples(self, f): return [Row(guid='a', text_a=7, label='0')]",
        "own.py: example a: the texts are of type int",
    ),
    "no label": (
        "def get_dev_examples(self, f): return [Row(guid='a', text_a='b', label=None)]",
        "own.py: example a has no label",
    ),
    "labels are a number": ("def get_labels(self): return 7", "own.py: get_labels gave 7, of type int"),
    "labels are lists": ("def get_labels(self): return [['0'], ['1']]", "own.py: get_labels: the label is a list"),
    "a label twice": ("def get_labels(self): return ['0', 1, '1']", "own.py: get_labels names '1' more than once"),
    "a label too few": ("def get_labels(self): return ['0']", "own.py (r1): the label '1' is not one of those"),
    "a label of dev alone": (
        "def get_dev_examples(self, f): return [Row(guid='a', text_a='b', label='9')]",
        "own.py (a): the label '9' is not one of those to learn",
    ),
}  # fmt: skip
FILES = {
    "raises": ("x = 1\nraise RuntimeError('no')\n", "own.py:2: import failed: RuntimeError: no"),
    "no python": ("x = 1\ndef f(:\n", "own.py:2: import failed: SyntaxError"),
    "another class": (CODE, "own.py: unknown class 'Own'"),
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prepared(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", CLASSES)
def test_a_class_of_the_users_own(case, place, capsys):
    code, told = CLASSES[case]
    base = "" if case == "no train" else "(Good)"
    (place / "own.py").write_text(f"{CODE}class Own{base}:\n    {code}\n")
    refused(capsys, told, processor="own.py:Own")
    assert not (place / "run").exists()


@pytest.mark.parametrize("case", FILES)
def test_a_file_of_the_users_own(case, place, capsys):
    code, told = FILES[case]
    (place / "own.py").write_text(code)
    refused(capsys, told, processor="own.py:Own")


def test_a_class_that_nobody_finds(place, capsys):
    refused(capsys, "--processor none.py:Own: there is no such file", processor="none.py:Own")
    refused(capsys, "--processor own.py: no file and class", processor="own.py")
    (place / "own.py").write_text(CODE)
    assert main(["finetune", "model", "--processor", "own.py:Good", "--epochs", "0.1", "--out", "run"]) == 0


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("nowhere", "nowhere: no such folder"),
        ("train.tsv", "train.tsv: is a file"),
        ("empty", "empty: no config.json here, so this is no model folder"),
        ("cut", "cut: model.safetensors has 2 bytes, the manifest says"),
        ("mute", "mute: tokenizer.json is missing"),
    ],
)
def test_a_folder_that_is_no_model(model, told, place, capsys):
    (place / "empty").mkdir()
    for name in ("cut", "mute"):
        shutil.copytree(place / "model", place / name)
    (place / "cut/model.safetensors").write_bytes(b"xx")
    for path in [*(place / "mute").glob("tokenizer*"), place / "mute/vocab.txt"]:
        path.unlink()
    refused(capsys, told, model=model, train="train.tsv", dev="dev.tsv")
    assert not (place / "run").exists()


def tuned(out, *more, epochs=2):
    flags = ("--train", "train.tsv", "--dev", "dev.tsv", "--lr", "3e-3", "--batch", "4")
    return ["finetune", "model", *flags, "--epochs", str(epochs), "--out", out, *more]


def test_a_full_disk_is_told_and_with_space_again_it_goes_on(place, capsys):
    """Whatever write the disk refuses first: an error with a repair; then --resume, or the same command, to the same
    bytes."""
    counted = Effects()
    with counted.watch():
        assert main(tuned("whole")) == 0
    wanted = (place / "whole/model.safetensors").read_bytes()
    refusals = 0
    for at in range(2, len(counted.trace), len(counted.trace) // 6):
        out = f"run-{at}"
        capsys.readouterr()
        with Refusing(at, errno.ENOSPC).watch():
            code = main(tuned(out))
        told = capsys.readouterr().err
        assert code == 2, told[-300:]
        assert "No space left on device" in told
        assert "repair: " in told
        assert "Traceback" not in told
        begun = (place / out).exists() and TaskFolder(place / out).begun
        assert main(tuned(out, *(["--resume"] if begun else []))) == 0
        assert (place / out / "model.safetensors").read_bytes() == wanted
        refusals += 1
    assert refusals >= 6


def test_ctrl_c_leaves_the_best_model_so_far(place, capsys):
    """A process of its own, stopped as a terminal stops it."""
    (place / "train.tsv").write_text(GOOD, encoding="utf-8")
    process = Command(tuned("run", epochs=3000), place / "said")
    lines = place / "run/metrics.jsonl"
    assert process.wait_until(lambda: lines.exists() and lines.read_text().count('"eval/accuracy"') > 2)
    process.signal_group(signal.SIGINT)
    code, _, told = process.end()
    assert code == 128 + signal.SIGINT, told
    assert "the same command and --resume" in told
    figures = [json.loads(line) for line in lines.read_text().splitlines()]
    state = TaskFolder(place / "run").state
    assert not state["finished"]
    assert state["best"]["value"] == max(line["eval/accuracy"] for line in figures if "eval/accuracy" in line)
    left = TaskModel.load(place / "run")
    assert main(["evaluate", "run", "--data", "dev.tsv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == state["best"]["value"]
    assert left.config.labels == ("animal", "thing")
