"""Rows that are compared with each other: one loss and one gradient, however a step is cut."""

import json

import pytest
import torch
from fake_store import random_store
from safetensors.torch import load_file
from small_model import VOCABULARY, small_recipe
from small_run import Talk, corpus_in, cut_back, lines_without_time, run_quietly, same_files, tiny_recipe

from maskery.feed import Feed
from maskery.system import System
from maskery.train.build import build_trainer, first_rows
from maskery.train.comparing import compared
from maskery.train.evaluate import evaluate
from maskery.train.loop import Trainer
from maskery.train.memory import choose_micro
from maskery.train.optimizers import AdamW
from maskery.train.ranks import Ranks

STORE = random_store(3, 12, sentences=(2, 9), tokens=(2, 14), vocabulary=VOCABULARY)
DROPOUT = {"model__dropout": 0.1, "model__attention_dropout": 0.1}


def trainer(micro, **changes):
    changes = {"training__batch": 16, "training__clip": 0.0, "model__init_std": 0.2} | changes
    recipe = small_recipe("infoword", **changes)
    system = System(recipe, VOCABULARY)
    system.initialise(0)
    system.train()
    return Trainer(
        recipe.training, Feed(recipe, STORE, seed=1), system, AdamW(system.named_parameters(), recipe.training), [micro]
    )


def gradient(made, step=0):
    losses, norm, _ = made._gradient(made.feed.micro_batches(step, 0, 1, made.micro[0]))
    return torch.cat([p.grad.flatten().double() for p in made.system.parameters()]), losses, norm


def test_sixteen_rows_are_one_comparison_however_they_are_cut():
    expected, losses, _ = gradient(trainer(16))
    counts = [trainer(1).system.counts(batch)["contrast"] for batch in trainer(1).feed.micro_batches(0, 0, 1, 1)]
    assert sum(counts) > 10
    assert losses["contrast"] > 1
    for micro in (1, 2, 4, 5, 8):
        found, other, _ = gradient(trainer(micro))
        assert float((found - expected).norm() / expected.norm()) < 1e-6, micro
        assert other == pytest.approx(losses, rel=1e-6)


def test_cut_without_caching_it_would_be_another_loss():
    """What the test above would not see if rows were compared within their micro-batch."""
    made = trainer(4)
    whole = gradient(made)[1]["contrast"]
    batches = made.feed.micro_batches(0, 0, 1, 4)
    with torch.no_grad():
        parts = sum(float(made.system(batch)["contrast"]) for batch in batches)
    count = sum(made.system.counts(batch)["contrast"] for batch in batches)
    assert parts / count < 0.8 * whole


def test_both_passes_see_the_same_dropout(monkeypatch):
    made, read, learnt = trainer(4, **DROPOUT), [], []
    vectors = type(made.system.objectives["contrast"]).vectors

    def watched(self, *arguments):
        found = vectors(self, *arguments)
        (learnt if found.requires_grad else read).append(found.detach().clone())
        return found

    monkeypatch.setattr("maskery.objectives.contrast.Contrast.vectors", watched)
    gradient(made)
    assert len(read) == len(learnt) == 4
    assert all(torch.equal(one, other) for one, other in zip(read, learnt, strict=True))
    still = trainer(4)
    still.system.load_state_dict(made.system.state_dict())
    read.clear()
    gradient(still)
    assert not torch.equal(read[0], learnt[0]), "there was dropout"


def test_one_micro_batch_is_read_once(monkeypatch):
    made, passes = trainer(16), []
    forward = type(made.system.network).forward

    def counted(self, *arguments, **named):
        passes.append(1)
        return forward(self, *arguments, **named)

    monkeypatch.setattr("maskery.model.transformer.Network.forward", counted)
    gradient(made)
    assert len(passes) == 1
    gradient(trainer(8))
    assert len(passes) == 1 + 2 * 2


def test_a_recipe_that_compares_nothing_is_read_once():
    recipe = small_recipe("bert", training__batch=8)
    system = System(recipe, VOCABULARY)
    batches = Feed(recipe, STORE, seed=1).micro_batches(0, 0, 1, 2)

    def never(number, batch):
        raise AssertionError

    assert compared(system, batches, never, Ranks(), gradient=True) is batches


class Neighbours(Ranks):
    """One of several ranks, given what all of them bring."""

    def gather(self, value):
        return self.parts


def test_ranks_compare_what_one_would():
    """Each rank's part of the outcome, found from what all ranks bring, is the outcome of one process."""
    made = trainer(4)
    batches = made.feed.micro_batches(0, 0, 1, 4)

    def read(number, batch):
        return made.system.vectors(batch)

    whole = compared(made.system, batches, read, Ranks(), gradient=True)
    brought = [(made.system.vectors(batch)["contrast"], batch.targets["contrast"]) for batch in batches]
    for rank, mine in enumerate((slice(0, 1), slice(1, 1), slice(1, 4))):
        ranks = Neighbours(rank=rank, world=3)
        object.__setattr__(ranks, "parts", [brought[0:1], [], brought[1:4]])
        found = compared(made.system, batches[mine], read, ranks, gradient=True)
        assert len(found) == len(batches[mine])
        for one, other in zip(found, whole[mine], strict=True):
            for name in ("loss", "hit", "gradient"):
                assert torch.equal(one.targets["contrast"].extra[name], other.targets["contrast"].extra[name])


def test_evaluation_does_not_depend_on_the_micro_batch():
    made = trainer(16)
    feed = Feed(made.feed.recipe, random_store(3, 12, heldout=range(6), sentences=(4, 9), tokens=(4, 14),
                vocabulary=VOCABULARY), 1, "heldout")  # fmt: skip
    found = [evaluate(made.system, feed, 1, 16, micro, torch.device("cpu")) for micro in (16, 5, 1)]
    for other in found[1:]:
        assert other == pytest.approx(found[0], rel=1e-5)
    assert found[0]["eval/contrast/loss"] > 1
    assert 0 <= found[0]["eval/contrast/accuracy"] < 1
    assert "eval/contrast/perplexity" not in found[0]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("comparing")
    corpus = corpus_in(folder)
    changes = {
        "training__steps": 6,
        "training__save_every": 1,
        "training__eval_every": 3,
        "training__micro": 3,
        "training__keep": 9,
    }
    recipe = tiny_recipe("infoword", **changes)
    run, _ = run_quietly(recipe, corpus, folder / "whole")
    return folder, corpus, recipe, run


def test_resumed_it_ends_with_the_same_bytes(runs):
    folder, corpus, recipe, run = runs
    out = cut_back(run.path, 2, folder / "resumed")
    _, talk = run_quietly(recipe, corpus, out, True)
    assert "resumed from step-2" in talk.text
    same_files(run.path / "checkpoints/step-6", out / "checkpoints/step-6")
    assert lines_without_time(run.path) == lines_without_time(out)


def test_the_folder_has_the_pooler_that_was_trained(runs):
    _, _, _, run = runs
    names = [name for path in run.path.glob("*.safetensors") for name in load_file(path)]
    assert any("pooler" in name for name in names)
    assert not any("contrast" in name for name in names), "the comparison has no weights"
    config = json.loads((run.path / "config.json").read_text())
    assert config["model_type"] == "bert"


def test_what_is_read_besides_takes_memory_too(runs, monkeypatch):
    """The estimate of a step sees rows as much longer as their runs are."""
    _, corpus, recipe, _ = runs
    seen = []

    def watched(shape, parameters, length, *rest):
        seen.append(length)
        return choose_micro(shape, parameters, length, *rest)

    monkeypatch.setattr("maskery.train.build.choose_micro", watched)
    made = build_trainer(recipe, corpus, 0, Talk())
    few = first_rows(made.feed, 8)
    assert seen == [round(24 * (few.tokens + few.views["contrast"].tokens) / few.tokens)]
    assert 24 * 1.2 < seen[0] < 24 * 2.5


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_vectors_are_compared_in_float32(runs, precision):
    """Made in whatever numbers, and one micro-batch is what two are."""
    _, corpus, recipe, _ = runs
    made = build_trainer(recipe.changed({"training.precision": precision}), corpus, 0, Talk())
    made.spread()
    batches = made.feed.micro_batches(0, 0, 1, 4)
    found = compared(made.system, batches, made._vectors, Ranks(), gradient=True)
    extra = found[0].targets["contrast"].extra
    assert {extra[name].dtype for name in ("loss", "gradient")} == {torch.float32}
    assert made._gradient(batches).losses["contrast"] > 0
