"""How surprising a count is under a law; seeds are fixed, so a test that passes once passes always."""

from __future__ import annotations

import math

import numpy as np


def surprise(counts, expected):
    """Chi-square, as the standard deviations of a normal variable (Wilson and Hilferty); 4 is p = 3e-5."""
    counts, expected = np.asarray(counts, float), np.broadcast_to(expected, np.shape(counts))
    assert math.isclose(counts.sum(), expected.sum(), rel_tol=1e-9), "all cells together"
    freedom = counts.size - 1
    ratio = ((counts - expected) ** 2 / expected).sum() / freedom
    return (ratio ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))


def share_is(count, total, share):
    """Whether `count` of `total` is within four standard deviations of a binomial share."""
    return abs(count - total * share) < 4 * math.sqrt(total * share * (1 - share)) + 1e-9
