"""Words, runs and windows of rows: what is counted when rates are measured."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maskery.corruption.units import word_starts
from maskery.rows.ragged import Rows


def word_numbers(rows: Rows) -> NDArray[np.int64]:
    """(N,) the word of each slot, counted over all rows; -1 for specials.

    Words are those of the store; where a row was cut within one, what is left of it is a word.
    """
    return np.where(rows.special, -1, np.cumsum(word_starts(rows)) - 1)


def run_words(chosen: NDArray[np.bool_], word: NDArray[np.int64]) -> NDArray[np.int64]:
    """Words touched by each maximal run of chosen slots. Rows begin with a special, so no run joins two of them."""
    first, last = _runs(chosen)
    return word[last] - word[first] + 1


def windows(rows: Rows, inside: NDArray[np.bool_], size: int) -> NDArray[np.int64]:
    """(B,) how many windows of `size` neighbouring slots have all of them `inside`."""
    first, last = _runs(inside)
    many = np.maximum(0, last - first + 2 - size)
    return np.bincount(rows.row[first], many, minlength=len(rows)).astype(np.int64)


def per_row(rows: Rows, which: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(B,) how many slots of each row are among these (N,)."""
    return np.bincount(rows.row[which], minlength=len(rows))


def _runs(inside: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and last slot of every run."""
    edges = np.diff(inside.astype(np.int8), prepend=0, append=0)
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
