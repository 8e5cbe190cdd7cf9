"""Hard negatives: for every anchor, texts that an encoder finds near and that are not its positives.

    found = mine(encoder, pairs, negatives=4, first=1, last=50, margin=0.05)

The candidates are all positives and whatever else is given. They are ranked by the cosine with the anchor; known
positives of the anchor and the anchor itself are no candidates and have no rank. Of the ranks first..last those are
taken that lie at least `margin` below the anchor's best positive (or below `relative` of it): nearer ones are likely
to be right. The best of them, or some drawn by a key.

Memory: the vectors, and one block of cosines at a time. Shapes: A anchors, C candidates, D dimensions, K ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskery import randomness
from maskery.errors import ArgumentError, InputError
from maskery.vectors.judge.encodes import Encodes, vectors_of
from maskery.vectors.learn.data import TextSet, text_set

Numbers = NDArray[np.int64]
Floats = NDArray[np.float32]
_BLOCK = 1 << 22
"""Cosines that are held at once."""
Told = Callable[[int], None]


@dataclass(frozen=True, kw_only=True)
class MiningSettings:
    negatives: int = 1
    first: int = 1
    """The first rank that is taken, from 1."""
    last: int = 50
    """The last rank that is looked at."""
    margin: float = 0.0
    """A negative's cosine is below that of the best positive by at least this."""
    relative: float = 1.0
    """And at most this part of it."""
    highest: float = 1.0
    """No negative has a higher cosine with the anchor."""
    draw: bool = False
    """Some of the ranks by chance, not the first of them."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.negatives < 1 or self.first < 1 or self.last < self.first + self.negatives - 1:
            raise ArgumentError(
                f"{self.negatives} negatives of ranks {self.first} to {self.last}",
                repair="first >= 1, and ranks for all negatives: last >= first + negatives - 1",
            )


@dataclass(frozen=True, kw_only=True)
class Mined:
    triplets: TextSet
    """Anchor, positive, and the negatives beside each other."""
    ranks: NDArray[np.int64]
    """(U,negatives) from 1."""
    cosines: Floats
    """(U,negatives) with the anchor."""
    positive: Floats
    """(U,) cosine of the pair itself."""
    notes: tuple[str, ...]


def mine(
    encoder: Encodes,
    pairs: TextSet,
    settings: MiningSettings | None = None,
    *,
    candidates: Sequence[str] = (),
    told: Told | None = None,
) -> Mined:
    """`candidates`: texts besides the positives; `told` hears how many texts were encoded since the last call."""
    how = settings or MiningSettings()
    if pairs.kind != "pairs":
        raise InputError(f"negatives are searched for pairs, these are {pairs.kind}", where=pairs.place, repair="pairs")
    texts = list(dict.fromkeys([*pairs.texts, *candidates]))
    number = {text: place for place, text in enumerate(texts)}
    searched = np.unique([*pairs.units[:, 1], *(number[text] for text in candidates)]).astype(np.int64)
    anchors, group = np.unique(pairs.units[:, 0], return_inverse=True)
    vectors = _unit(vectors_of(encoder, texts, told))
    ranked = _ranked(vectors, anchors, searched, _known(pairs.units, anchors, group), how.last)
    return _chosen(pairs, texts, vectors, ranked, group, how)


def _known(units: Numbers, anchors: Numbers, group: Numbers) -> list[Numbers]:
    """Of every anchor the texts that are no candidates: itself and its positives."""
    order = np.argsort(group, kind="stable")
    parts = np.split(units[order, 1], np.cumsum(np.bincount(group))[:-1])
    return [np.unique(np.append(part, anchor)) for part, anchor in zip(parts, anchors, strict=True)]


def _unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), dtype=np.float32)


def _ranked(
    vectors: Floats, anchors: Numbers, searched: Numbers, known: list[Numbers], last: int
) -> tuple[Numbers, Floats]:
    """(A,K) the nearest candidates and their cosines; -1 where there are no more."""
    most = min(last, len(searched))
    near = np.full((len(anchors), most), -1, dtype=np.int64)
    cosine = np.full((len(anchors), most), -np.inf, dtype=np.float32)
    pool = vectors[searched]
    for block in _blocks(len(anchors), len(searched)):
        scores = vectors[anchors[block]] @ pool.T
        for row, texts in enumerate(known[block]):
            at = np.searchsorted(searched, texts)
            inside = at < len(searched)
            at = at[inside][searched[at[inside]] == texts[inside]]
            scores[row, at] = -np.inf
        # Ties go by the number of the text, so that the outcome is one and the same everywhere.
        top = np.argpartition(-scores, most - 1, axis=1)[:, :most] if most < scores.shape[1] else None
        top = np.broadcast_to(np.arange(scores.shape[1]), scores.shape) if top is None else np.sort(top, axis=1)
        values = np.take_along_axis(scores, top, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        values = np.take_along_axis(values, order, axis=1)
        near[block] = np.where(np.isfinite(values), searched[np.take_along_axis(top, order, axis=1)], -1)
        cosine[block] = values
    return near, cosine


def _blocks(rows: int, columns: int) -> Iterator[slice]:
    size = max(1, _BLOCK // max(1, columns))
    return (slice(begin, min(rows, begin + size)) for begin in range(0, rows, size))


@dataclass(frozen=True)
class _Picked:
    """Of every anchor: places in its ranks."""

    places: Numbers
    """(A,negatives) ascending."""
    enough: NDArray[np.bool_]
    """(A,)"""
    looked_at: int
    too_near: int


def _picked(near: Numbers, cosine: Floats, best: Floats, how: MiningSettings) -> _Picked:
    """`best` (A,): the cosine of each anchor's best positive."""
    limit = np.minimum(np.minimum(best - how.margin, how.relative * best), how.highest)
    rank = np.arange(1, near.shape[1] + 1)
    there = (near >= 0) & (rank >= how.first)
    allowed = there & (cosine <= limit[:, None])
    place = np.broadcast_to(rank.astype(np.float64), near.shape)
    if how.draw:
        keys = randomness.keys(how.seed, "negatives", np.arange(len(near)))
        place = randomness.uniform(keys[:, None], "rank", rank[None, :])
    order = np.argsort(np.where(allowed, place, np.inf), axis=1, kind="stable")[:, : how.negatives]
    enough = np.asarray(allowed.sum(1) >= how.negatives)
    return _Picked(np.sort(order, axis=1), enough, int(there.sum()), int((there & ~allowed).sum()))


def _chosen(
    pairs: TextSet, texts: list[str], vectors: Floats, ranked: tuple[Numbers, Floats], group: Numbers,
    how: MiningSettings,
) -> Mined:  # fmt: skip
    near, cosine = ranked
    first, second = pairs.units[:, 0], pairs.units[:, 1]
    positive = np.einsum("nd,nd->n", vectors[first], vectors[second]).astype(np.float32)
    best = np.full(len(near), -np.inf, dtype=np.float32)
    np.maximum.at(best, group, positive)
    picked = _picked(near, cosine, best, how)
    unit = picked.enough[group]
    if not unit.any():
        raise InputError(
            f"no anchor has {how.negatives} texts of ranks {how.first} to {how.last} that are far enough away",
            where=pairs.place,
            repair="a smaller margin, a larger last rank, or more candidates",
        )
    places = picked.places[group[unit]]
    taken = np.take_along_axis(near[group[unit]], places, axis=1)
    cosines = np.take_along_axis(cosine[group[unit]], places, axis=1)
    numbers = np.column_stack([first[unit], second[unit], taken])
    units = ([texts[number] for number in row] for row in numbers)
    notes = (
        f"{len(taken):,} of {len(unit):,} pairs have {how.negatives} negative(s) each, of {len(texts):,} texts",
        f"{picked.too_near:,} of {picked.looked_at:,} texts at the ranks {how.first} to {near.shape[1]} were too near",
        f"cosine with the anchor: positives {positive.mean():.4f}, negatives {cosines.mean():.4f} "
        f"({cosines.min():.4f} to {cosines.max():.4f}); ranks {np.mean(places + 1):.1f} in the mean",
    )
    return Mined(
        triplets=text_set("triplets", units, place=pairs.place), ranks=places + 1, cosines=cosines,
        positive=positive[unit], notes=notes,
    )  # fmt: skip
