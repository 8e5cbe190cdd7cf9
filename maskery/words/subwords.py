"""fastText's n-grams: numbers of the n-grams of a word, and a vector for a word that training never saw.

A word is written `<word>`; its n-grams of 3 to 6 characters are hashed (FNV-1a over the UTF-8 bytes, a byte above 127
taken as a negative number) to 2,000,000 numbers. G numbers have been trained; the others still are where they began,
which the seed says, so they need no place on a disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskery.randomness import keys, uniform

_OFFSET, _PRIME = np.uint32(2166136261), np.uint32(16777619)
_STREAM = "words.ngrams"


@dataclass(frozen=True, kw_only=True)
class Subwords:
    bucket: NDArray[np.int64]
    """(G,) the trained numbers, ascending."""
    matrix: NDArray[np.float32]
    """(G,D)"""
    shortest: int
    longest: int
    buckets: int
    seed: int

    def vector(self, word: str) -> NDArray[np.float32] | None:
        """The mean of the word's n-grams; None if training saw none of them."""
        asked, _ = ngrams([word], self.shortest, self.longest, self.buckets)
        if not asked.size or not self.bucket.size:
            return None
        place = np.minimum(np.searchsorted(self.bucket, asked), self.bucket.size - 1)
        known = self.bucket[place] == asked
        if not known.any():
            return None
        rows = self.matrix[place]
        if not known.all():
            rows[~known] = initial_ngrams(self.seed, asked[~known], self.matrix.shape[1])
        mean: NDArray[np.float32] = rows.sum(axis=0) / np.float32(asked.size)
        return mean


def initial_ngrams(seed: int, bucket: NDArray[np.int64], width: int) -> NDArray[np.float32]:
    """Where the rows of these numbers begin."""
    return initial_rows(seed, _STREAM, bucket, width, 1 / width)


def initial_rows(seed: int, stream: str, row: NDArray[np.int64], width: int, reach: float) -> NDArray[np.float32]:
    """Rows drawn evenly from -reach to reach; each is a function of (seed, stream, its number)."""
    made = np.empty((row.size, width), dtype=np.float32)
    for start in range(0, row.size, 1 << 14):
        block = slice(start, start + (1 << 14))
        drawn = uniform(keys(seed, stream, row[block])[:, None], "vector", np.arange(width))
        made[block] = (2 * drawn - 1) * reach
    return made


def ngrams(
    words: Sequence[str], shortest: int, longest: int, buckets: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of the n-grams of all words, word by word, by first character, then by length; and how many each has."""
    data = [f"<{word}>".encode(errors="surrogatepass") for word in words]
    sizes = np.fromiter(map(len, data), dtype=np.int64, count=len(data))
    byte = np.frombuffer(b"".join(data), dtype=np.uint8)
    ends = np.cumsum(sizes)
    owner = np.repeat(np.arange(len(data)), sizes)
    opens = (byte & 0xC0) != 0x80
    start = np.flatnonzero(opens)
    found = _hashes(byte, opens, start, ends[owner[start]], ends[owner[start]] - sizes[owner[start]], shortest, longest)
    place, value = found
    order = np.argsort(place, kind="stable")
    counts = np.bincount(owner[place], minlength=len(data))
    return (value[order] % np.uint32(buckets)).astype(np.int64), counts


def _hashes(
    byte: NDArray[np.uint8],
    opens: NDArray[np.bool_],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    begin: NDArray[np.int64],
    shortest: int,
    longest: int,
) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """(first byte, hash) of each n-gram, the shorter first: all places take one byte after another together."""
    signed = byte.view(np.int8).astype(np.int32).view(np.uint32)
    closes = np.append(opens[1:], True)
    value = np.full(start.size, _OFFSET, dtype=np.uint32)
    here, length = start.copy(), np.zeros(start.size, dtype=np.int64)
    places, values = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.uint32)]
    while start.size:
        value = (value ^ signed[here]) * _PRIME
        length += closes[here]
        here += 1
        edge = (length == 1) & ((start == begin) | (here == end))
        whole = closes[here - 1] & (length >= shortest) & ~edge
        places.append(start[whole])
        values.append(value[whole])
        on = (here < end) & ((length < longest) | ~closes[here - 1])
        start, end, begin, here = start[on], end[on], begin[on], here[on]
        value, length = value[on], length[on]
    return np.concatenate(places), np.concatenate(values)
