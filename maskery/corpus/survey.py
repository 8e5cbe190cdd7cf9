"""The first walk over the text: is all of it readable, how long is it, which documents are copies of earlier ones?

Whatever is wrong with the input is found here, before hours of work. Documents are compared by a hash of 128 bits: for
n documents the chance that two different ones match is below n^2 / 2^129, so 10^-21 for a billion. Memory holds 32
bytes for each document, never a document.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from maskery.corpus.lines import Errors, Tally
from maskery.corpus.reader import lines
from maskery.corpus.sources import Progress, Source

_TELL = 1000
_BLOCK = 1 << 16
"""Characters that are hashed at once; a longer document is hashed in parts."""


@dataclass(frozen=True)
class Survey:
    skip: bytes
    """A byte for each document: 1 if it is a copy of an earlier one and is left out."""
    hashes: NDArray[np.uint64]
    """Of the documents kept, by which some are held out: copies are gone before that, so none can be on both sides."""
    characters: int
    """Of the documents kept."""

    @property
    def duplicates(self) -> int:
        return sum(self.skip)


def survey(sources: Iterable[Source], errors: Errors, told: Progress, *, drop: bool) -> Survey:
    """Read everything once; `drop` says that copies are to be left out."""
    tally, walk = Tally(), _Hashes()
    for count, line in enumerate(lines(sources, errors=errors, tally=tally)):
        if line:
            walk.add(line)
        else:
            walk.end()
        if count % _TELL == 0:
            told(tally.bytes_done, None)
    full = np.frombuffer(walk.full, dtype="<u8").reshape(-1, 2)
    copies = _later_copies(full) if drop else np.zeros(len(full), dtype=bool)
    kept = np.array(walk.short, dtype=np.uint64)[~copies]
    sizes = np.array(walk.sizes, dtype=np.int64)[~copies]
    return Survey(copies.astype(np.uint8).tobytes(), kept, int(sizes.sum()))


class _Hashes:
    """Two hashes and the length of each document, taken line by line."""

    def __init__(self) -> None:
        self.short, self.sizes, self.full = array("Q"), array("Q"), bytearray()
        self._begin()

    def _begin(self) -> None:
        self._short, self._full, self._size = blake2b(digest_size=8), blake2b(digest_size=16), 0
        self._held: list[str] = []
        self._hashed = 0

    def add(self, line: str) -> None:
        self._held.append(line)
        self._size += len(line)
        if self._size - self._hashed > _BLOCK:
            self._hash()

    def _hash(self) -> None:
        data = "\n".join([*self._held, ""]).encode()
        self._short.update(data)
        self._full.update(data)
        self._held, self._hashed = [], self._size

    def end(self) -> None:
        self._hash()
        self.short.append(int.from_bytes(self._short.digest(), "little"))
        self.full += self._full.digest()
        self.sizes.append(self._size)
        self._begin()


def _later_copies(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """(D, 2) -> (D,): which are equal to an earlier one."""
    order = np.lexsort((hashes[:, 0], hashes[:, 1]))
    ordered = hashes[order]
    copies = np.zeros(len(hashes), dtype=bool)
    copies[order[1:]] = (ordered[1:] == ordered[:-1]).all(axis=1)
    return copies
