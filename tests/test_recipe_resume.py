"""Every recipe that comes with the package, stopped in the middle and resumed, ends with the same bytes."""

import os

import pytest
from small_run import WORDS, corpus_in, cut_back, lines_without_time, run_quietly, same_files, tiny_recipe

from maskery.recipes.recipe import names, recipe

STEPS, STOPPED = 6, 3


@pytest.fixture(scope="module", autouse=True)
def no_waiting_for_the_disk():
    """These tests stop runs, not machines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resumed")
    (folder / "similar.txt").write_text("\n".join(" ".join(WORDS[n : n + 3]) for n in range(0, 90, 3)), "utf-8")
    return folder


@pytest.fixture(scope="module")
def corpus(folder):
    return corpus_in(folder)


@pytest.mark.parametrize("name", names())
def test_a_resumed_run_ends_with_the_same_bytes(name, corpus, folder, tmp_path):
    saving = {"training__steps": STEPS, "training__save_every": STOPPED, "training__eval_every": STOPPED}
    if recipe(name).corruption.replace.similar:
        saving["knowledge__synonyms"] = str(folder / "similar.txt")
    made = tiny_recipe(name, **saving)
    run_quietly(made, corpus, tmp_path / "whole")
    out = cut_back(tmp_path / "whole", STOPPED, tmp_path / "resumed")
    _, talk = run_quietly(made, corpus, out, True)
    assert f"resumed from step-{STOPPED}" in talk.text
    same_files(tmp_path / f"whole/checkpoints/step-{STEPS}", out / f"checkpoints/step-{STEPS}")
    assert lines_without_time(tmp_path / "whole") == lines_without_time(out)
    steps = [line["loss"] for line in lines_without_time(out) if "loss" in line]
    assert len(steps) == STEPS
    assert len(set(steps)) == STEPS
