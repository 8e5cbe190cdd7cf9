"""Runs of two and more words that stand often enough in a text, counted level by level in whole arrays.

A run is named by its first part (all but the last word) and its second part (all but the first), which are runs of the
level before: one number for both. A run can only be frequent if both parts are, so each level looks only at places
where they are. Runs never reach over a sentence, nor over a word that parts them.

N words in the text, R different runs of a level. Beside the words themselves this takes 8 bytes for each of the N and
16 for each pair of parts that comes at all; the keys of a block of places come on top.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Tell = Callable[[int, int], None]
"""Work done, work in all."""
BLOCK = 1 << 21
"""Words looked at once."""


class Tally:
    """Different keys, ascending, and how often each came; what is added waits until it is worth a merge."""

    def __init__(self) -> None:
        self._keys: list[Numbers] = []
        self._counts: list[Numbers] = []
        self._waiting = 0

    def add(self, keys: Numbers) -> None:
        if not len(keys):
            return
        found, counts = np.unique(keys, return_counts=True)
        self._keys.append(found)
        self._counts.append(counts.astype(np.int64))
        self._waiting += len(found)
        if self._waiting > max(BLOCK, len(self._keys[0])):
            self.result()

    def result(self) -> tuple[Numbers, Numbers]:
        if not self._keys:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        if len(self._keys) > 1:
            keys, counts = np.concatenate(self._keys), np.concatenate(self._counts)
            self._keys, self._counts = [], []
            order = np.argsort(keys, kind="stable")
            keys, counts = keys[order], counts[order]
            first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
            self._keys, self._counts = [keys[first]], [np.add.reduceat(counts, first)]
        self._waiting = 0
        return self._keys[0], self._counts[0]


@dataclass(frozen=True, kw_only=True)
class Level:
    """The frequent runs of `length` words."""

    length: int
    count: Numbers
    """(R,)"""
    first: Numbers
    """(R,) the run of the level before that is all but the last word; of a word, the word itself."""
    second: Numbers
    """(R,) the run of the level before that is all but the first word."""
    at: NDArray[np.int32]
    """(N,) the run that begins at each word of the text; -1 where none does."""


def levels(
    number: NDArray[np.int32],
    sentence_start: Numbers,
    parting: NDArray[np.bool_],
    *,
    least: int,
    longest: int,
    tell: Tell | None = None,
) -> Iterator[Level]:
    """The runs of 1, 2, ... `longest` words that stand at least `least` times; no level behind an empty one.

    `number` (N,) is the word of each place, -1 for one that is not known; `parting` (W,) says of which words none may
    be in a run. A level's `at` is only good until the next one is asked for.
    """
    count = np.bincount(number[number >= 0], minlength=len(parting)).astype(np.int64)
    usable = np.append((count >= least) & ~parting, False)
    at = np.where(usable[number], number, np.int32(-1))
    words = np.arange(len(count))
    level = Level(length=1, count=count, first=words, second=words, at=at)
    goes_on = np.ones(len(number), dtype=bool)
    goes_on[sentence_start[1:][sentence_start[1:] > 0] - 1] = False
    while True:
        yield level
        if level.length == longest or not (level.at >= 0).any():
            return
        level = _longer(level, goes_on, least, tell)


def _longer(level: Level, goes_on: NDArray[np.bool_], least: int, tell: Tell | None) -> Level:
    """The level of runs with one word more."""
    tally, width, total = Tally(), len(level.count), 2 * len(level.at)
    for begin, _, keys in _pairs(level, goes_on):
        tally.add(keys)
        if tell is not None:
            tell(begin, total)
    keys, count = tally.result()
    often = count >= least
    keys, count = keys[often], count[often]
    at = np.full(len(level.at), -1, dtype=np.int32)
    for begin, places, found in _pairs(level, goes_on) if len(keys) else ():
        run = np.minimum(np.searchsorted(keys, found), len(keys) - 1)
        known = keys[run] == found
        at[places[known]] = run[known]
        if tell is not None:
            tell(total // 2 + begin, total)
    return Level(length=level.length + 1, count=count, first=keys // width, second=keys % width, at=at)


def _pairs(level: Level, goes_on: NDArray[np.bool_]) -> Iterator[tuple[int, Numbers, Numbers]]:
    """Block by block (its first word, places, keys): where a run begins, and another right at the next word."""
    last = len(level.at) - 1
    for begin in range(0, max(last, 0), BLOCK):
        end = min(begin + BLOCK, last)
        one, other = level.at[begin:end], level.at[begin + 1 : end + 1]
        places = np.flatnonzero((one >= 0) & (other >= 0) & goes_on[begin:end])
        yield begin, places + begin, one[places].astype(np.int64) * len(level.count) + other[places]
