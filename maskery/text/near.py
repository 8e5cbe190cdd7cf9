"""Near copies: rows of texts that share most of their three-character pieces with a known row.

The pieces of a text are all runs of three of its characters, with two end marks after the last one. Two rows are near
copies if in each of their texts the pieces in common are at least four fifths of the pieces in either (Jaccard).

The search is exact, not sampled (prefix filtering: Bayardo, Ma and Srikant 2007): pieces are ordered, rare ones first,
and a row of n pieces can reach four fifths only with a row that shares one of its first n - ceil(4n/5) + 1 pieces. What
shares one is compared by the places of the piece in both, which bound what else they can share (PPJoin: Xiao et al.
2008), then by 256 bits that tell how much differs at least, and what is left in full. Pieces are hashed to about 40
bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Row = Sequence[str]
SHARE = (4, 5)
"""The share of common pieces from which on rows are near copies, as a fraction: 4/5."""
MOST_CHARACTERS = 8_000_000
"""Of all rows together; what is longer is compared by the beginnings of its texts."""
_BEGINNINGS = (1000, 500, 250, 100)
"""Characters of each text that are compared where all of them are too many."""
MOST_COMPARED = 20_000_000
"""Shared pieces that are looked at before the search ends early."""
_AT_ONCE = 1_000_000
_FIELD_BITS, _RARITY_BITS, _BUCKET_BITS = 3, 6, 20
_WORDS = 4
_ODD = np.uint64(0x9E3779B97F4A7C15)
_ODD_TOO = np.uint64(0xBF58476D1CE4E5B9)

Numbers = NDArray[np.int64]
Keys = NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class Near:
    found: dict[int, int]
    """Number of a row -> number of the known row that it is nearest to."""
    searched: int
    """Rows that were searched for, from the first; fewer than all where too many rows resemble each other."""
    characters: int = 0
    """Characters of each text that were compared; 0: all of them."""


def normal(text: str) -> str:
    """A text as copies are compared: without the differences of case and of white space."""
    return " ".join(text.casefold().replace("\0", " ").split())


def near_copies(rows: Sequence[Row], known: Sequence[Row], most: int = MOST_COMPARED) -> Near:
    """Which `rows` are near copies of `known` ones. All texts are `normal`, and all rows have equally many of them.
    `most`: shared pieces to look at."""
    characters = _characters([*rows, *known])
    if not rows or not known or characters is None:
        return Near(found={}, searched=0, characters=0)
    every = _Pieces.of([*rows, *known], characters)
    best: dict[int, tuple[float, int]] = {}
    work, searched = 0, len(rows)
    for first, cost, pairs in _candidates(every, len(rows)):
        work += cost
        if work > most:
            searched = first
            break
        for row, other, share in _alike(every, pairs):
            best[row] = max(best.get(row, (0.0, 0)), (share, len(rows) - other))
    found = {row: -place for row, (_, place) in best.items() if row < searched}
    return Near(found=found, searched=searched, characters=characters)


def _characters(rows: Sequence[Row]) -> int | None:
    """Characters of each text that fit within the limit; 0: all; None: even the shortest beginnings are too many."""
    lengths = np.array([len(text) for row in rows for text in row], dtype=np.int64)
    if lengths.sum() <= MOST_CHARACTERS:
        return 0
    return next((each for each in _BEGINNINGS if np.minimum(lengths, each).sum() <= MOST_CHARACTERS), None)


@dataclass(frozen=True)
class _Pieces:
    """The sets of pieces of all rows, end to end."""

    keys: Keys
    """(n,) ascending: the row's number, then the rarity of the piece, its hash and its field."""
    start: Numbers
    """(R+1,)"""
    shift: np.uint64
    """Bits of a piece within a key."""
    fields: int

    @classmethod
    def of(cls, rows: Sequence[Row], characters: int) -> _Pieces:
        fields = len(rows[0])
        parts = [_hashed([row[at] for row in rows], at, characters) for at in range(fields)]
        row, hashed = (np.concatenate(each) for each in zip(*parts, strict=True))
        field = np.repeat(np.arange(fields, dtype=np.uint64), [len(each) for _, each in parts])
        bucket = (hashed >> np.uint64(64 - _BUCKET_BITS)).astype(np.int64)
        counts = np.bincount(bucket, minlength=1 << _BUCKET_BITS)
        level = np.minimum(3 * np.log2(np.maximum(counts, 1)), (1 << _RARITY_BITS) - 1).astype(np.uint64)
        shift = 64 - max(1, len(rows).bit_length())
        rest = shift - _RARITY_BITS - _FIELD_BITS
        key = row.astype(np.uint64) << np.uint64(shift)
        key |= level[bucket] << np.uint64(rest + _FIELD_BITS)
        key |= (hashed >> np.uint64(64 - rest)) << np.uint64(_FIELD_BITS)
        key |= field & np.uint64((1 << _FIELD_BITS) - 1)
        key.sort()
        key = key[np.concatenate(([True], key[1:] != key[:-1]))] if len(key) else key
        borders = np.arange(len(rows) + 1, dtype=np.uint64) << np.uint64(shift)
        return cls(key, np.searchsorted(key, borders).astype(np.int64), np.uint64(shift), fields)

    @property
    def size(self) -> Numbers:
        """(R,) pieces of each row."""
        return np.diff(self.start)

    def prefixes(self, rows: slice) -> _Prefixes:
        """The pieces of rows of which one has to be shared."""
        size = self.size[rows]
        length = np.where(size > 0, size + (-SHARE[0] * size) // SHARE[1] + 1, 0)
        at = _ranges(self.start[:-1][rows], length)
        keys = self.keys[at]
        row = (keys >> self.shift).astype(np.int64)
        return _Prefixes(keys & ((np.uint64(1) << self.shift) - np.uint64(1)), row, self.start[row + 1] - at)

    @cached_property
    def bits(self) -> Keys:
        """(R,4) of each row: of 256 bits those to which an odd number of its pieces is hashed. Where two rows differ in
        d of them, d pieces at least are not shared."""
        place = self.keys >> np.uint64(_FIELD_BITS)
        bit, word = np.uint64(1) << (place & np.uint64(63)), place >> np.uint64(6) & np.uint64(_WORDS - 1)
        there = np.flatnonzero(self.size)
        found = np.zeros((len(self.size), _WORDS), dtype=np.uint64)
        for number in range(_WORDS):
            mine = np.where(word == np.uint64(number), bit, np.uint64(0))
            found[there, number] = np.bitwise_xor.reduceat(mine, self.start[there])
        return found


class _Prefixes(NamedTuple):
    piece: Keys
    row: Numbers
    left: Numbers
    """Pieces of the row from this one on."""


def _hashed(texts: Sequence[str], field: int, characters: int) -> tuple[Numbers, Keys]:
    """The pieces of one text of all rows: their rows, and their hashes."""
    shown = [text[:characters] for text in texts] if characters else texts
    joined = "".join(f"{text}\0\0" for text in shown)
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    begins = np.flatnonzero(codes)
    length = np.array([len(text) for text in shown], dtype=np.int64)
    packed = codes[begins] | codes[begins + 1] << np.uint64(21) | codes[begins + 2] << np.uint64(42)
    mixed = (packed + np.uint64(field)) * _ODD
    mixed = (mixed ^ mixed >> np.uint64(32)) * _ODD_TOO
    return np.repeat(np.arange(len(texts)), length), mixed ^ mixed >> np.uint64(29)


def _ranges(start: Numbers, length: Numbers) -> Numbers:
    """start[0], start[0] + 1, ... for each of the lengths, end to end."""
    ends = np.cumsum(length)
    found: Numbers = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(start - (ends - length), length)
    return found


def _candidates(every: _Pieces, many: int) -> Iterator[tuple[int, int, tuple[Numbers, Numbers]]]:
    """Pairs of the first `many` rows with others that may be near copies, in parts by ascending rows: the first row of
    a part, how many shared pieces were looked at for it, and the pairs."""
    known, asked = every.prefixes(slice(many, None)), every.prefixes(slice(0, many))
    order = np.argsort(known.piece, kind="stable")
    known = _Prefixes(known.piece[order], known.row[order], known.left[order])
    low = np.searchsorted(known.piece, asked.piece, "left")
    count = np.searchsorted(known.piece, asked.piece, "right") - low
    part = (np.cumsum(np.bincount(asked.row, weights=count, minlength=many)) // _AT_ONCE).astype(np.int64)[asked.row]
    for which in np.split(np.arange(len(asked.row)), 1 + np.flatnonzero(np.diff(part))):
        if not len(which):
            continue
        first = asked.row[which[0]]
        at = _ranges(low[which], count[which])
        one, other = np.repeat(asked.row[which], count[which]), known.row[at]
        # The rarest piece in common, of which one place in each row is known, has all others after it.
        least = _needed(every, one, other)
        after = np.minimum(np.repeat(asked.left[which], count[which]), known.left[at]) >= least
        one, other, least = one[after], other[after], least[after]
        apart = np.bitwise_count(every.bits[one] ^ every.bits[other]).sum(1)
        near = every.size[one] + every.size[other] - apart >= 2 * least
        pairs = np.unique(one[near] * len(every.start) + other[near])
        yield int(first), len(at), (pairs // len(every.start), pairs % len(every.start))


def _needed(every: _Pieces, one: Numbers, other: Numbers) -> Numbers:
    """How many pieces near copies of these sizes share at least."""
    both = every.size[one] + every.size[other]
    return -(-SHARE[0] * both // (SHARE[0] + SHARE[1]))


def _alike(every: _Pieces, pairs: tuple[Numbers, Numbers]) -> Iterator[tuple[int, int, float]]:
    """The pairs that are near copies, and the share of their pieces that they have in common."""
    one, other = pairs
    if not len(one):
        return
    length = every.size[other]
    at, pair = _ranges(every.start[other], length), np.repeat(np.arange(len(one)), length)
    inside = every.keys[at] & ((np.uint64(1) << every.shift) - np.uint64(1))
    wanted = inside | one[pair].astype(np.uint64) << every.shift
    place = np.minimum(np.searchsorted(every.keys, wanted), len(every.keys) - 1)
    shared = every.keys[place] == wanted
    common = np.bincount(pair[shared], minlength=len(one))
    union = every.size[one] + length - common
    good = SHARE[1] * common >= SHARE[0] * union
    if every.fields > 1:
        good &= _each_field(every, pairs, lambda field: np.bincount(
            pair[shared & _of_field(inside, field)], minlength=len(one)
        ))  # fmt: skip
    for number in np.flatnonzero(good):
        yield int(one[number]), int(other[number]), float(common[number] / union[number])


def _of_field(keys: Keys, field: int) -> NDArray[np.bool_]:
    bits = np.uint64((1 << _FIELD_BITS) - 1)
    mine: NDArray[np.bool_] = (keys & bits) == (np.uint64(field) & bits)
    return mine


def _each_field(
    every: _Pieces, pairs: tuple[Numbers, Numbers], common_of: Callable[[int], Numbers]
) -> NDArray[np.bool_]:
    """Whether every single text of a pair is a near copy, too: a long one does not make up for a short one."""
    one, other = pairs
    good = np.ones(len(one), dtype=bool)
    owner = (every.keys >> every.shift).astype(np.int64)
    for field in range(min(every.fields, 1 << _FIELD_BITS)):
        size = np.bincount(owner[_of_field(every.keys, field)], minlength=len(every.start))
        common = common_of(field)
        good &= SHARE[1] * common >= SHARE[0] * (size[one] + size[other] - common)
    return good
