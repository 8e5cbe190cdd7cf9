"""Span laws: which runs of units are offered for choosing, and in which order.

A law draws candidate spans for every row; the budget then takes them from the front. All draws are a function of
the row's key and of places within the row, so a row's spans do not depend on the rows beside it. `single` offers every
unit once, in uniformly random order; a law with lengths offers spans of several units, at random places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from maskery.corruption.config import SpanConfig
from maskery.corruption.units import Units
from maskery.randomness import Keys, bits
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
    row: NDArray[np.int64]
    """(G,) ascending."""


class Law(Protocol):
    def __call__(self, rows: Rows, units: Units, config: SpanConfig, row_keys: Keys) -> Spans: ...


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


def single(rows: Rows, units: Units, config: SpanConfig, row_keys: Keys) -> Spans:
    first = shuffled(rows, units, row_keys)
    return Spans(first=first, count=np.ones_like(first), row=units.row)
