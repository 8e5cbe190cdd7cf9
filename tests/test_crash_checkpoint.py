"""A crash at every effect on the file system while checkpoints and models are written: what was whole still opens."""

import json
import os
from types import SimpleNamespace

import pytest
import torch
from crash import contents, crashes_of
from small_model import small_recipe
from small_run import word_tokenizer

import maskery
from maskery import files
from maskery.checkpoint.folder import save_into
from maskery.checkpoint.model import Model
from maskery.errors import CheckpointError
from maskery.system import System
from maskery.train.config import OPTIMIZERS
from maskery.train.folder import RunFolder
from maskery.train.run import _open_folder

RECIPE = small_recipe("bert", model__layers=1, model__max_length=16, training__length=16)
TOKENIZER = word_tokenizer()
CORPUS = SimpleNamespace(fingerprint="c" * 64, path="corpus")
STATE = {"step": 0, "corpus": CORPUS.fingerprint, "finished": False}


class Weights:
    """A system whose every weight is `number`, so that a loaded model tells which save it is from."""

    def __init__(self, number):
        self.number = number
        self.system = System(RECIPE, TOKENIZER.vocabulary)
        with torch.no_grad():
            for parameter in self.system.parameters():
                parameter.fill_(float(number))
        self.optimizer = OPTIMIZERS.get("adamw")(self.system.named_parameters(), RECIPE.training)

    def save(self, run, step=None, keep=2):
        state = {"step": step or self.number, "corpus": CORPUS.fingerprint, "tokens": 0}
        RunFolder(run).save(self.system, self.optimizer.state(), TOKENIZER, state, keep)

    def finish(self, run):
        save_into(run, self.system.network, self.system.heads, TOKENIZER, lambda text: None)
        RunFolder(run).write_state({**STATE, "finished": True})

    def model(self):
        return Model(self.system.network, self.system.heads, TOKENIZER)


def number_of(path, known={}):  # noqa: B006
    """Which save a folder's model is from; every tensor of it is from the same. Most crashes leave a folder like the
    one before, which is not opened again."""
    if (seen := contents(path)) not in known:
        model = maskery.load(path)
        found = {float(value) for each in model.state_dict().values() for value in (each.min(), each.max())}
        assert len(found) == 1, "weights of two saves are mixed"
        assert model.report.missing == ()
        assert model.tokenizer is not None
        known[seen] = found.pop()
    return known[seen]


@pytest.fixture(scope="module")
def weights():
    return {number: Weights(number) for number in (2, 4, 6)}


def begin(run, weights, steps):
    RunFolder(run).create(RECIPE, STATE)
    for step in steps:
        weights[step].save(run)


def open_again(run):
    """What a start with --resume says and cleans."""
    said = []
    assert _open_folder(RunFolder(run), RECIPE, CORPUS, True, None, said.append)
    assert not leftovers(run)
    return " ".join(said)


def leftovers(place):
    return [path.name for path in place.rglob("*") if files.is_leftover(path)]


def test_saving_a_checkpoint_with_retention(weights, tmp_path):
    """step-2 and step-4 are there, step-6 is written, step-2 deleted: at any moment the newest whole one opens."""
    begin(tmp_path / "start", weights, (2, 4))
    trace, crashes = crashes_of(weights[6].save, tmp_path / "start", tmp_path)
    seen = set()
    for crash in crashes:
        run = crash.left
        left = [each.name for each in (run / "checkpoints").iterdir() if files.is_leftover(each)]
        steps = [step for step, _ in RunFolder(run).checkpoints()]
        assert len(steps) >= 2, "what is kept is never fewer than asked for"
        assert number_of(run) == steps[-1]
        assert [number_of(folder) for _, folder in RunFolder(run).checkpoints()] == steps
        seen.add(tuple(steps))
        said = open_again(run)
        assert all(name in said for name in left)
    assert seen == {(2, 4), (2, 4, 6), (4, 6)}
    assert len(trace) >= 60
    assert len(crashes) >= 45
    assert {crash.way for crash in crashes} >= {"killed", "torn"}, "a power cut leaves nothing that these do not"
    kinds = {effect.split()[0] for effect in trace}
    assert kinds == {"open", "write", "save", "fsync", "replace", "mkdir", "unlink", "rmdir"}
    assert {"save model.safetensors", "save optimizer.safetensors", "replace .partial-step-6"} <= set(trace)


def test_saving_a_step_again_never_loses_it(weights, tmp_path):
    """The only checkpoint is replaced by another of the same step: it is the old one or the new one."""
    begin(tmp_path / "start", weights, (4,))
    trace, crashes = crashes_of(lambda run: weights[6].save(run, step=4), tmp_path / "start", tmp_path)
    for crash in crashes:
        assert [step for step, _ in RunFolder(crash.left).checkpoints()] == [4]
    assert [number_of(crash.left) for crash in crashes] == sorted(number_of(crash.left) for crash in crashes)
    assert {number_of(crash.left) for crash in crashes} == {4.0, 6.0}
    assert "exchange .partial-step-4" in trace


def test_a_higher_step_that_is_there_does_not_cost_the_one_just_saved(weights, tmp_path):
    begin(tmp_path / "run", weights, (2, 6))
    weights[6].save(tmp_path / "run", step=8)
    weights[4].save(tmp_path / "run", keep=1)
    assert [step for step, _ in RunFolder(tmp_path / "run").checkpoints()] == [4, 6, 8]


@pytest.mark.parametrize("before", [0, 4])
def test_the_final_model(weights, tmp_path, before):
    """`before`: a final model of a run that was killed before it said that it was finished."""
    begin(tmp_path / "start", weights, (2, 4))
    if before:
        weights[before].finish(tmp_path / "start")
        RunFolder(tmp_path / "start").write_state(STATE)
    trace, crashes = crashes_of(weights[6].finish, tmp_path / "start", tmp_path)
    for crash in crashes:
        finished = json.loads((crash.left / "state.json").read_text())["finished"]
        assert number_of(crash.left) in ((6.0,) if finished else (4.0, 6.0))
        assert set(leftovers(crash.left)) <= {*open_again(crash.left).replace(",", " ").split()} | INSIDE
    assert {number_of(crash.left) for crash in crashes} == {4.0, 6.0}
    assert len(trace) >= 50


INSIDE = {f".partial-{os.getpid()}-{name}" for name in (
    "config.json", "manifest.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"
)}  # fmt: skip
"""Leftovers inside a leftover are removed with it."""


def test_the_first_files_of_a_run(weights, tmp_path):
    """Before both are there it is a run hardly begun, which starts anew; it never claims to be a run that it is not."""
    (tmp_path / "start").mkdir()
    trace, crashes = crashes_of(lambda run: RunFolder(run).create(RECIPE, STATE), tmp_path / "start", tmp_path)
    for crash in crashes:
        goes_on, _ = _open_folder(RunFolder(crash.left), RECIPE, CORPUS, True, None, lambda text: None)
        assert goes_on is RunFolder(crash.left).begun
        assert not leftovers(crash.left)
        if goes_on:
            assert RunFolder(crash.left).recipe == RECIPE
            assert RunFolder(crash.left).state == STATE
    assert [crash.way for crash in crashes if RunFolder(crash.left).begun] == ["killed"]
    assert len(trace) >= 11


def test_cutting_the_metrics(weights, tmp_path):
    lines = [json.dumps({"step": step, "loss": 1.0}) + "\n" for step in range(1, 7)]
    begin(tmp_path / "start", weights, ())
    (tmp_path / "start/metrics.jsonl").write_text("".join(lines))
    _, crashes = crashes_of(lambda run: RunFolder(run).cut_metrics(3), tmp_path / "start", tmp_path)
    seen = [[line["step"] for line in RunFolder(crash.left).metrics()] for crash in crashes]
    assert seen[0] == [1, 2, 3, 4, 5, 6]
    assert seen[-1] == [1, 2, 3]
    assert {len(steps) for steps in seen} == {3, 6}


def test_saving_a_new_model(weights, tmp_path):
    def save(place):
        weights[2].model().save(place / "model")

    (tmp_path / "start").mkdir()
    _, crashes = crashes_of(save, tmp_path / "start", tmp_path)
    there = [(crash.left / "model").exists() for crash in crashes]
    assert there == sorted(there)
    assert set(there) == {False, True}
    for crash in crashes:
        if not (crash.left / "model").exists():
            save(crash.left)
        assert number_of(crash.left / "model") == 2
        assert not leftovers(crash.left)


@pytest.mark.parametrize("checksums", [True, False])
def test_replacing_a_model(weights, tmp_path, checksums):
    """The old one opens until the new one does; a folder as it is fetched has no checksums that would tell."""
    start = tmp_path / "start"
    weights[2].model().save(start / "model")
    (start / "model/pytorch_model.bin").write_bytes(b"stale")
    (start / "model/README.md").write_text("mine")
    (start / "model/pictures").mkdir()
    (start / "model/pictures/a.svg").write_text("<svg/>")
    if not checksums:
        (start / "model/manifest.json").unlink()
    _, crashes = crashes_of(lambda place: weights[4].model().save(place / "model", replace=True), start, tmp_path)
    for crash in crashes:
        model = crash.left / "model"
        assert (model / "README.md").read_text() == "mine"
        assert (model / "pictures/a.svg").read_text() == "<svg/>"
        assert (model / "pytorch_model.bin").exists() is (number_of(model) == 2)
    assert {number_of(crash.left / "model") for crash in crashes} == {2.0, 4.0}


def test_saving_into_an_empty_folder(weights, tmp_path):
    """It may be a mount point, which cannot be renamed: config.json comes last and makes it a model."""
    (tmp_path / "start").mkdir()
    _, crashes = crashes_of(lambda place: weights[2].model().save(place), tmp_path / "start", tmp_path)
    there = [(crash.left / "config.json").is_file() for crash in crashes]
    assert there == sorted(there)
    assert set(there) == {False, True}
    for crash in crashes:
        if (crash.left / "config.json").is_file():
            assert number_of(crash.left) == 2
        else:
            with pytest.raises(CheckpointError, match=r"no config\.json here"):
                maskery.load(crash.left)


def test_weights_can_be_read_by_whom_the_other_files_can(weights, tmp_path):
    weights[2].model().save(tmp_path / "model")
    modes = {path.stat().st_mode for path in (tmp_path / "model").iterdir()}
    assert len(modes) == 1
