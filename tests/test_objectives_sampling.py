"""Draws by numbers that the feed has made, and the order of scores: sums and searches against obvious loops."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from slow_draw import slowly

from maskery.objectives.protocol import Ranked
from maskery.objectives.sampling import draw


@pytest.mark.parametrize("vocabulary", [1, 5, 127, 128, 129, 256, 300])
def test_draws_are_the_inverse_of_the_distribution(vocabulary):
    own = np.random.default_rng(vocabulary)
    weights = own.random((400, vocabulary)).astype(np.float32) ** 8
    weights[:, own.random(vocabulary) < 0.3] = 0.0
    weights[:, vocabulary // 2] += 0.01
    numbers = own.random(400)
    found = draw(torch.from_numpy(weights), torch.from_numpy(numbers)).tolist()
    assert found == [slowly(row, number) for row, number in zip(weights.astype(float).tolist(), numbers, strict=True)]


@pytest.mark.parametrize("vocabulary", [1, 3, 128, 129, 1000])
@pytest.mark.parametrize("number", [0.0, 2.0**-53, 0.5, 1 - 2.0**-53])
def test_a_token_without_weight_is_never_drawn(vocabulary, number):
    """Not even by the largest number below one, nor where one token has all the weight, however little it is."""
    for weight, seed in product((1e-38, 1.0, 3e38), range(20)):
        only = int(np.random.default_rng(seed).integers(vocabulary))
        weights = torch.zeros(1, vocabulary)
        weights[0, only] = weight
        assert draw(weights, torch.tensor([number], dtype=torch.float64)).tolist() == [only]
    some = torch.rand(50, vocabulary, generator=torch.Generator().manual_seed(0)) * (torch.arange(vocabulary) % 3 == 0)
    found = draw(some, torch.full((50,), number, dtype=torch.float64))
    assert (some.gather(1, found.unsqueeze(1)) > 0).all()


def test_the_area_is_the_share_of_pairs_in_the_right_order():
    own = np.random.default_rng(0)
    score = own.integers(0, 6, 60).astype(np.float32)
    positive = own.random(60) < 0.3
    pairs = [(s, t) for s in score[positive] for t in score[~positive]]
    expected = sum(1.0 if s > t else 0.5 if s == t else 0.0 for s, t in pairs) / len(pairs)
    assert Ranked(score, positive).area == pytest.approx(expected)
    assert Ranked(score, np.zeros(60, dtype=bool)).area is None
    assert Ranked(score, np.ones(60, dtype=bool)).area is None
    halves = [Ranked(score[part], positive[part]) for part in (slice(25), slice(25, 60))]
    assert Ranked.joined(halves).area == Ranked(score, positive).area


@pytest.mark.parametrize("vocabulary", [1, 128, 300])
@pytest.mark.parametrize("weight", [float("nan"), float("inf"), 0.0])
def test_weights_that_say_nothing_still_give_a_token(vocabulary, weight):
    """The loss tells that they are no numbers; an id beyond the vocabulary would fail before it is looked at."""
    found = draw(torch.full((3, vocabulary), weight), torch.tensor([0.0, 0.5, 1 - 2.0**-53], dtype=torch.float64))
    assert ((found >= 0) & (found < vocabulary)).all()
