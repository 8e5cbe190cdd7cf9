"""Candidate spans: every unit once as a first unit, in random order, with a length drawn by the law.

All draws are a function of the row's key and of places within the row, so a row's spans do not depend on the rows
beside it. A span ends at the latest where its stretch of text does: it never reaches over a [SEP].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskery.corruption.units import Units
from maskery.randomness import Keys, bits, uniform
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
    return Spans(first=first, count=np.minimum(drawn, _left(units)[first]), drawn=drawn, row=units.row)


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


def _left(units: Units) -> NDArray[np.int64]:
    """(U,) units from each to the end of its stretch of text, itself included."""
    number = np.arange(len(units.start))
    ends = np.ones(len(number), dtype=bool)
    ends[:-1] = units.start[:-1] + units.length[:-1] != units.start[1:]
    last = np.flatnonzero(ends)
    found: NDArray[np.int64] = last[np.searchsorted(last, number)] - number + 1
    return found
