"""Choosing: which of the candidate spans fill a row's budget.

Candidates are looked at in their order. One that meets a unit already chosen ends in front of it; one that is larger
than what is left of the budget is shortened to the units that fit, and left out if not even its first does: words are
never split, and no row exceeds its budget. All rows take their next candidate at the same time, so the work is a few
vector operations a round, and as many rounds as a row needs candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskery.corruption.spans import Spans
from maskery.corruption.units import Units


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """n chosen slots, grouped by span, row after row."""

    slot: NDArray[np.int64]
    """(n,) flat."""
    unit: NDArray[np.int64]
    span: NDArray[np.int64]
    """(n,) number among the candidate spans."""


def choose(
    units: Units, spans: Spans, cost: NDArray[np.int64], budgets: NDArray[np.int64], *, whole: bool = False
) -> Chosen:
    """`cost` (U,) is what a unit takes of the budget (B,): its slots, or its words. `whole`: no span is shortened."""
    alone = len(spans.count) == 0 or spans.count.max() == 1
    taken, count = _one_by_one(spans, cost, budgets) if alone else _rounds(spans, cost, budgets, whole)
    return _slots(units, spans, taken, count)


def all_of(units: Units, spans: Spans) -> Chosen:
    """Every span as it is, whatever it costs; none meets another."""
    return _slots(units, spans, np.arange(len(spans.row)), spans.count)


def _slots(units: Units, spans: Spans, taken: NDArray[np.int64], count: NDArray[np.int64]) -> Chosen:
    unit = np.repeat(spans.first[taken], count) + ramp(count)
    span, length = np.repeat(taken, count), units.length[unit]
    slot = np.repeat(units.start[unit], length) + ramp(length)
    return Chosen(slot=slot, unit=np.repeat(unit, length), span=np.repeat(span, length))


def ramp(many: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, .. many[0]-1, 0, 1, .. many[1]-1, ..."""
    return np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)


def _one_by_one(
    spans: Spans, cost: NDArray[np.int64], budgets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Spans of one unit do not meet: in each round a row takes all candidates up to the first that does not fit.

    What is larger than the rest of the budget is out for good, so a few rounds are enough.
    """
    kept = np.zeros(len(spans.row), dtype=np.int64)
    left, open_spans = budgets.copy(), np.flatnonzero(spans.count)
    while True:
        open_spans = open_spans[cost[spans.first[open_spans]] <= left[spans.row[open_spans]]]
        if not len(open_spans):
            taken = np.flatnonzero(kept)
            return taken, kept[taken]
        row, price = spans.row[open_spans], cost[spans.first[open_spans]]
        whole = np.bincount(row, price, minlength=len(left)).astype(np.int64)
        fits = np.cumsum(price) - (np.cumsum(whole) - whole)[row] <= left[row]
        kept[open_spans[fits]] = 1
        left -= np.bincount(row[fits], price[fits], minlength=len(left)).astype(np.int64)
        open_spans = open_spans[~fits]


def _rounds(
    spans: Spans, cost: NDArray[np.int64], budgets: NDArray[np.int64], whole: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The spans taken and the units taken of each."""
    begin = np.searchsorted(spans.row, np.arange(len(budgets) + 1))
    longest = int(spans.count.max(initial=0))
    steps = np.arange(longest)
    # One unit more than there are, for ever taken: the reach of a span at the end of the last row.
    chosen = np.zeros(len(cost) + longest + 1, dtype=bool)
    padded = np.concatenate((cost, np.zeros(longest + 1, dtype=np.int64)))
    kept = np.zeros(len(spans.row), dtype=np.int64)
    left, here = budgets.copy(), begin[:-1].copy()
    active = np.flatnonzero((here < begin[1:]) & (left > 0))
    while len(active):
        span = here[active]
        reach = spans.first[span][:, None] + steps
        spent = np.cumsum(padded[reach], axis=1)
        fits = (steps < spans.count[span][:, None]) & ~chosen[reach] & (spent <= left[active][:, None])
        count = np.logical_and.accumulate(fits, axis=1).sum(axis=1)
        if whole:
            count[count < spans.count[span]] = 0
        some = count > 0
        kept[span] = count
        left[active[some]] -= spent[some, count[some] - 1]
        chosen[reach[steps < count[:, None]]] = True
        here[active] += 1
        active = active[(here[active] < begin[active + 1]) & (left[active] > 0)]
    taken = np.flatnonzero(kept)
    return taken, kept[taken]
