"""How sure a figure is: a bootstrap over held-out rows. The same rows are drawn for every model, so that two of them
can be compared row by row.

The interval covers the choice of rows, not the chance of training: that is what several seeds are for.

Shapes: R rows, B resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from maskery import randomness

Numbers = NDArray[np.float64]
RESAMPLES = 2000
COVERED = (0.025, 0.975)
_AT_ONCE = 1 << 18
"""Draws held at once."""


def weights(rows: int) -> Iterator[Numbers]:
    """(b,R) how often each row was drawn, for some resamples at a time, B in all."""
    draws = randomness.generator(randomness.key(0, "bootstrap"))
    some = max(1, _AT_ONCE // rows)
    for done in range(0, RESAMPLES, some):
        many = min(some, RESAMPLES - done)
        picks = draws.integers(0, rows, (many, rows)) + np.arange(many)[:, None] * rows
        yield np.bincount(picks.ravel(), minlength=many * rows).reshape(many, rows).astype(np.float64)


def resampled(hits: Numbers, asked: Numbers) -> Numbers:
    """(R,) hits and answers of each row -> (B,) the share of hits in resampled rows."""
    return np.concatenate([some @ hits / np.maximum(1.0, some @ asked) for some in weights(len(hits))])


def resamples(values: Callable[[Numbers], Mapping[str, Numbers]], rows: int) -> dict[str, Numbers]:
    """Name -> (B,) of figures that are told for many sets at once: (b,R) weights -> (b,) each."""
    found: dict[str, list[Numbers]] = {}
    for some in weights(rows):
        for name, each in values(some).items():
            found.setdefault(name, []).append(each)
    return {name: np.concatenate(parts) for name, parts in found.items()}


def interval(shares: Numbers) -> tuple[float, float]:
    """What 95 % of the resamples lie within."""
    low, high = np.quantile(shares, COVERED)
    return float(low), float(high)
