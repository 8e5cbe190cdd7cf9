"""One batch is one gradient, however it is cut into micro-batches."""

import pytest
import torch
from fake_store import random_store
from small_model import VOCABULARY, small_recipe

from maskery.errors import NonFiniteError
from maskery.feed import Feed
from maskery.system import System
from maskery.train.loop import Trainer
from maskery.train.optimizers import AdamW

STORE = random_store(3, 12, sentences=(2, 9), tokens=(2, 14), vocabulary=VOCABULARY)


def trainer(micro, name="bert", **changes):
    changes = {"training__batch": 16, "training__clip": 0.0, "model__init_std": 0.2} | changes
    recipe = small_recipe(name, **changes)
    system = System(recipe, VOCABULARY)
    system.initialise(0)
    system.train()
    feed = Feed(recipe, STORE, seed=1)
    return Trainer(recipe.training, feed, system, AdamW(system.named_parameters(), recipe.training), [micro])


def gradient(made, step=0):
    losses, norm, _ = made._gradient(made.feed.micro_batches(step, 0, 1, made.micro[0]))
    parts = [p.grad.flatten().double() for p in made.system.parameters()]
    return torch.cat(parts), losses, norm


NAMES = {"bert": {}, "roberta": {}, "weights": {"objectives__next_sentence__weight": 0.3}}


@pytest.mark.parametrize("name", NAMES)
def test_micro_batches_give_the_gradient_of_the_whole(name):
    recipe = "roberta" if name == "roberta" else "bert"
    whole = trainer(16, recipe, **NAMES[name])
    expected, losses, norm = gradient(whole)
    counts = [whole.system.counts(batch)["masked_token"] for batch in whole.feed.micro_batches(0, 0, 1, 1)]
    assert len(counts) == 16
    assert max(counts) > 2 * min(counts), "rows with unequal numbers of targets"
    assert norm == pytest.approx(float(expected.norm()), rel=1e-6)
    for micro in (1, 2, 4, 5, 8):
        found, other, _ = gradient(trainer(micro, recipe, **NAMES[name]))
        assert float((found - expected).norm() / expected.norm()) < 1e-6, micro
        assert other == pytest.approx(losses, rel=1e-5)


def test_the_mean_is_over_targets_not_over_micro_batches():
    """Against the slow way: every target's loss, one mean, one backward pass."""
    made = trainer(3)
    found, losses, _ = gradient(made)
    batches = made.feed.micro_batches(0, 0, 1, 16)
    sums, counts = made.system(batches[0]), made.system.counts(batches[0])
    made.system.zero_grad()
    torch.stack([sums[name] / counts[name] for name in sums]).sum().backward()
    expected = torch.cat([p.grad.flatten().double() for p in made.system.parameters()])
    assert float((found - expected).norm() / expected.norm()) < 1e-6
    assert losses == pytest.approx({name: float(sums[name].detach()) / counts[name] for name in sums}, rel=1e-5)


def test_clipping_scales_the_whole_gradient():
    free, norm = gradient(trainer(4))[::2]
    clipped, told, reported = gradient(trainer(4, training__clip=norm / 3))
    assert reported == pytest.approx(norm), "the norm before clipping is told"
    torch.testing.assert_close(clipped, free / 3, rtol=1e-5, atol=1e-9)
    assert told
    same = gradient(trainer(4, training__clip=norm * 2))[0]
    assert torch.equal(same, free)


def test_dropout_is_keyed_by_step_and_micro_batch():
    changes = {"model__dropout": 0.1, "model__attention_dropout": 0.1}
    one, two = trainer(4, **changes), trainer(4, **changes)
    torch.manual_seed(1)
    first = gradient(one)[0]
    torch.manual_seed(2)
    assert torch.equal(first, gradient(two)[0])
    two.step = 1
    assert not torch.equal(first, gradient(two)[0])


def test_a_gradient_that_is_not_finite_moves_nothing():
    made = trainer(4)
    with torch.no_grad():
        made.system.network.embeddings.tokens[7] = torch.inf
    before = {name: value.clone() for name, value in made.system.state_dict().items()}
    with pytest.raises(NonFiniteError, match="no weight was changed"):
        next(made.updates())
    assert all(torch.equal(value, before[name]) for name, value in made.system.state_dict().items())
    assert all(parameter.grad is None for parameter in made.system.parameters())
