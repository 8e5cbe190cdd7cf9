"""Rows as flat arrays without padding, so that a corruption may also make a row longer or shorter.

B rows, N slots of all rows together; row b is the slots start[b] .. start[b+1].
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maskery.corpus.encode import Flag
from maskery.edit import Edit
from maskery.rows.plan import RowPlan, TokenStore

_BEGINNINGS = ~Flag.CAPITAL & 255
"""Flags about where something begins or goes on."""


class EndToEnd:
    """Rows of different lengths whose slots lie end to end. Shapes: B rows, N slots."""

    start: NDArray[np.int64]
    """(B+1,) where each row begins; and N."""

    @property
    def length(self) -> NDArray[np.int64]:
        """(B,) slots of each row."""
        return np.diff(self.start)

    @cached_property
    def row(self) -> NDArray[np.int64]:
        """(N,) the row of each slot."""
        return np.repeat(np.arange(len(self.start) - 1), self.length)

    @cached_property
    def slot(self) -> NDArray[np.int64]:
        """(N,) the place of each slot in its row."""
        return np.arange(self.start[-1]) - np.repeat(self.start[:-1], self.length)


@dataclass(frozen=True, kw_only=True)
class Rows(EndToEnd):
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
    """(N,) position numbers, where they are not those of the slots (MASS, and text that is read from its end)."""
    part: NDArray[np.uint8] | None = None
    """(N,) which half of its row, where the second half is ordered behind the first (XLNet)."""
    next: NDArray[np.int32] | None = None
    """(N,) the token that each slot is asked to write, where these are the rows of a decoder."""

    def __len__(self) -> int:
        return len(self.number)


def gather(plan: RowPlan, numbers: ArrayLike, store: TokenStore) -> Rows:
    """Read the rows `numbers` of the plan: as many vector operations for one row as for ten thousand."""
    rows = np.atleast_1d(np.asarray(numbers, dtype=np.int64))
    pieces = plan.row_start[rows + 1] - plan.row_start[rows]
    piece_of_row = np.concatenate(([0], np.cumsum(pieces)))
    within = np.arange(piece_of_row[-1]) - np.repeat(piece_of_row[:-1], pieces)
    row_of = np.repeat(np.arange(len(rows)), pieces)
    piece = plan.row_start[rows][row_of] + within
    leading, ended = (within == 0) & plan.framed, ~plan.piece_open[piece]

    size = plan.piece_end[piece] - plan.piece_start[piece] + ended + leading
    block = np.concatenate(([0], np.cumsum(size)))
    source = np.arange(block[-1]) + np.repeat(plan.piece_start[piece] - leading - block[:-1], size)
    first, last = block[:-1][leading], block[1:][ended] - 1
    if plan.reuse:
        source = _turned(plan, np.repeat(piece, size), np.repeat(plan.backward[rows][row_of], size), source)
    source[first] = source[last] = 0
    special = np.zeros(len(source), dtype=bool)
    special[first] = special[last] = True

    ids = store.tokens[source].astype(np.int32)
    ids[first], ids[last] = store.specials.cls, store.specials.sep
    flags = np.asarray(store.flags[source], dtype=np.uint8)
    flags[special] = 0
    made = Rows(
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
    return _in_halves(made, plan, source, store) if plan.reuse else made


def _turned(
    plan: RowPlan, piece: NDArray[np.int64], back: NDArray[np.bool_], source: NDArray[np.int64]
) -> NDArray[np.int64]:
    """(N,) places in the store, those of pieces that are read from their ends in reverse."""
    return np.where(back, plan.piece_start[piece] + plan.piece_end[piece] - 1 - source, source)


def _in_halves(rows: Rows, plan: RowPlan, source: NDArray[np.int64], store: TokenStore) -> Rows:
    """Rows that end with [CLS], with their halves told apart. Where text is read from its end, positions fall, and a
    word begins with its last token: what a token's flags say of a beginning is told by the token behind it."""
    last = rows.start[1:] - 1
    rows.ids[last] = rows.original[last] = store.specials.cls
    back = plan.backward[rows.number][rows.row]
    if not back.any():
        return replace(rows, part=(rows.slot >= plan.reuse).astype(np.uint8))
    behind = np.concatenate(([0], source[:-1]))
    next_to = back & ~rows.special & (behind == source + 1)
    flags = rows.flags.copy()
    flags[back] &= ~np.uint8(_BEGINNINGS)
    flags[next_to] |= np.asarray(store.flags[behind[next_to]], dtype=np.uint8) & np.uint8(_BEGINNINGS)
    position = np.where(back, rows.length[rows.row] - 1 - rows.slot, rows.slot)
    return replace(rows, flags=flags, position=position, part=(rows.slot >= plan.reuse).astype(np.uint8))


def taken(rows: Rows, source: NDArray[np.int64]) -> Rows:
    """The rows made of the given slots, in this order; rows themselves stay in their order."""
    size = np.bincount(rows.row[source], minlength=len(rows))
    per_slot = {
        item.name: getattr(rows, item.name)[source]
        for item in fields(rows)
        if item.name not in ("number", "start", "label", "mode") and getattr(rows, item.name) is not None
    }
    return replace(rows, start=np.concatenate(([0], np.cumsum(size))), **per_slot)
