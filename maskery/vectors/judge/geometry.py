"""How vectors lie in their space, whatever they mean.

    mean_cosine   of two different texts, over all pairs of them: anisotropy (0: all directions are used alike)
    variance@k    share of the variance along the k widest directions (of the centred vectors)
    uniformity    log of the mean of exp(-2 |x - y|^2) over all pairs of different texts; lower is more uniform
    alignment     mean of |x - y|^2 over pairs that mean the same; lower is closer

The last two are those of Wang and Isola 2020 with t = 2 and alpha = 2, on vectors of length one. Pairs that mean the
same are those of the label 1, or of more than four fifths of the highest score (above 4 of 5, as SimCSE has it).

Intervals are over texts (of alignment: over pairs); two draws of one text in a resample are not a pair, and of the
directions the whole set's are kept.

Shapes: N texts, D dimensions, B sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maskery import randomness
from maskery.errors import InputError
from maskery.tasks.judge.tally import Values, mean, ratio
from maskery.vectors.judge.encodes import Encodes, Numbers, Told, Vectors, vectors_of
from maskery.vectors.judge.examples import TextPairs
from maskery.vectors.judge.similarity import units, zeros_note

MOST = 2000
"""Texts that are looked at: two million pairs."""
T, ALPHA = 2.0, 2.0
DIRECTIONS = (1, 3, 10)
NEAR = 0.8
"""Share of the highest score above which a pair means the same."""


@dataclass(frozen=True)
class GeometryTally:
    vectors: Numbers
    told: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return len(self.vectors)

    @cached_property
    def _units(self) -> Numbers:
        return units(self.vectors)

    @cached_property
    def _cosines(self) -> Numbers:
        """(N,N); 0 on the diagonal, so that no text is a pair with itself."""
        found: Numbers = np.clip(self._units @ self._units.T, -1.0, 1.0)
        np.fill_diagonal(found, 0.0)
        return found

    @cached_property
    def _close(self) -> Numbers:
        """(N,N) exp(-t |x - y|^2)."""
        lengths = (self._units**2).sum(axis=1)
        apart = np.maximum(0.0, lengths[:, None] + lengths - 2 * self._cosines)
        found: Numbers = np.exp(-T * apart)
        np.fill_diagonal(found, 0.0)
        return found

    @cached_property
    def _centred(self) -> Numbers:
        return np.asarray(self.vectors - self.vectors.mean(axis=0))

    @cached_property
    def _along(self) -> Numbers:
        """(N,k) places along the widest directions."""
        _, wide, turned = np.linalg.svd(self._centred, full_matrices=False)
        return np.asarray(self._centred @ turned[: min(DIRECTIONS[-1], len(wide))].T)

    def values(self, weights: Numbers) -> Values:
        pairs = weights.sum(1) ** 2 - (weights**2).sum(1)
        cosine, close = (np.einsum("bn,bn->b", weights @ each, weights) for each in (self._cosines, self._close))
        closeness = ratio(close, pairs, np.nan)
        return {
            "mean_cosine": ratio(cosine, pairs, np.nan),
            "uniformity": np.log(closeness, out=np.full(len(weights), np.nan), where=closeness > 0),
            **self._variances(weights),
        }

    def _variances(self, weights: Numbers) -> Values:
        many = weights.sum(1, keepdims=True)
        whole = weights @ (self._centred**2).sum(axis=1) - ((weights @ self._centred) ** 2).sum(axis=1) / many[:, 0]
        along = weights @ self._along**2 - (weights @ self._along) ** 2 / many
        whole = np.where(self._flat, 0.0, whole)
        return {f"variance@{k}": ratio(along[:, :k].sum(axis=1), whole, np.nan) for k in DIRECTIONS}

    @cached_property
    def _flat(self) -> bool:
        """All vectors are one, apart from rounding."""
        largest = float(np.abs(self.vectors).max())
        return float(np.abs(self._centred).max()) <= 1e-7 * largest

    @property
    def notes(self) -> tuple[str, ...]:
        flat = ("all vectors are the same: no direction is wider than another (not a number)",) if self._flat else ()
        return (*self.told, *flat)


@dataclass(frozen=True)
class AlignmentTally:
    """N pairs that mean the same."""

    apart: Numbers
    """(N,) |x - y|^alpha."""
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return len(self.apart)

    def values(self, weights: Numbers) -> Values:
        return {"alignment": mean(weights, self.apart)}


def geometry_tally(
    encoder: Encodes, texts: Sequence[str], told: Told | None = None, place: str = "examples"
) -> GeometryTally:
    """Of distinct texts, `MOST` of them at most."""
    distinct = list(dict.fromkeys(texts))
    if len(distinct) < 2:
        cause = f"the number of distinct texts is {len(distinct)}: at least two are wanted"
        raise InputError(cause, where=place, repair="give more texts")
    order = randomness.generator(randomness.key(0, "geometry")).permutation(len(distinct))
    some = [distinct[at] for at in np.sort(order[:MOST]).tolist()]
    vectors = vectors_of(encoder, some, told)
    left = f"{len(some):,} of {len(distinct):,} distinct texts were drawn and looked at"
    notes = (left,) if len(some) < len(distinct) else ()
    return GeometryTally(vectors.astype(np.float64), (*notes, *zeros_note(vectors)))


def alignment_tally(encoder: Encodes, examples: TextPairs, told: Told | None = None) -> AlignmentTally:
    least = _least(examples)
    near = np.flatnonzero(examples.score > least).tolist()
    if not near:
        raise InputError(
            f"no pair means the same: the highest score is {examples.score.max():g}",
            where=examples.place,
            repair="give texts alone, which need no alignment, or scores above 0",
        )
    both = vectors_of(encoder, [side[at] for side in (examples.first, examples.second) for at in near], told)
    what = f"alignment is over the {len(near):,} pairs with a score above {least:g}"
    return AlignmentTally(alignment_of(both[: len(near)], both[len(near) :]), (what,))


def _least(examples: TextPairs) -> float:
    """Pairs with more than this mean the same."""
    highest = float(examples.score.max())
    return 0.0 if set(np.unique(examples.score).tolist()) <= {0.0, 1.0} else NEAR * highest


def alignment_of(one: Vectors, other: Vectors) -> Numbers:
    """(N,) |x - y|^alpha of unit vectors."""
    return np.asarray(np.linalg.norm(units(one) - units(other), axis=1) ** ALPHA)
