"""Many sequences of ids as one tree, followed for a whole array of places at once.

Each depth is a sorted table of (node, id) pairs written as one number: a step is one binary search for every place that
is still on its way. Nothing is hashed, so what is found is what was put in. Numbers of entries and nodes have 4 bytes:
a list of ten million entries is made within a gigabyte.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Whole = NDArray[np.signedinteger[Any]]


class Trie:
    """Equal sequences are one entry. Entries are numbered by their length; those of n ids are
    `first[n]` to `first[n + 1]`."""

    def __init__(self, ids: Whole, length: Whole, vocabulary: int) -> None:
        """`length` (E,) says how the flat ids are cut; a sequence of no id is left out."""
        self._width = vocabulary
        self._steps: list[Numbers] = []
        self._ends: list[NDArray[np.int32]] = []
        self.number: NDArray[np.int32] = np.full(len(length), -1, dtype=np.int32)
        """(E,) the entry of each sequence given; -1 for one without ids."""
        start, node = np.cumsum(length, dtype=np.int64) - length, np.zeros(len(length), dtype=np.int32)
        open_ones, bounds = np.flatnonzero(length), [0, 0]
        while len(open_ones):
            depth = len(self._steps)
            step = node[open_ones].astype(np.int64)
            step *= vocabulary
            step += ids[start[open_ones] + depth]
            table, node[open_ones] = _distinct(step)
            del step
            done = open_ones[length[open_ones] == depth + 1]
            leaf = np.zeros(len(table), dtype=bool)
            leaf[node[done]] = True
            leaves = np.flatnonzero(leaf)
            ends = np.full(len(table), -1, dtype=np.int32)
            ends[leaves] = bounds[-1] + np.arange(len(leaves))
            self.number[done] = ends[node[done]]
            self._steps.append(table)
            self._ends.append(ends)
            bounds.append(bounds[-1] + len(leaves))
            open_ones = open_ones[length[open_ones] > depth + 1]
        self.first: Numbers = np.array(bounds, dtype=np.int64)
        self._given, self._start = ids, np.zeros(len(self), dtype=np.int64)
        known = np.flatnonzero(self.number >= 0)
        self._start[self.number[known]] = start[known]

    @cached_property
    def length(self) -> Numbers:
        """(W,) ids of each entry."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    @cached_property
    def start(self) -> Numbers:
        """(W,) where each entry's ids begin in `ids`."""
        return np.cumsum(self.length) - self.length

    @cached_property
    def ids(self) -> Whole:
        """All entries' ids, end to end."""
        at: Numbers = np.repeat(self._start - self.start, self.length) + np.arange(self.length.sum())
        return self._given[at]

    def __len__(self) -> int:
        return int(self.first[-1])

    @property
    def depth(self) -> int:
        """Ids of the longest entry."""
        return len(self._steps)

    def step(self, depth: int, node: Numbers, ids: Numbers) -> Numbers:
        """The nodes that come behind `node` with these ids, -1 where there is none; `depth` ids lie behind it."""
        table, wanted = self._steps[depth], node * self._width + ids
        at = np.minimum(np.searchsorted(table, wanted), len(table) - 1)
        return np.where(table[at] == wanted, at, -1)

    def entry(self, depth: int, node: Numbers) -> NDArray[np.int32]:
        """The entries that end in nodes reached with the id at `depth`; -1 where none does."""
        return self._ends[depth][node]

    def find(self, ids: Numbers, start: Numbers, length: Whole) -> Numbers:
        """(W,) the entry that each sequence is, -1 for one that is none."""
        found, node = np.full(len(start), -1, dtype=np.int64), np.zeros(len(start), dtype=np.int64)
        on_way = np.flatnonzero((length > 0) & (length <= self.depth))
        for depth in range(int(length[on_way].max(initial=0))):
            reached = self.step(depth, node[on_way], ids[start[on_way] + depth])
            on_way, reached = on_way[reached >= 0], reached[reached >= 0]
            last = length[on_way] == depth + 1
            found[on_way[last]] = self.entry(depth, reached[last])
            node[on_way] = reached
            on_way = on_way[~last]
        return found


def _distinct(values: Numbers) -> tuple[Numbers, NDArray[np.int32]]:
    """The different values, ascending, and which of them each is: `np.unique` with half of its memory."""
    order = np.argsort(values)
    ascending = values[order]
    new = np.ones(len(values), dtype=bool)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    found: Numbers = ascending[new]
    del ascending
    which = np.empty(len(values), dtype=np.int32)
    which[order] = np.cumsum(new, dtype=np.int32) - 1
    return found, which
