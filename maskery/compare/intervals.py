"""How sure a share is: a bootstrap over held-out rows. The same rows are drawn for every model, so that two of them can
be compared row by row.

The interval covers the choice of rows, not the chance of training: that is what several seeds are for.

Shapes: R rows, B resamples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maskery import randomness

Numbers = NDArray[np.float64]
RESAMPLES = 2000
COVERED = (0.025, 0.975)
_AT_ONCE = 1 << 18
"""Draws held at once."""


def resampled(hits: Numbers, asked: Numbers) -> Numbers:
    """(R,) hits and answers of each row -> (B,) the share of hits in resampled rows."""
    draws = randomness.generator(randomness.key(0, "bootstrap"))
    found, some = [], max(1, _AT_ONCE // len(hits))
    for done in range(0, RESAMPLES, some):
        picks = draws.integers(0, len(hits), (min(some, RESAMPLES - done), len(hits)))
        found.append(hits[picks].sum(1) / np.maximum(1.0, asked[picks].sum(1)))
    return np.concatenate(found)


def interval(shares: Numbers) -> tuple[float, float]:
    """What 95 % of the resamples lie within."""
    low, high = np.quantile(shares, COVERED)
    return float(low), float(high)
