"""The command line under signals: killed at random moments and resumed until done, it gives the same bytes."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from small_run import TINY, corpus_in, flags_of, lines_without_time

from maskery import randomness

STEPS, PATIENCE = 50, 600


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus")).path


def start(corpus, out, *more, threads=1, settings=TINY):
    arguments = ["pretrain", "bert", "--corpus", str(corpus), "--out", str(out), *flags_of(settings)]
    return subprocess.Popen(
        [sys.executable, "-m", "maskery", *arguments, "--steps", str(STEPS), "--save-every", "4", *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        start_new_session=True,
    )


def finish(process, code=0):
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, err
    return out, err


def wait_until(process, ready):
    """Whether it came true while the process was alive."""
    end = time.monotonic() + PATIENCE
    while process.poll() is None:
        if ready():
            return True
        assert time.monotonic() < end
        time.sleep(0.002)
    return False


def lines(out):
    """Updates told in the log."""
    log = out / "metrics.jsonl"
    return log.read_bytes().count(b"\n") if log.is_file() else 0


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    finish(start(corpus, out))
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
        process = start(corpus, out, "--resume")
        wait_until(process, lambda target=target: out.exists() and lines(out) >= target)
        time.sleep(0.03 * float(randomness.uniform(randomness.key(1, "delay", number), "seconds")[0]))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            hits += 1
        process.communicate()
    assert hits >= 4, "the run is long enough to be hit"
    _, talk = finish(start(corpus, out, "--resume"))
    assert "resumed from step-" in talk or "already finished" in talk
    assert_same(out, whole)


@pytest.mark.parametrize(
    ("number", "workers", "code"), [(signal.SIGTERM, "0", 143), (signal.SIGTERM, "2", 143), (signal.SIGINT, "2", 130)]
)
def test_a_signal_saves_and_stops(corpus, whole, tmp_path, number, workers, code):
    out = tmp_path / "run"
    process = start(corpus, out, "--workers", workers, "--save-every", "1000")
    assert wait_until(process, lambda: lines(out) > 3)
    os.killpg(process.pid, number)  # as a terminal does: every process of the group hears it
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
    finish(start(corpus, tmp_path / "whole", threads=2, settings=wide))
    process = start(corpus, tmp_path / "run", threads=2, settings=wide)
    assert wait_until(process, lambda: lines(tmp_path / "run") > 20)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    finish(start(corpus, tmp_path / "run", "--resume", threads=2, settings=wide))
    assert_same_model(tmp_path / "run", tmp_path / "whole")
