"""Candidate spans: every unit once as a first unit, in random order, with a length drawn by the law.

All draws are a function of the row's key and of places within the row, so a row's spans do not depend on the rows
beside it. A span ends at the latest where its stretch of text does: it never reaches over a [SEP]. `fragments` is the
other way to offer: one span for each stretch, to be taken as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskery.corruption.units import Units
from maskery.randomness import Keys, below, bits, uniform
from maskery.rows.ragged import Rows

_PLACES = 16
"""Low bits of a sorting word that hold a unit's place in its row."""


@dataclass(frozen=True, kw_only=True)
class Spans:
    """G candidate spans, row after row, within a row in the order in which they are to be taken."""

    first: NDArray[np.int64]
    """(G,) the first unit."""
    count: NDArray[np.int64]
    """(G,) consecutive units of the same row."""
    drawn: NDArray[np.int64]
    """(G,) units as the law drew them, before the text's end cut the span."""
    row: NDArray[np.int64]
    """(G,) ascending."""
    unlimited: bool = False
    """All are taken as they are: the law has spent the budget itself."""


def offer(rows: Rows, units: Units, lengths: NDArray[np.float64], row_keys: Keys) -> Spans:
    """The candidates for a law's table of `lengths`."""
    first = shuffled(rows, units, row_keys)
    if lengths[1:2].sum() == 1.0:
        drawn = np.ones_like(first)
        return Spans(first=first, count=drawn, drawn=drawn, row=units.row)
    chance = uniform(row_keys[units.row], "span length", rows.slot[units.start[first]])
    edges = np.cumsum(lengths)
    # Divided by the last edge, so that rounding leaves no gap above it.
    drawn = np.searchsorted(edges / edges[-1], chance, side="right")
    return Spans(first=first, count=np.minimum(drawn, units_left(units)[first]), drawn=drawn, row=units.row)


def fragments(rows: Rows, units: Units, rate: float, ends: float, row_keys: Keys) -> Spans:
    """One span of each stretch of text: `rate` of its units, rounded by a draw, at least one. A share of `ends` begins
    at the front and as many stop at the end; of the others all starts are as likely."""
    last = _last_of_stretch(units)
    begin = np.concatenate(([0], last[:-1] + 1))[: len(last)]
    many, row, at = last - begin + 1, units.row[begin], rows.slot[units.start[begin]]
    own = row_keys[row]
    count = np.floor(rate * many + uniform(own, "fragment length", at)).astype(np.int64)
    count = np.maximum(count, 1) if rate > 0 else np.zeros_like(count)
    first = begin + below(own, "fragment start", many - count + 1, at)
    if ends > 0:
        where = uniform(own, "fragment place", at)
        first = np.where(where < ends, begin, np.where(where >= 1 - ends, last + 1 - count, first))
    return Spans(first=first, count=count, drawn=count, row=row, unlimited=True)


def only_whole(spans: Spans) -> Spans:
    """Without the spans that the end of their text has cut."""
    kept = spans.count == spans.drawn
    return Spans(first=spans.first[kept], count=spans.count[kept], drawn=spans.drawn[kept], row=spans.row[kept])


def shuffled(rows: Rows, units: Units, row_keys: Keys) -> NDArray[np.int64]:
    """The unit numbers, row after row, each row's in an order drawn with its key.

    One sort of words made of 48 random bits and the unit's place: a tie cannot fall differently in another batch.
    """
    begin = np.searchsorted(units.row, np.arange(len(rows) + 1))
    many = np.diff(begin)
    widest = int(many.max(initial=0))
    if widest >> _PLACES:
        raise ValueError(f"a row of {widest} units: at most {1 << _PLACES}")
    place = np.arange(len(units.row)) - begin[units.row]
    words = bits(row_keys[units.row], "choose", rows.slot[units.start])
    words = (words >> np.uint64(_PLACES) << np.uint64(_PLACES)) | place.astype(np.uint64)
    table = np.full((len(rows), widest), np.iinfo(np.uint64).max, dtype=np.uint64)
    taken = np.arange(widest) < many[:, None]
    table[taken] = words
    table.sort(axis=1)
    return (table[taken] & np.uint64((1 << _PLACES) - 1)).astype(np.int64) + begin[units.row]


def units_left(units: Units) -> NDArray[np.int64]:
    """(U,) units from each to the end of its stretch of text, itself included."""
    last, number = _last_of_stretch(units), np.arange(len(units.start))
    found: NDArray[np.int64] = last[np.searchsorted(last, number)] - number + 1
    return found


def _last_of_stretch(units: Units) -> NDArray[np.int64]:
    """The last unit of each stretch of text: a special, or nothing, stands behind it."""
    ends = np.ones(len(units.start), dtype=bool)
    ends[:-1] = units.start[:-1] + units.length[:-1] != units.start[1:]
    return np.flatnonzero(ends)
