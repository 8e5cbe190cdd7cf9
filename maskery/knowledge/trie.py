"""Many sequences of ids as one tree, followed for a whole array of places at once.

Each depth is a sorted table of (node, id) pairs written as one number: a step is one binary search for every place that
is still on its way. Nothing is hashed, so what is found is what was put in.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


class Trie:
    """Equal sequences are one entry. Entries are numbered by their length; those of n ids are
    `first[n]` to `first[n + 1]`."""

    def __init__(self, ids: Numbers, length: Numbers, vocabulary: int) -> None:
        """`length` (E,) says how the flat ids are cut; a sequence of no id is left out."""
        self._width = vocabulary
        self._steps: list[Numbers] = []
        self._ends: list[Numbers] = []
        self.number: Numbers = np.full(len(length), -1, dtype=np.int64)
        """(E,) the entry of each sequence given; -1 for one without ids."""
        start, node = np.cumsum(length) - length, np.zeros(len(length), dtype=np.int64)
        open_ones, bounds = np.flatnonzero(length), [0, 0]
        while len(open_ones):
            depth = len(self._steps)
            step = node[open_ones] * vocabulary + ids[start[open_ones] + depth]
            table, node[open_ones] = np.unique(step, return_inverse=True)
            done = open_ones[length[open_ones] == depth + 1]
            leaves = np.unique(node[done])
            ends = np.full(len(table), -1, dtype=np.int64)
            ends[leaves] = bounds[-1] + np.arange(len(leaves))
            self.number[done] = ends[node[done]]
            self._steps.append(table)
            self._ends.append(ends)
            bounds.append(bounds[-1] + len(leaves))
            open_ones = open_ones[length[open_ones] > depth + 1]
        self.first: Numbers = np.array(bounds, dtype=np.int64)
        one = np.zeros(len(self), dtype=np.int64)
        known = np.flatnonzero(self.number >= 0)
        one[self.number[known]] = known
        self.length: Numbers = length[one]
        """(W,) ids of each entry."""
        self.start: Numbers = np.cumsum(self.length) - self.length
        """(W,) where each entry's ids begin in `ids`."""
        self.ids: Numbers = ids[np.repeat(start[one] - self.start, self.length) + np.arange(self.length.sum())]

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

    def entry(self, depth: int, node: Numbers) -> Numbers:
        """The entries that end in nodes reached with the id at `depth`; -1 where none does."""
        return self._ends[depth][node]

    def find(self, ids: Numbers, start: Numbers, length: Numbers) -> Numbers:
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
