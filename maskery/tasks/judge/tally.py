"""What every metric rests on: figures of a set in which each example counts as often as its weight says.

The set itself is the set with all weights one, and a resample of it the set with other weights. So a metric is written
once, for many sets at a time, and is its own bootstrap.

Shapes: N examples, B sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from maskery.errors import InputError

Numbers = NDArray[np.float64]
Values = dict[str, Numbers]
"""(B,) of each metric."""


class Tally(Protocol):
    """The answers to one task beside the right ones."""

    @property
    def size(self) -> int:
        """N: what the bootstrap draws."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What had to be decided: ties, classes that do not occur, figures that the data does not define."""

    def values(self, weights: Numbers) -> Values:
        """(B,N) weights -> the metrics of each set."""


def ratio(part: Numbers, whole: Numbers, empty: float = 0.0) -> Numbers:
    """part / whole, and `empty` where there is no whole."""
    found: Numbers = np.full(np.broadcast(part, whole).shape, empty)
    return np.divide(part, whole, out=found, where=whole != 0)


def mean(weights: Numbers, each: Numbers) -> Numbers:
    """(B,N), (N,) -> (B,)"""
    return ratio(np.asarray(weights @ each), weights.sum(1))


def precision_recall_f1(hits: Numbers, predicted: Numbers, gold: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Of counts of any shape; what nobody predicted has precision 0, what never occurs recall 0."""
    return ratio(hits, predicted), ratio(hits, gold), ratio(2 * hits, predicted + gold)


def grouped(weights: Numbers, groups: NDArray[np.int64], many: int) -> Numbers:
    """(B,N), (N,) numbers of groups -> (B,many) the weight of each group."""
    order = np.argsort(groups, kind="stable")
    there, starts = np.unique(groups[order], return_index=True)
    sums = np.zeros((len(weights), many))
    sums[:, there] = np.add.reduceat(weights[:, order], starts, axis=1)
    return sums


def require_as_many(gold: Sequence[object], predicted: Sequence[object]) -> None:
    if len(gold) != len(predicted):
        raise InputError(
            f"{len(predicted):,} predictions for {len(gold):,} examples",
            repair="predict the very file that holds the right answers",
        )
    if not len(gold):
        raise InputError("there is nothing to judge: no example has a right answer", repair="name a file with labels")
