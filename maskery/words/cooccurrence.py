"""How often words stand near each other: the table X that GloVe learns from, counted in whole arrays.

Two words of a sentence that are d words apart, d up to the window, add 1/d to X[i, j] and to X[j, i]; a word beside
itself adds to its one cell twice. As in the origin's cooccur.c, words that were left out are taken out first and do not
count as distance, and what a line is there is a sentence here. X is symmetric: only cells with i <= j are kept.

The cells are counted in ranges of i, each in a walk over the text. A range is chosen so that about `AT_ONCE` meetings
of two words fill it, or more of a huge text, which is walked over `MOST` times at most; its meetings are sorted as one
number each (cell, distance) and summed in that order, so the result is the same wherever it is made. Memory is that of
the cells, 12 bytes each, twice when they are put together, and on top of them 40 bytes for each of `AT_ONCE` meetings,
or for each cell of a range where these are more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskery.words.vocabulary import Told, Words

AT_ONCE = 1 << 24
"""Meetings of two words that are sorted at once."""
MOST = 16
"""Walks over the text, so that time grows with the text and not with its square."""
BLOCK = 1 << 20
"""Words that are looked at at once."""


class Pairs(NamedTuple):
    """P pairs of words that stand near each other, in ascending order; every pair once."""

    one: NDArray[np.int32]
    """(P,)"""
    other: NDArray[np.int32]
    """(P,) not below `one`."""
    weight: NDArray[np.float32]
    """(P,) X[one, other], which is X[other, one]."""

    @property
    def cells(self) -> int:
        """Cells of X that are not zero."""
        return 2 * len(self.one) - int((self.one == self.other).sum())


class _Text(NamedTuple):
    """The K words that stay."""

    number: NDArray[np.int32]
    sentence: NDArray[np.int32]


_Walked = Callable[[float], None]
"""The part of the text that lies behind."""
_Keys = NDArray[np.int64]
_Sums = NDArray[np.float64]


def count_pairs(words: Words, window: int = 15, progress: Told | None = None) -> Pairs:
    """Count every pair up to `window` words apart in a sentence."""
    size, text = len(words.words), _kept(words)
    meetings = np.zeros(size, dtype=np.int64)
    most = 1 + min(MOST, 1 + len(text.number) * window // AT_ONCE)

    def walk(before: float, work: float) -> _Walked:
        return lambda part: progress(before + work * part, most) if progress is not None else None

    for lower, _, _ in _meetings(text, window, walk(0, 1)):
        meetings += np.bincount(lower, minlength=size)
    ranges = list(_ranges(meetings))
    parts, work = [], (most - 1) / len(ranges)
    for number, (begin, end) in enumerate(ranges):
        keys, sums = _range(_meetings(text, window, walk(1 + work * number, work)), begin, end, size, window)
        one = (keys // size).astype(np.int32)
        other = (keys % size).astype(np.int32)
        parts.append(Pairs(one, other, np.where(one == other, 2 * sums, sums).astype(np.float32)))
    if progress is not None:
        progress(1, 1)
    return Pairs(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _kept(words: Words) -> _Text:
    known = words.number >= 0
    sentence = np.repeat(
        np.arange(len(words.sentence_start) - 1, dtype=np.int32), np.diff(words.sentence_start).astype(np.int64)
    )
    return _Text(words.number[known], sentence[known])


_Meeting = tuple[NDArray[np.int32], NDArray[np.int32], int]
"""The lower and the higher word of each meeting at one distance, and the distance."""


def _meetings(text: _Text, window: int, walked: _Walked) -> Iterator[_Meeting]:
    """Block by block, distance by distance."""
    for begin in range(0, len(text.number), BLOCK):
        walked(begin / len(text.number))
        for distance in range(1, window + 1):
            here = slice(begin, max(begin, min(begin + BLOCK, len(text.number) - distance)))
            there = slice(here.start + distance, here.stop + distance)
            near = text.sentence[here] == text.sentence[there]
            if not near.any():
                break
            left, right = text.number[here][near], text.number[there][near]
            yield np.minimum(left, right), np.maximum(left, right), distance


def _ranges(meetings: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """At most `MOST` ranges of words, each with about `AT_ONCE` meetings, or of one word."""
    upto = np.concatenate(([0], np.cumsum(meetings)))
    # A range ends before the word that would overfill it: half of them could hold next to nothing.
    room = max(AT_ONCE, 2 * int(upto[-1]) // MOST)
    begin = 0
    while begin < len(meetings):
        end = max(begin + 1, int(np.searchsorted(upto, upto[begin] + room, side="right")) - 1)
        yield begin, end
        begin = end


def _range(met: Iterator[_Meeting], begin: int, end: int, size: int, window: int) -> tuple[_Keys, _Sums]:
    """The cells (numbered i * size + j) with i in a range, and their sums."""
    bits = window.bit_length()
    keys, sums = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float64)
    waiting: list[_Keys] = []
    held = 0
    for lower, higher, distance in met:
        mine = (lower >= begin) & (lower < end)
        cell = lower[mine].astype(np.int64) * size + higher[mine]
        waiting.append((cell << bits) | distance)
        held += len(cell)
        if held > max(AT_ONCE, len(keys)):  # only of a word that is frequent beyond measure, or in a huge text
            keys, sums = _merged(keys, sums, waiting, bits)
            waiting, held = [], 0
    return _merged(keys, sums, waiting, bits)


def _merged(keys: _Keys, sums: _Sums, waiting: list[_Keys], bits: int) -> tuple[_Keys, _Sums]:
    """Sums of cells with the meetings that wait added; `waiting` is emptied."""
    packed = np.concatenate(waiting) if waiting else np.zeros(0, dtype=np.int64)
    waiting.clear()
    packed.sort()
    share = np.concatenate(([0.0], 1 / np.arange(1, 1 << bits)))[packed & ((1 << bits) - 1)]
    packed >>= bits
    new = _summed(packed, share)
    if not len(keys):
        return new
    keys, sums = np.concatenate((keys, new[0])), np.concatenate((sums, new[1]))
    order = np.argsort(keys, kind="stable")
    return _summed(keys[order], sums[order])


def _summed(keys: _Keys, weights: _Sums) -> tuple[_Keys, _Sums]:
    if not len(keys):
        return keys, weights
    first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return keys[first], np.add.reduceat(weights, first)
