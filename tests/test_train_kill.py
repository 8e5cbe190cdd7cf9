"""The command line under signals: killed at random moments and resumed until done, it gives the same bytes."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from processes import Command
from small_run import TINY, corpus_in, flags_of, lines_without_time

from maskery import randomness

STEPS = 50


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus")).path


def line(corpus, out, *more, settings=TINY):
    arguments = ["pretrain", "bert", "--corpus", str(corpus), "--out", str(out), *flags_of(settings)]
    return [*arguments, "--steps", str(STEPS), "--save-every", "4", *more]


def start(corpus, out, *more, settings=TINY):
    return Command(line(corpus, out, *more, settings=settings), out.with_name("said"))


def finish(command, code=0):
    found, out, err = command.end()
    assert found == code, err
    return out, err


def lines(out):
    """Updates told in the log."""
    log = out / "metrics.jsonl"
    return log.read_bytes().count(b"\n") if log.is_file() else 0


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """A run that nothing disturbed, by an interpreter of its own."""
    out = tmp_path_factory.mktemp("whole") / "run"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-m", "maskery", *line(corpus, out)], env=environment, check=True)
    return out


def assert_same(out, whole):
    for name in (
        "model.safetensors",
        "config.json",
        "tokenizer.json",
        f"checkpoints/step-{STEPS}/optimizer.safetensors",
    ):
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name
    assert lines_without_time(out) == lines_without_time(whole)
    left = {path.name for path in out.iterdir()}
    assert left == {path.name for path in whole.iterdir()}, "an interrupted write leaves nothing behind"
    assert {path.name for path in (out / "checkpoints").iterdir()} == {
        path.name for path in (whole / "checkpoints").iterdir()
    }


def test_killed_at_random_moments_and_resumed_until_done(corpus, whole, tmp_path):
    """Once while the folder is made, four times between and within updates and writes, once at the end."""
    out, hits = tmp_path / "run", 0
    steps = 1 + np.cumsum(randomness.below(randomness.keys(1, "kill", np.arange(4)), "steps", 12))
    for number, target in enumerate([0, *steps.tolist(), STEPS]):
        process = start(corpus, out, *(["--resume"] if out.exists() else []))
        process.wait_until(lambda target=target: out.exists() and lines(out) >= target)
        time.sleep(0.03 * float(randomness.uniform(randomness.key(1, "delay", number), "seconds")[0]))
        if process.alive:
            process.signal_group(signal.SIGKILL)
            hits += 1
        process.end()
    assert hits >= 4, "the run is long enough to be hit"
    _, talk = finish(start(corpus, out, "--resume"))
    assert "resumed from step-" in talk or "already finished" in talk
    assert_same(out, whole)


@pytest.mark.parametrize(
    ("number", "workers", "code", "alone"),
    [
        (signal.SIGTERM, "0", 143, True),
        (signal.SIGTERM, "2", 143, False),
        (signal.SIGTERM, "2", 143, True),
        (signal.SIGINT, "2", 130, False),
        (signal.SIGINT, "0", 130, True),
    ],
)
def test_a_signal_saves_and_stops(corpus, whole, tmp_path, number, workers, code, alone):
    """As a terminal sends it, to every process of the group, or as kill does, to one `alone`."""
    out = tmp_path / "run"
    process = start(corpus, out, "--workers", workers, "--save-every", "1000")
    assert process.wait_until(lambda: lines(out) > 3)
    process.signal(number) if alone else process.signal_group(number)
    _, talk = finish(process, code)
    assert "the state is saved" in talk
    assert "--resume" in talk
    assert "Traceback" not in talk
    assert [path.name for path in (out / "checkpoints").iterdir()] == [f"step-{lines_without_time(out)[-1]['step']}"]
    assert not (out / "model.safetensors").exists()
    finish(start(corpus, out, "--resume", "--workers", workers))
    assert_same_model(out, whole)


def assert_same_model(out, whole):
    assert (out / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert lines_without_time(out) == lines_without_time(whole)


def test_two_threads_give_the_same_bytes_again(corpus, tmp_path):
    """Wide enough that matrix products are really shared between the threads."""
    wide = TINY | {"model.width": 64, "training.batch": 32}
    more = ["--threads", "2"]
    finish(start(corpus, tmp_path / "whole", *more, settings=wide))
    process = start(corpus, tmp_path / "run", *more, settings=wide)
    assert process.wait_until(lambda: lines(tmp_path / "run") > 20)
    process.signal_group(signal.SIGKILL)
    process.end()
    finish(start(corpus, tmp_path / "run", "--resume", *more, settings=wide))
    assert_same_model(tmp_path / "run", tmp_path / "whole")
