"""Resuming is bitwise: from every step the rest of a run gives the same bytes as if it had never stopped."""

import json
import shutil
from functools import cache

import pytest
from small_run import STEPS, corpus_in, cut_back, lines_without_time, run_quietly, same_files, tiny_recipe

from maskery.train.folder import RunFolder

PHASES = [{"steps": 17, "length": 12, "batch": 12}, {"steps": 23, "length": 24, "lr": 1e-3}]
CASES = {
    "bert": ("bert", {}, 0),
    "roberta": ("roberta", {}, 0),
    "accumulation": ("bert", {"training__micro": 4}, 0),
    "uneven accumulation": ("roberta", {"training__micro": 5}, 0),
    "dynamic": ("bert", {"corruption__when": "dynamic"}, 0),
    "static": ("roberta", {"corruption__when": "static", "rows__copies": 2}, 0),
    "workers": ("bert", {}, 2),
    "workers and accumulation": ("roberta", {"training__micro": 4}, 2),
    "phases": ("bert", {"training__phases": PHASES}, 0),
    "phases and workers": ("roberta", {"training__phases": PHASES, "training__micro": 4}, 2),
}


pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """The uninterrupted run of a case, saved at every step; made when first asked for."""

    @cache
    def make(case):
        name, changes, workers = CASES[case]
        saving = {"training__save_every": 1, "training__keep": STEPS}
        out = tmp_path_factory.mktemp("whole") / "run"
        run_quietly(tiny_recipe(name, **changes, **saving), corpus, out, workers=workers)
        return out

    return make


def resume_and_compare(case, step, whole, corpus, folder, workers=None):
    """Resume behind `step`; nothing is saved on the way but the last state, so that the tests are quick."""
    name, changes, given = CASES[case]
    run = cut_back(whole, step, folder / f"run-{step}")
    workers = given if workers is None else workers
    _, talk = run_quietly(tiny_recipe(name, **changes), corpus, run, True, workers=workers)
    assert (f"resumed from step-{step}" if step else "starting from the first step") in talk.text
    assert "bitwise" not in talk.text, "nothing about this machine has changed"
    names = same_files(whole / f"checkpoints/step-{STEPS}", run / f"checkpoints/step-{STEPS}")
    assert {"model.safetensors", "optimizer.safetensors", "state.json"} <= set(names)
    assert (run / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert lines_without_time(run) == lines_without_time(whole)
    shutil.rmtree(run)


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("case", ["bert", "roberta"])
def test_from_every_step(case, part, whole, corpus, tmp_path):
    for step in range(part, STEPS + 1, 4):
        resume_and_compare(case, step, whole(case), corpus, tmp_path)


@pytest.mark.parametrize("case", [case for case in CASES if case not in ("bert", "roberta")])
def test_from_every_seventh_step(case, whole, corpus, tmp_path):
    for step in range(7, STEPS, 7):
        resume_and_compare(case, step, whole(case), corpus, tmp_path)


def test_the_runs_are_worth_comparing(whole):
    """Different enough from each other, with dropout at work, something learnt, and both phases visited."""
    weights = {case: (whole(case) / "model.safetensors").read_bytes() for case in ("bert", "accumulation", "dynamic")}
    assert len(set(weights.values())) == 3
    lines = lines_without_time(whole("bert"))
    assert [line["step"] for line in lines] == list(range(1, STEPS + 1))
    assert lines[-1]["loss"] < lines[0]["loss"]
    assert [line["step"] for line in lines if "eval/loss" in line] == [10, 20, 30, 40]
    assert RunFolder(whole("bert")).recipe.model.dropout > 0
    phased = lines_without_time(whole("phases"))
    tokens = [
        after["tokens"] - before["tokens"] for before, after in zip([{"tokens": 0}, *phased], phased, strict=False)
    ]
    assert max(tokens[:17]) <= 12 * 12
    assert max(tokens[17:]) > 12 * 12


def test_the_number_of_workers_may_change_on_the_way(whole, corpus, tmp_path):
    resume_and_compare("bert", 13, whole("bert"), corpus, tmp_path, workers=2)


def test_a_folder_of_our_own_type_comes_back_too(corpus, tmp_path):
    """A network that no Hugging Face class can express is written under our own names."""
    changes = {"model__norm": "pre", "model__positions": "sinusoidal"}
    saving = {"training__save_every": 1, "training__keep": STEPS, "training__steps": 12}
    first = tmp_path / "whole"
    run_quietly(tiny_recipe("bert", **changes, **saving), corpus, first)
    assert json.loads((first / "config.json").read_text())["model_type"] == "maskery"
    run = cut_back(first, 5, tmp_path / "again")
    run_quietly(tiny_recipe("bert", **changes, training__steps=12), corpus, run, True)
    same_files(first / "checkpoints/step-12", run / "checkpoints/step-12")


def test_seeds_matter(corpus, tmp_path, whole):
    run_quietly(tiny_recipe("bert", training__seed=1), corpus, tmp_path / "other")
    assert (tmp_path / "other/model.safetensors").read_bytes() != (whole("bert") / "model.safetensors").read_bytes()
