"""Words on a plane: chosen words and their neighbours, each group in its place, by principal components.

Vectors of length one are centred and projected on the two directions in which they differ most. So much of a hundred
dimensions is lost that the share of the differences which the plane keeps belongs to every picture. N words are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskery.errors import InputError
from maskery.words.vectors import WordVectors

NEAR = 5
"""Neighbours of each word that was asked for."""
FEWEST = 3
"""Two points are always on a line, so their plane says nothing."""


@dataclass(frozen=True, kw_only=True)
class Plane:
    asked: list[str]
    """The words that were asked for: one group each."""
    words: list[str]
    """(N,) those asked for first, then their neighbours."""
    group: NDArray[np.int64]
    """(N,) to whom each belongs: where several have it as a neighbour, the nearest."""
    place: NDArray[np.float64]
    """(N,2) across and up."""
    share: float
    """Of the variance of the N vectors, 0 to 1, that the plane keeps."""


def plane(vectors: WordVectors, words: Sequence[str], near: int = NEAR) -> Plane:
    """Chosen words, each with its `near` neighbours, by principal components."""
    asked = list(dict.fromkeys(words))
    members = {word: (number, np.inf) for number, word in enumerate(asked)}
    for number, word in enumerate(asked):
        for other, cosine in vectors.neighbours(word, near) if near else ():
            if cosine > members.get(other, (0, -np.inf))[1]:
                members[other] = (number, cosine)
    if len(members) < FEWEST:
        raise InputError(
            f"{len(members)} words make no map: at least {FEWEST} are wanted",
            repair="give more words, or more neighbours of each (--top 5)",
        )
    points = np.stack([_unit(vectors.vector(word)) for word in members])
    points -= points.mean(axis=0)
    place, share = principal(points)
    group = np.array([number for number, _ in members.values()])
    return Plane(asked=asked, words=list(members), group=group, place=place, share=share)


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float64]:
    exact = vector.astype(np.float64)
    return exact / (np.linalg.norm(exact) or 1.0)


def principal(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """(N,2) the coordinates along the two widest directions, and their share of the variance. The first word that
    stands off the middle stands to the right of it, and above: a direction has no sign of its own."""
    left, size, _ = np.linalg.svd(points, full_matrices=False)
    place = np.zeros((len(points), 2))
    found = min(2, size.size)
    place[:, :found] = left[:, :found] * size[:found]
    for axis in range(2):
        off = np.flatnonzero(np.abs(place[:, axis]) > 1e-9)
        if off.size and place[off[0], axis] < 0:
            place[:, axis] *= -1
    whole = float((size**2).sum())
    return place, float((size[:2] ** 2).sum()) / whole if whole else 0.0
