"""The order in which the slots of a row become known, where that is not the order of the text (XLNet).

    what is not chosen             known from the beginning, to all
    what is chosen, and the ends   one after the other, in an order drawn for the row
    the second half of a row       the same again, behind all of the first half

The chosen are asked for. The specials that frame a row take part in the order and are never asked, as in the authors'
program; a [SEP] between two documents is text, known from the beginning.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from maskery.edit import ASKED
from maskery.randomness import Keys, bits
from maskery.rows.ragged import Rows


def in_order(rows: Rows, row_keys: Keys) -> Rows:
    """The rows with `asked` and `order`: all permutations of what is drawn are as likely."""
    asked = np.isin(rows.edit, ASKED)
    moving = np.flatnonzero(asked | _framing(rows))
    part = np.zeros(len(rows.ids), dtype=np.int64) if rows.part is None else rows.part.astype(np.int64)
    walk = 2 * rows.row + part
    drawn = bits(row_keys[rows.row[moving]], "order", rows.slot[moving])
    turn = moving[np.lexsort((drawn, walk[moving]))]
    many = np.bincount(walk[moving], minlength=2 * len(rows))
    order = np.zeros(len(rows.ids), dtype=np.int64)
    order[turn] = 1 + np.arange(len(turn)) - (np.cumsum(many) - many)[walk[turn]]
    second = part > 0
    order[second] += 1 + many[2 * rows.row[second]]
    return replace(rows, asked=asked, order=order)


def _framing(rows: Rows) -> NDArray[np.bool_]:
    """(N,) the specials at the beginning and the end of a row, and those that end a segment."""
    if not len(rows.ids):
        return rows.special
    ends = np.append(rows.segment[1:] != rows.segment[:-1], True)
    filled = rows.length > 0
    ends[rows.start[1:][filled] - 1] = True
    framing: NDArray[np.bool_] = rows.special & (ends | (rows.slot == 0))
    return framing
