"""Heads of every question are written, read again, counted and resumed."""

from __future__ import annotations

import json
import os

import pytest
from networks import model_of
from oracle import same_bits
from safetensors.torch import load_file
from small_run import STEPS, corpus_in, cut_back, lines_without_time, run_quietly, same_files, tiny_recipe

from maskery.checkpoint.folder import state_of
from maskery.checkpoint.load import load
from maskery.cli import main
from maskery.objectives.config import OBJECTIVES, PAIR_OF
from maskery.rows.config import PAIRS

QUESTIONS = ("masked_token", "word_order", "three_way")
WITH_WEIGHTS = [name for name in OBJECTIVES.names() if list(model_of(name, pooler=True).heads[name].parameters())]


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_a_head_comes_back_bit_by_bit(name, tmp_path):
    model = model_of(name, pooler=True, seed=3)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert list(again.heads) == [name]
    assert type(again.heads[name]) is type(model.heads[name])
    assert same_bits(state_of(model.network, model.heads), state_of(again.network, again.heads))
    assert not again.report.lines()


@pytest.mark.parametrize("name", PAIR_OF)
def test_info_counts_the_head(name, tmp_path, capsys):
    model_of(name, pooler=True).save(tmp_path / "m")
    assert main(["info", str(tmp_path / "m"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    classes = len(PAIRS.get(PAIR_OF[name]).labels)
    assert told["parameters"]["heads"] == classes * 16 + classes
    assert told["parameters"]["pooler"] == 16 * 16 + 16


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"), documents=60)


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """A run over three questions, saved at every tenth step."""
    out = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        run_quietly(three_questions(training__save_every=10, training__keep=STEPS), corpus, out)
    return out


def three_questions(**changes):
    return tiny_recipe("structbert", corruption__shuffle__rate=0.2, **changes)


def test_every_question_is_measured(whole):
    lines = lines_without_time(whole)
    last = [line for line in lines if "eval/three_way/loss" in line][-1]
    for name in QUESTIONS:
        assert 0 <= last[f"eval/{name}/accuracy"] <= 1
        assert last[f"eval/{name}/loss"] > 0
    assert "eval/three_way/perplexity" not in last


def test_the_model_of_a_run_has_every_head(whole):
    model = load(whole)
    assert set(model.heads) == set(QUESTIONS)
    assert model.heads["three_way"].dense.weight.shape[0] == 3
    beside = load_file(whole / "heads.safetensors")
    assert {name.split(".")[1] for name in beside if name.startswith("heads.")} == set(QUESTIONS) - {"masked_token"}


@pytest.mark.parametrize("step", [10, 30])
def test_resuming_is_bitwise_with_three_questions(step, whole, corpus, tmp_path):
    run = cut_back(whole, step, tmp_path / "run")
    _, talk = run_quietly(three_questions(), corpus, run, True)
    assert f"resumed from step-{step}" in talk.text
    same_files(whole / f"checkpoints/step-{STEPS}", run / f"checkpoints/step-{STEPS}")
    assert (run / "heads.safetensors").read_bytes() == (whole / "heads.safetensors").read_bytes()
    assert lines_without_time(run) == lines_without_time(whole)
