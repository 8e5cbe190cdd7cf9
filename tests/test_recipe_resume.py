"""Every recipe that comes with the package, stopped in the middle and resumed, ends with the same bytes."""

import pytest
from small_run import (
    corpus_in,
    cut_back,
    lines_without_time,
    run_quietly,
    same_files,
    similar_words_in,
    tiny_recipe,
)

from maskery.recipes.recipe import names, recipe

STEPS, STOPPED = 6, 3


pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resumed")
    similar_words_in(folder)
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
