"""A whole run, crashed at every effect on the file system: what is saved opens, and resuming ends in the same bytes."""

import pytest
from crash import contents, crashes_of
from small_run import corpus_in, lines_without_time, run_quietly, same_files, tiny_recipe

import maskery
from maskery import files
from maskery.errors import CheckpointError
from maskery.train.folder import RunFolder

SAMPLE = 14


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def recipe():
    return tiny_recipe(model__layers=1, training__steps=3, training__save_every=1, training__keep=2)


@pytest.fixture(scope="module")
def crashed(corpus, recipe, tmp_path_factory):
    """(the folder of the run that nothing disturbed, its effects, what a crash at each of them leaves)"""
    folder = tmp_path_factory.mktemp("crashed")
    (folder / "start").mkdir()
    effects, crashes = crashes_of(lambda run: run_quietly(recipe, corpus, run), folder / "start", folder)
    return folder / "under-way", effects, crashes


def test_whatever_is_saved_opens(crashed):
    """At every point the run stands for its newest checkpoint or its final model, and progress is never lost."""
    _, effects, crashes = crashed
    assert len(effects) >= 250
    assert len(crashes) >= 150
    known, best = {}, 0
    for crash in crashes:
        steps = [step for step, _ in RunFolder(crash.left).checkpoints()]
        assert not steps or steps[-1] >= best, f"{crash.way} at {crash.effect}: step {best} is gone"
        assert len(steps) >= min(best, 2)
        best = max(best, steps[-1]) if steps else best
        state = contents(crash.left)
        if state not in known:
            known[state] = opened(crash.left)
        assert known[state] is bool(steps), crash
    assert best == 3


def opened(run):
    try:
        return maskery.load(run).report.missing == ()
    except CheckpointError as error:
        return not ("has not saved a model yet" in error.cause or "no config.json here" in error.cause)


def test_resuming_ends_in_the_same_bytes(crashed, corpus, recipe):
    """A sample of the points, spread over the whole run."""
    whole, _, crashes = crashed
    told = ""
    for crash in crashes[:: len(crashes) // SAMPLE]:
        left = [path.name for path in crash.left.iterdir() if files.is_leftover(path)]
        _, talk = run_quietly(recipe, corpus, crash.left, True)
        told += talk.text
        assert all(name in talk.text for name in left) or "starting anew" in talk.text
        same_files(crash.left / "checkpoints/step-3", whole / "checkpoints/step-3")
        for name in ("model.safetensors", "config.json", "tokenizer.json", "manifest.json"):
            assert (crash.left / name).read_bytes() == (whole / name).read_bytes(), (crash, name)
        assert lines_without_time(crash.left) == lines_without_time(whole)
        assert names(crash.left) == names(whole), f"{crash.way} at {crash.effect} leaves something behind"
    assert "resumed from step-1" in told
    assert "resumed from step-2" in told
    assert "resumed from step-3" in told
    assert "an interrupted write left behind" in told


def names(run):
    return sorted(str(path.relative_to(run)) for path in run.rglob("*"))


def test_a_crash_while_resuming_from_a_crash(crashed, corpus, recipe, tmp_path):
    """Cleaning up is crashed, too, and the start after that finds everything."""
    whole, _, crashes = crashed
    first = next(each for each in crashes if each.effect.startswith("unlink") and "step-2" in str(names(each.left)))
    _, again = crashes_of(
        lambda run: run_quietly(recipe, corpus, run, True), first.left, tmp_path, wanted=lambda number: number <= 30
    )
    for crash in again[:: len(again) // 3]:
        run_quietly(recipe, corpus, crash.left, True)
        assert (crash.left / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
        assert names(crash.left) == names(whole)
