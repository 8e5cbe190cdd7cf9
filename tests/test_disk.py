"""Disks that refuse: full at any moment, really full, read-only. An error names the place and the repair, nothing is
half-written, and what was whole before stays whole."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from crash import Effects, Refusing, contents
from small_run import TINY_FLAGS, corpus_in, lines_without_time, run_quietly, text_of, tiny_recipe, word_tokenizer

import maskery
from maskery import files
from maskery.cli import main
from maskery.corpus.store import Corpus
from maskery.errors import DiskError
from maskery.train.folder import RunFolder

REFUSALS = [errno.ENOSPC, errno.EROFS, errno.EDQUOT]
SHORT = tiny_recipe(model__layers=1, training__steps=3, training__save_every=1, training__keep=2)


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    folder = tmp_path_factory.mktemp("disk")
    (folder / "text.txt").write_text(text_of(12), encoding="utf-8")
    return folder, corpus_in(folder / "small")


def refusals_of(operation, error, start, folder, step=1):
    """(number of the first refused effect, what was raised, what is left) for every `step`-th effect."""
    counted = Effects()
    shutil.copytree(start, folder / "counted")
    with counted.watch():
        operation(folder / "counted")
    for at in range(1, len(counted.trace) + 1, step):
        place = folder / f"refused-{at}"
        shutil.copytree(start, place)
        raised = None
        try:
            with Refusing(at, error).watch():
                operation(place)
        except DiskError as told:
            raised = told
        yield at, raised, place
        shutil.rmtree(place)


def build(place):
    return Corpus.build(place / "text.txt", place / "corpus", tokenizer=word_tokenizer(), workers=0, words="none")


@pytest.mark.parametrize("error", REFUSALS, ids=errno.errorcode.get)
def test_a_corpus_build_that_is_refused_leaves_nothing(ground, tmp_path, error):
    (tmp_path / "start").mkdir()
    shutil.copy(ground[0] / "text.txt", tmp_path / "start")
    refused = 0
    for _, raised, place in refusals_of(build, error, tmp_path / "start", tmp_path):
        if raised is None:
            Corpus.open(place / "corpus").verify()
            continue
        refused += 1
        assert os.strerror(error) in raised.cause
        assert raised.where.startswith(str(place))
        assert raised.repair
        assert ("bytes are free" in raised.cause) is (error in (errno.ENOSPC, errno.EDQUOT))
        if not (place / "corpus").exists():
            assert [path.name for path in place.iterdir()] == ["text.txt"]
        else:
            Corpus.open(place / "corpus").verify()
    assert refused >= 30


def test_a_run_that_is_refused_keeps_its_checkpoints_and_goes_on(ground, tmp_path):
    """Whatever write the disk refuses first: an error, no leftovers, and with space again the same bytes."""
    _, corpus = ground
    (tmp_path / "start").mkdir()
    whole = tmp_path / "counted"
    refused = resumed = 0
    for at, raised, run in refusals_of(
        lambda run: run_quietly(SHORT, corpus, run), errno.ENOSPC, tmp_path / "start", tmp_path, step=13
    ):
        if raised is None:
            continue
        refused += 1
        assert "No space left on device" in raised.cause
        assert ".partial" not in raised.where
        steps = [step for step, _ in RunFolder(run).checkpoints()]
        if steps:
            assert f"the state after step {steps[-1]} is saved" in raised.cause
            assert maskery.load(run).report.missing == ()
            assert "--resume" in raised.repair
        assert not [path for path in run.rglob("*") if files.is_leftover(path)], at
        if refused % 3 == 0:
            resumed += 1
            run_quietly(SHORT, corpus, run, True)
            assert (run / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
            assert lines_without_time(run) == lines_without_time(whole)
    assert refused >= 14
    assert resumed >= 4


def test_a_model_that_is_refused_leaves_the_old_one(ground, tmp_path):
    run_quietly(SHORT, ground[1], tmp_path / "run")
    model = maskery.load(tmp_path / "run")
    model.save(tmp_path / "start/model")
    before = contents(tmp_path / "start", hidden=True)
    refused = 0
    for _, raised, place in refusals_of(
        lambda place: model.save(place / "model", replace=True), errno.ENOSPC, tmp_path / "start", tmp_path
    ):
        refused += raised is not None
        assert contents(place, hidden=True) == before
    assert refused >= 30


# -- real disks


class Disk:
    def __init__(self, path):
        self.path = path

    def mount(self, options):
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.path)], check=True)

    def fill(self, leave):
        free = shutil.disk_usage(self.path).free
        (self.path / "filler").write_bytes(b"x" * (free - leave))


@pytest.fixture
def disk(tmp_path):
    """A disk of its own, in memory; for this one has to be allowed to mount."""
    place = Disk(tmp_path / "disk")
    place.path.mkdir()
    try:
        place.mount("size=1m")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no right to mount a small disk here")
    yield place
    subprocess.run(["umount", str(place.path)], check=True)


def pretrain(ground, out, *more):
    arguments = ["pretrain", "bert", "--corpus", str(ground[1].path), "--out", str(out), *TINY_FLAGS]
    return main([*arguments, "--steps", "6", "--save-every", "2", *more])


@pytest.mark.parametrize("room", [0, 8_000, 60_000])
def test_a_full_disk_and_a_corpus(ground, disk, capsys, room):
    disk.fill(room)
    (ground[0] / "long.txt").write_text(text_of(600, seed=1), encoding="utf-8")
    build = ["corpus", "build", str(ground[0] / "long.txt"), "--out", str(disk.path / "corpus"), "--vocab", "300"]
    assert main(build) == 2
    err = capsys.readouterr().err
    assert f"{disk.path}/corpus: No space left on device" in err
    assert "repair: free some space on the disk" in err
    assert "Traceback" not in err
    assert [path.name for path in disk.path.iterdir()] == ["filler"]


def test_a_full_disk_and_a_run(ground, disk, capsys):
    """It ends with what it had saved; with space again the same command goes on to the same bytes."""
    room = shutil.disk_usage(disk.path).free
    assert pretrain(ground, disk.path / "whole") == 0
    used = room - shutil.disk_usage(disk.path).free
    wanted = (disk.path / "whole/model.safetensors").read_bytes()
    shutil.rmtree(disk.path / "whole")
    disk.fill(int(used * 0.6))
    capsys.readouterr()
    assert pretrain(ground, disk.path / "run") == 2
    err = capsys.readouterr().err
    assert "No space left on device" in err
    saved = re.search(r"bytes are free; the state after step (\d) is saved", err)
    assert saved
    assert "then the same command with --resume" in err
    assert "Traceback" not in err
    assert not [path for path in (disk.path / "run").rglob("*") if files.is_leftover(path)]
    (disk.path / "filler").unlink()
    assert pretrain(ground, disk.path / "run", "--resume") == 0
    assert f"resumed from step-{saved[1]}" in capsys.readouterr().err
    assert (disk.path / "run/model.safetensors").read_bytes() == wanted


def test_a_disk_that_is_read_only(ground, disk, capsys):
    disk.mount("remount,ro")
    assert main(["corpus", "build", str(ground[0] / "text.txt"), "--out", str(disk.path / "corpus")]) == 2
    assert f"{disk.path}: cannot be written to" in capsys.readouterr().err
    assert pretrain(ground, disk.path / "run") == 2
    err = capsys.readouterr().err
    assert f"{disk.path}: cannot be written to" in err
    assert "choose another --out" in err


def test_a_run_whose_disk_becomes_read_only(ground, disk, capsys):
    assert pretrain(ground, disk.path / "run") == 0
    state = json.loads((disk.path / "run/state.json").read_text())
    (disk.path / "run/state.json").write_text(json.dumps(state | {"finished": False}))
    disk.mount("remount,ro")
    capsys.readouterr()
    assert pretrain(ground, disk.path / "run", "--resume") == 2
    err = capsys.readouterr().err
    assert "cannot be written to" in err
    assert "Traceback" not in err
    assert len(RunFolder(disk.path / "run").checkpoints()) == 3


def test_a_pipe_onto_a_full_disk():
    """What is printed can be refused, too."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "maskery", "recipes"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
