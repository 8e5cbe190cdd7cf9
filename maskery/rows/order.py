"""The order in which rows are visited: visit number -> epoch and row, in closed arithmetic.

One part of R rows: epoch e visits all of them in the order of a keyed permutation. Several parts with weights w: visit
i lies in block i // W of W = sum(w) places; part c has exactly w[c] of them, shuffled by a key of the block. Visits to
a part are numbered through, so every part has epochs of its own and is walked to its end before a row comes again.

Where rows remember those before them, a visit belongs to a lane instead: lane b of B walks rows that follow each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskery import randomness

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Order:
    seed: int
    stream: str
    """What else the order depends on: split and phase."""
    sizes: tuple[int, ...]
    """Rows of each part; rows are numbered through all parts."""
    weights: tuple[int, ...] = (1,)

    def visit(self, visits: Numbers) -> tuple[Numbers, Numbers]:
        """The epoch and the row of each visit."""
        parts, turns = self.turns(visits)
        epochs, rows = np.empty_like(visits), np.empty_like(visits)
        first = 0
        for part, size in enumerate(self.sizes):
            mine = np.flatnonzero(parts == part)
            epochs[mine] = turns[mine] // size
            for epoch in np.unique(epochs[mine]).tolist():
                here = mine[epochs[mine] == epoch]
                rows[here] = first + randomness.permute(self._key(part, epoch), turns[here] % size, size)
            first += size
        return epochs, rows

    def turns(self, visits: Numbers) -> tuple[Numbers, Numbers]:
        """The part that each visit goes to, and how many visits that part had before."""
        if len(self.weights) == 1:
            return np.zeros_like(visits), visits
        weights = np.array(self.weights, dtype=np.int64)
        whole = int(weights.sum())
        blocks, block = np.unique(visits // whole, return_inverse=True)
        keys = randomness.keys(self.seed, f"blocks {self.stream}", blocks)
        drawn = randomness.bits(keys[:, None], "place", np.arange(whole)[None, :])
        owner = np.repeat(np.arange(len(weights)), weights)[np.argsort(drawn, axis=1, kind="stable")]
        before = np.zeros_like(owner)
        for part in range(len(weights)):
            mine = owner == part
            before[mine] = (np.cumsum(mine, axis=1) - 1)[mine]
        place = visits % whole
        parts = owner[block, place]
        return parts, blocks[block] * weights[parts] + before[block, place]

    def _key(self, part: int, epoch: int) -> int:
        name = f"order {self.stream}" + (f" of part {part}" if part else "")
        return randomness.key(self.seed, name, epoch)


@dataclass(frozen=True)
class Lanes:
    """Visit i is turn i // B of lane i % B. In an epoch every lane walks R // B rows that follow each other, one lane
    behind the other; which rows that leaves out changes from epoch to epoch with the place where the first lane begins.
    """

    seed: int
    stream: str
    rows: int
    lanes: int
    begins: tuple[int, ...] = (0,)
    """Rows that go on from no other: the first of a corpus, and of a pass over it."""

    @property
    def walk(self) -> int:
        """Rows of a lane in one epoch."""
        return max(1, self.rows // self.lanes)

    def visit(self, visits: Numbers) -> tuple[Numbers, Numbers]:
        """The epoch and the row of each visit."""
        epochs, turns = np.divmod(visits // self.lanes, self.walk)
        place = np.empty_like(visits)
        for epoch in np.unique(epochs).tolist():
            place[epochs == epoch] = self._first(epoch)
        return epochs, (place + visits % self.lanes * self.walk + turns) % self.rows

    def fresh(self, visits: Numbers) -> NDArray[np.bool_]:
        """Whether the row of a visit has nothing before it that its lane has read."""
        _, rows = self.visit(visits)
        first: NDArray[np.bool_] = visits // self.lanes % self.walk == 0
        return first | np.isin(rows, self.begins)

    def _first(self, epoch: int) -> int:
        """Where the first lane begins; in the first epoch with the text itself."""
        return randomness.key(self.seed, f"lanes {self.stream}", epoch) % self.rows if epoch else 0
