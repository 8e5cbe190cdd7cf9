"""Units: the smallest things that corruption takes whole. A unit is a run of slots of one row.

A builder reads the rows and answers with all units in order: every slot that is not [CLS] or [SEP] is in exactly one.
`token` makes one of each slot, `word` of each word of the store. `phrase` and `entity` take the stretches that the
store marks, and words elsewhere, as ERNIE does. Where a row is cut within a word, what is left of it is a unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from maskery.corpus.encode import Flag
from maskery.rows.ragged import Rows


@dataclass(frozen=True, kw_only=True)
class Units:
    """U units, ascending, not overlapping."""

    start: NDArray[np.int64]
    """(U,) flat slot."""
    length: NDArray[np.int64]
    """(U,) slots."""
    row: NDArray[np.int64]
    """(U,)"""


class Unit(Protocol):
    def __call__(self, rows: Rows) -> Units: ...


def token(rows: Rows) -> Units:
    start = np.flatnonzero(~rows.special)
    return Units(start=start, length=np.ones_like(start), row=rows.row[start])


def word(rows: Rows) -> Units:
    return _beginning(rows, word_starts(rows))


def phrase(rows: Rows) -> Units:
    return _beginning(rows, _without_inside(rows, Flag.IN_PHRASE))


def entity(rows: Rows) -> Units:
    return _beginning(rows, _without_inside(rows, Flag.IN_ENTITY))


def word_starts(rows: Rows) -> NDArray[np.bool_]:
    """(N,) the first slots of words; one that follows a special begins what is left of its word."""
    starts: NDArray[np.bool_] = ~rows.special & (((rows.flags & Flag.WORD) != 0) | _behind_special(rows))
    return starts


def words_in(rows: Rows, units: Units) -> NDArray[np.int64]:
    """(U,) how many words begin in each unit."""
    begun = np.concatenate(([0], np.cumsum(word_starts(rows))))
    words: NDArray[np.int64] = begun[units.start + units.length] - begun[units.start]
    return words


def _behind_special(rows: Rows) -> NDArray[np.bool_]:
    """(N,) where a stretch of text begins: behind a special, and at the beginning of a row or of its second half."""
    if not len(rows.special):
        return rows.special
    behind = np.concatenate(([True], rows.special[:-1]))
    behind[rows.start[:-1][rows.length > 0]] = True
    if rows.part is not None:
        behind[1:] |= rows.part[1:] != rows.part[:-1]
    return behind


def _without_inside(rows: Rows, inside: Flag) -> NDArray[np.bool_]:
    """The word starts that are not in the middle of a marked stretch."""
    middle = ((rows.flags & inside) != 0) & ~_behind_special(rows)
    starts: NDArray[np.bool_] = word_starts(rows) & ~middle
    return starts


def _beginning(rows: Rows, starts: NDArray[np.bool_]) -> Units:
    """Units from their first slots: each ends where the next begins or a special stands."""
    edges = np.append(np.flatnonzero(starts | rows.special), len(starts))
    first = np.flatnonzero(~rows.special[edges[:-1]])
    start = edges[first]
    return Units(start=start, length=edges[first + 1] - start, row=rows.row[start])
