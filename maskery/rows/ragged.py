"""Rows as flat arrays without padding, so that a corruption may also make a row longer or shorter.

B rows, N slots of all rows together; row b is the slots start[b] .. start[b+1].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maskery.edit import Edit
from maskery.rows.plan import RowPlan, TokenStore


@dataclass(frozen=True, kw_only=True)
class Rows:
    number: NDArray[np.int64]
    """(B,) row numbers of the plan."""
    start: NDArray[np.int64]
    """(B+1,)"""
    ids: NDArray[np.int32]
    """(N,) what the network will read."""
    original: NDArray[np.int32]
    """(N,) ids before corruption."""
    flags: NDArray[np.uint8]
    """(N,) the store's flags; 0 for specials."""
    special: NDArray[np.bool_]
    """(N,) [CLS] and [SEP]; a [SEP] in the text is none."""
    segment: NDArray[np.uint8]
    document: NDArray[np.int32]
    """(N,) which piece of its row; [CLS] belongs to the first, a [SEP] to the piece before it."""
    edit: NDArray[np.uint8]
    """(N,) an `Edit`."""
    label: NDArray[np.int64]
    """(B,) the pair's label, -1 if the row is no pair."""
    mode: NDArray[np.uint8] | None = None
    """(B,) a `Mode`, where rows are not all read as the network reads."""
    order: NDArray[np.int64] | None = None
    """(N,) the order in which slots become known, where that is not the order of the text (XLNet)."""
    asked: NDArray[np.bool_] | None = None
    """(N,) the slots that are asked for in that order."""
    position: NDArray[np.int64] | None = None
    """(N,) position numbers, where they are not those of the slots (MASS)."""

    def __len__(self) -> int:
        return len(self.number)

    @property
    def length(self) -> NDArray[np.int64]:
        """(B,) slots of each row."""
        return np.diff(self.start)

    @cached_property
    def row(self) -> NDArray[np.int64]:
        """(N,) the row of each slot."""
        return np.repeat(np.arange(len(self)), self.length)

    @cached_property
    def slot(self) -> NDArray[np.int64]:
        """(N,) the place of each slot in its row."""
        return np.arange(len(self.ids)) - np.repeat(self.start[:-1], self.length)


def gather(plan: RowPlan, numbers: ArrayLike, store: TokenStore) -> Rows:
    """Read the rows `numbers` of the plan: as many vector operations for one row as for ten thousand."""
    rows = np.atleast_1d(np.asarray(numbers, dtype=np.int64))
    pieces = plan.row_start[rows + 1] - plan.row_start[rows]
    piece_of_row = np.concatenate(([0], np.cumsum(pieces)))
    within = np.arange(piece_of_row[-1]) - np.repeat(piece_of_row[:-1], pieces)
    piece = np.repeat(plan.row_start[rows], pieces) + within
    leading = within == 0

    size = plan.piece_end[piece] - plan.piece_start[piece] + 1 + leading
    block = np.concatenate(([0], np.cumsum(size)))
    source = np.arange(block[-1]) + np.repeat(plan.piece_start[piece] - leading - block[:-1], size)
    first, last = block[:-1][leading], block[1:] - 1
    source[first] = source[last] = 0
    special = np.zeros(len(source), dtype=bool)
    special[first] = special[last] = True

    ids = store.tokens[source].astype(np.int32)
    ids[first], ids[last] = store.specials.cls, store.specials.sep
    flags = np.asarray(store.flags[source], dtype=np.uint8)
    flags[special] = 0
    return Rows(
        number=rows,
        start=block[piece_of_row],
        ids=ids,
        original=ids.copy(),
        flags=flags,
        special=special,
        segment=np.repeat(plan.piece_segment[piece], size),
        document=np.repeat(within.astype(np.int32), size),
        edit=np.full(len(ids), Edit.NONE, dtype=np.uint8),
        label=plan.label[rows].astype(np.int64),
    )
