"""Long texts read in windows: one text of a row slides, the others stay whole beside it.

A window goes on `overlap` tokens before the end of the one before it; the last may be shorter. Nothing of the text that
slides is lost. The others get at most half of the room, so that there is always something to see through; where they
stand in a row, windows overlap by at most half of what is left, so that they get on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maskery.tasks.framing.cut import Counts, level


class Slid(NamedTuple):
    """W windows of U rows; stretches are counted in what is kept of each text."""

    row: Counts
    """(W,) the row that a window is of."""
    part: Counts
    """(W,) its number within the row, from 0."""
    begin: Counts
    """(W,K)"""
    end: Counts
    kept: Counts
    """(U,K) what all windows of a row see together."""
    narrowed: Counts
    """(n,) rows whose windows overlap by less than was asked."""


def slide(kept: Counts, room: int, overlap: int, slider: Counts) -> Slid:
    """Windows of rows whose texts have `kept` (U,K) tokens, where `room` are allowed; text `slider` (U,) slides."""
    rows = np.arange(len(kept))
    long = kept.sum(axis=1) > room
    others = kept.copy()
    others[rows, slider] = 0
    others = np.where(long[:, None], level(others, np.full(len(kept), room // 2)), others)
    text = kept[rows, slider]
    view = np.where(long, room - others.sum(axis=1), np.maximum(text, 1))
    shared = np.where(view < room, np.minimum(overlap, view // 2), overlap)
    step = view - shared
    number = 1 + np.maximum(0, -((view - text) // step))  # rounded up
    row = np.repeat(rows, number)
    part = np.arange(len(row)) - np.repeat(np.cumsum(number) - number, number)
    begin, end = np.zeros((len(row), kept.shape[1]), dtype=np.int64), others[row]
    at = np.arange(len(row))
    begin[at, slider[row]] = part * step[row]
    end[at, slider[row]] = np.minimum(part * step[row] + view[row], text[row])
    others[rows, slider] = text
    return Slid(row, part, begin, end, others, np.flatnonzero((number > 1) & (shared < overlap)))
