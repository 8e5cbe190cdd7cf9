"""Loggers: told of everything, never in the way; TensorBoard's files read back; the pages' own loggers run."""

import json
import os
import re
import shutil
import signal
import struct
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from small_run import TINY_FLAGS, corpus_in, cut_back, run_quietly, tiny_recipe

import maskery
from maskery.cli import main
from maskery.errors import NonFiniteError, Stopped
from maskery.registry import ALL
from maskery.system import System
from maskery.train.tensorboard import TensorBoard

STEPS = 6
SHORT = {"training__steps": STEPS, "training__eval_every": 3}
PAGES = [Path(__file__).parent.parent / "docs" / page for page in ("guide/loggers.md", "zh/guide/loggers.md")]


pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"))


class Diary:
    """Writes down every call; raises where it is told to. No subclass: the protocol is enough."""

    def __init__(self, fails=None, failure=None):
        self.calls, self.lines, self.fails, self.failure = [], [], fails, failure or OSError("no network")

    def begin(self, run, recipe, step):
        self._call(("begin", run.name, recipe.name, step))

    def log(self, update, line):
        self.lines.append(dict(line))
        self._call(("log", update.step))

    def end(self, error):
        self._call(("end", error))

    def _call(self, call):
        self.calls.append(call)
        if call[: len(self.fails or ())] == self.fails:
            raise self.failure

    @property
    def kinds(self):
        return [call[0] for call in self.calls]


def test_a_logger_is_told_what_the_run_folder_has(corpus, tmp_path):
    diary = Diary()
    run, _ = run_quietly(tiny_recipe(**SHORT), corpus, tmp_path / "run", loggers=[diary])
    assert diary.calls[0] == ("begin", "run", "bert", 0)
    assert diary.calls[1:-1] == [("log", step) for step in range(1, STEPS + 1)]
    assert diary.calls[-1] == ("end", None)
    assert diary.lines == run.metrics
    assert "eval/loss" in diary.lines[2]


def test_a_line_cannot_be_changed(corpus, tmp_path):
    class Vandal(maskery.Logger):
        def log(self, update, line):
            line["loss"] = 0

    after = Diary()
    _, talk = run_quietly(tiny_recipe(**SHORT), corpus, tmp_path / "run", loggers=[Vandal(), after])
    assert "logger Vandal failed in step 1" in talk.text
    assert all(line["loss"] > 0 for line in after.lines)


@pytest.mark.parametrize(
    ("fails", "kinds"),
    [(("begin",), ["begin", "end"]), (("log", 3), ["begin", "log", "log", "log", "end"])],
    ids=["begin", "log"],
)
def test_one_that_fails_is_told_of_once_and_left_out(corpus, tmp_path, fails, kinds):
    bad, good = Diary(fails), Diary()
    run, talk = run_quietly(tiny_recipe(**SHORT), corpus, tmp_path / "run", loggers=[bad, good])
    assert bad.kinds == kinds
    assert bad.calls[-1] == ("end", bad.failure)
    assert len([line for line in talk if "logger Diary failed" in line]) == 1
    assert "left out, training goes on: OSError: no network" in talk.text
    assert good.kinds == ["begin", *["log"] * STEPS, "end"]
    assert len(run.metrics) == STEPS
    assert json.loads((tmp_path / "run/state.json").read_text())["finished"]


def test_one_that_cannot_end_is_told_of(corpus, tmp_path):
    bad, good = Diary(("end",)), Diary()
    _, talk = run_quietly(tiny_recipe(**SHORT), corpus, tmp_path / "run", loggers=[bad, good])
    assert "logger Diary failed in end: OSError" in talk.text
    assert good.calls[-1] == ("end", None)


def test_a_failure_in_its_end_is_not_told_twice(corpus, tmp_path):
    class Broken(maskery.Logger):
        def begin(self, run, recipe, step):
            raise ValueError("first")

        def end(self, error):
            raise ValueError("second")

    _, talk = run_quietly(tiny_recipe(**SHORT), corpus, tmp_path / "run", loggers=[Broken()])
    assert [line for line in talk if "Broken" in line] == [
        "logger Broken failed in begin and is left out, training goes on: ValueError: first"
    ]


def test_loggers_change_nothing(corpus, tmp_path):
    for name, loggers in {"with": [Diary(("log", 2))], "without": []}.items():
        run_quietly(tiny_recipe(**SHORT), corpus, tmp_path / name, loggers=loggers)
    assert (tmp_path / "with/model.safetensors").read_bytes() == (tmp_path / "without/model.safetensors").read_bytes()


# -- the end always comes


def test_the_end_after_a_signal_and_the_beginning_after_it(corpus, tmp_path):
    class Strike(maskery.Logger):
        def log(self, update, line):
            if update.step == 2:
                os.kill(os.getpid(), signal.SIGINT)

    diary = Diary()
    with pytest.raises(Stopped) as caught:
        run_quietly(tiny_recipe(**SHORT), corpus, tmp_path / "run", loggers=[Strike(), diary])
    assert diary.calls[-1] == ("end", caught.value)
    again = Diary()
    run_quietly(tiny_recipe(**SHORT), corpus, tmp_path / "run", True, loggers=[again])
    assert again.calls[0] == ("begin", "run", "bert", 3)
    assert again.calls[1:-1] == [("log", 4), ("log", 5), ("log", 6)]
    finished = Diary()
    run_quietly(tiny_recipe(**SHORT), corpus, tmp_path / "run", True, loggers=[finished])
    assert finished.calls == [], "nothing begins where all is done"


def test_the_end_after_an_error(corpus, tmp_path, monkeypatch):
    forward = System.forward
    monkeypatch.setattr(
        System,
        "forward",
        lambda self, batch: {name: total * float("nan") for name, total in forward(self, batch).items()},
    )
    diary = Diary()
    with pytest.raises(NonFiniteError) as caught:
        run_quietly(tiny_recipe(**SHORT), corpus, tmp_path / "run", loggers=[diary])
    assert diary.calls[1:] == [("end", caught.value)]


def test_the_end_after_an_impatient_ctrl_c(corpus, tmp_path):
    diary = Diary()
    with pytest.raises(KeyboardInterrupt):
        run_quietly(
            tiny_recipe(**SHORT), corpus, tmp_path / "run", loggers=[diary, Diary(("log", 2), KeyboardInterrupt())]
        )
    assert isinstance(diary.calls[-1][1], KeyboardInterrupt)


# -- TensorBoard


def events(folder):
    """The events of all files in the order of their making: records of length, checksum, bytes, checksum."""
    from tensorboardX.proto.event_pb2 import Event

    for file in sorted(folder.iterdir(), key=lambda path: path.name.rpartition(".")[2]):
        rest = file.read_bytes()
        while rest:
            (size,) = struct.unpack("<Q", rest[:8])
            yield Event.FromString(rest[12 : 12 + size])
            rest = rest[16 + size :]


def scalars(folder):
    """tag -> {step: value} as TensorBoard shows them: a session's start hides earlier events from its step on."""
    found = {}
    for event in events(folder):
        if event.HasField("session_log"):
            found = {tag: {s: v for s, v in line.items() if s < event.step} for tag, line in found.items()}
        for value in event.summary.value:
            if value.HasField("simple_value"):
                line = found.setdefault(value.tag, {})
                assert event.step not in line, "each step once"
                line[event.step] = value.simple_value
    return found


def check_scalars(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    found = scalars(run / "tensorboard")
    assert found.keys() == {name for line in lines for name in line} - {"step"}
    for tag, shown in found.items():
        assert shown == pytest.approx({line["step"]: line[tag] for line in lines if tag in line}, rel=1e-6), tag


def test_tensorboard_has_the_metrics_and_the_recipe(corpus, tmp_path):
    run, _ = run_quietly(tiny_recipe(**SHORT), corpus, tmp_path / "run", loggers=[TensorBoard()])
    check_scalars(run.path)
    texts = [v for event in events(run.path / "tensorboard") for v in event.summary.value if "recipe" in v.tag]
    assert len(texts) == 1
    text = texts[0].tensor.string_val[0].decode()
    assert [line.removeprefix("    ") for line in text.splitlines()] == run.recipe.toml().splitlines()


def test_tensorboard_after_a_kill(corpus, tmp_path):
    """What was written behind the checkpoint is hidden, and no file is written over."""
    recipe = tiny_recipe(**SHORT, training__save_every=1, training__keep=STEPS)
    whole, _ = run_quietly(recipe, corpus, tmp_path / "whole", loggers=[TensorBoard()])
    for step in (4, 0):
        run = cut_back(whole.path, step, tmp_path / f"run-{step}")
        shutil.copytree(whole.path / "tensorboard", run / "tensorboard")
        run_quietly(recipe, corpus, run, True, loggers=[TensorBoard()])
        assert len(list((run / "tensorboard").iterdir())) == 2
        check_scalars(run)


def command(corpus, out, *more):
    return main(
        ["pretrain", "bert", "--corpus", str(corpus.path), "--out", str(out), *TINY_FLAGS, "--steps", "3", *more]
    )


def test_the_command_line(corpus, tmp_path, capsys, monkeypatch):
    assert command(corpus, tmp_path / "run", "--log", "tensorboard", "--log", "tensorboard") == 0
    assert len(list((tmp_path / "run/tensorboard").iterdir())) == 1
    check_scalars(tmp_path / "run")
    capsys.readouterr()
    assert command(corpus, tmp_path / "two", "--log", "tensorbord") == 2
    assert "did you mean tensorboard" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    assert command(corpus, tmp_path / "two", "--log", "tensorboard") == 2
    assert 'pip install "maskery[tensorboard]"' in capsys.readouterr().err
    assert not (tmp_path / "two").exists()


def test_every_registered_logger_is_a_logger():
    assert ALL["logger"].names() == ["tensorboard"]
    for name in ALL["logger"].names():
        logger = ALL["logger"].get(name)()
        assert all(callable(getattr(logger, method)) for method in ("begin", "log", "end"))
        logger.end(None)  # begun or not


# -- the pages


class FakeService(ModuleType):
    """A library with the calls that wandb and MLflow have; each is written down under its own checks."""

    def __init__(self, name):
        super().__init__(name)
        self.numbers, self.ended, self.facts = {}, [], {}

    def init(self, *, project, id, resume, config):
        self.facts = config
        assert resume == "allow"
        assert project
        assert id
        return SimpleNamespace(log=self._log, finish=lambda exit_code: self.ended.append(exit_code))

    def _log(self, data, *, step):
        assert type(data) is dict
        self.numbers[step] = data

    def start_run(self, *, run_name):
        assert run_name

    def log_dict(self, dictionary, artifact_file):
        json.dumps(dictionary)
        self.facts = dictionary

    def log_metrics(self, metrics, *, step):
        assert all(re.fullmatch(r"[\w.\-/ ]+", name) for name in metrics)
        assert all(isinstance(value, (int, float)) for value in metrics.values())
        self.numbers[step] = {"step": step, **metrics}

    def end_run(self, status):
        self.ended.append({"FINISHED": 0, "FAILED": 1}[status])


def page_logger(page, library):
    block = re.search(rf"^```python {library}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len([line for line in block[1].splitlines() if line.strip()]) <= 13, "about ten lines"
    names = {}
    exec(block[1], names)
    return next(each for each in names.values() if maskery.Logger in getattr(each, "__bases__", ()))()


@pytest.mark.parametrize("page", PAGES, ids=["en", "zh"])
@pytest.mark.parametrize("library", ["wandb", "mlflow"])
def test_the_loggers_of_the_page(corpus, tmp_path, monkeypatch, library, page):
    service = FakeService(library)
    monkeypatch.setitem(sys.modules, library, service)
    run, talk = run_quietly(tiny_recipe(**SHORT), corpus, tmp_path / "run", loggers=[page_logger(page, library)])
    assert "failed" not in talk.text
    assert service.facts == run.recipe.plain()
    assert list(service.numbers.values()) == run.metrics
    assert service.ended == [0]
    with pytest.raises(KeyboardInterrupt):
        run_quietly(
            tiny_recipe(**SHORT),
            corpus,
            tmp_path / "other",
            loggers=[page_logger(page, library), Diary(("log", 1), KeyboardInterrupt())],
        )
    assert service.ended == [0, 1]
