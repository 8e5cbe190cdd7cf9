"""One process trains a run at a time; the lock ends with the process that holds it."""

import os
import signal
import subprocess
import sys

import pytest
from small_run import corpus_in, run_quietly, tiny_recipe

from maskery.cli import main
from maskery.errors import ExistsError
from maskery.train.lock import LOCK, locked

FORKING = """
import os, sys, time
from pathlib import Path
from maskery.train.lock import locked
with locked(Path(sys.argv[1])):
    if not os.fork():
        print(os.getpid(), flush=True)  # by now it has let go
    time.sleep(600)
"""
HOLDER = """
import sys, time
from pathlib import Path
from maskery.train.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def holder(tmp_path):
    """Another process that holds tmp_path/run."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path / "run")], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


def test_the_second_is_refused_and_told_of_the_first(corpus, tmp_path, holder, capsys):
    recipe, run = tiny_recipe(training__steps=2), tmp_path / "run"
    with pytest.raises(ExistsError, match=f"is being trained by process {holder.pid}") as caught:
        run_quietly(recipe, corpus, run, True)
    assert f"kill {holder.pid}" in caught.value.repair
    assert caught.value.exit_code == 2
    arguments = ["pretrain", "bert", "--corpus", str(corpus.path), "--out", str(run), "--steps", "2", "--resume"]
    assert main([*arguments, "--size", "tiny"]) == 2
    assert f"process {holder.pid}" in capsys.readouterr().err
    assert [path.name for path in run.iterdir()] == [LOCK]


def test_a_killed_holder_holds_nothing(corpus, tmp_path, holder):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert (tmp_path / "run" / LOCK).exists()
    run, _ = run_quietly(tiny_recipe(training__steps=2), corpus, tmp_path / "run")
    assert len(run.metrics) == 2
    assert not (tmp_path / "run" / LOCK).exists()


def test_what_a_killed_holder_leaves_behind_holds_nothing(tmp_path):
    """Processes that make batches live on for seconds."""
    command = [sys.executable, "-c", FORKING, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        child = int(process.stdout.readline())
        with pytest.raises(ExistsError, match=str(process.pid)), locked(tmp_path / "run"):
            pass
        process.kill()
        process.wait()
        try:
            with locked(tmp_path / "run"):
                pass
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_disk_that_refuses_to_unlock_hides_no_error(tmp_path, monkeypatch):
    def refuse(path, missing_ok=False):
        raise OSError(30, os.strerror(30))

    def fail():
        with locked(tmp_path / "run"):
            monkeypatch.setattr("pathlib.Path.unlink", refuse)
            raise ValueError("the first")

    with pytest.raises(ValueError, match="the first"):
        fail()
    monkeypatch.undo()


def test_what_a_failed_start_made_is_taken_away(tmp_path):
    with locked(tmp_path / "a/b/run"):
        assert (tmp_path / "a/b/run" / LOCK).read_text() == f"{os.getpid()}\n"
    assert list(tmp_path.iterdir()) == []
    with locked(tmp_path / "a/run"):
        (tmp_path / "a/run/mine").touch()
    assert [path.name for path in (tmp_path / "a/run").iterdir()] == ["mine"]


def test_a_folder_that_was_there_stays(tmp_path):
    (tmp_path / "run").mkdir()
    with locked(tmp_path / "run"), pytest.raises(ExistsError, match=str(os.getpid())), locked(tmp_path / "run"):
        pass
    assert (tmp_path / "run").is_dir()
