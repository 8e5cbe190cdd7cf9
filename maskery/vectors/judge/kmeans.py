"""Mini-batch k-means (Sculley 2010), begun as k-means++ says.

Our own and not a library's: a figure has to come out the same on every machine and with every version of other
libraries, from the keys that all else here is drawn by, and judging should need nothing more to be installed.

Shapes: N vectors, K centres, D dimensions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maskery import randomness
from maskery.vectors.judge.encodes import Numbers, Vectors

BATCH, ROUNDS, STARTS = 1024, 20, 3
"""Vectors of a step, passes over all of them, and beginnings of which the best is gone on with."""
_STILL = 1e-6
"""Of the mean square of the vectors: centres that moved less in a pass stay."""
_AT_ONCE = 1 << 22


def clusters(vectors: Vectors, many: int, seed: int = 0) -> NDArray[np.int64]:
    """(N,) the cluster of each vector, 0 to many - 1; some may have none."""
    draws = randomness.generator(randomness.key(seed, "k-means"))
    # What all vectors share says nothing about who is near whom, and costs digits.
    points = np.asarray(vectors, dtype=np.float64)
    points = points - points.mean(axis=0)
    centres = _begun(points, many, draws)
    counts = np.zeros(many)
    scale = float((points**2).sum(axis=1).mean())
    for _ in range(ROUNDS):
        before = centres.copy()
        order = draws.permutation(len(points))
        for begin in range(0, len(order), BATCH):
            _step(points[order[begin : begin + BATCH]], centres, counts)
        if float(((centres - before) ** 2).sum(axis=1).max()) <= _STILL * scale:
            break
    return nearest(points, centres)[0]


def nearest(points: Numbers, centres: Numbers) -> tuple[NDArray[np.int64], Numbers]:
    """(N,) the number of the nearest centre, and the square of the distance to it."""
    found, far = np.empty(len(points), dtype=np.int64), np.empty(len(points))
    size = max(1, _AT_ONCE // len(centres))
    for begin in range(0, len(points), size):
        part = points[begin : begin + size]
        squares = (part**2).sum(axis=1)[:, None] - 2 * part @ centres.T + (centres**2).sum(axis=1)
        place = squares.argmin(axis=1)
        found[begin : begin + size] = place
        far[begin : begin + size] = np.maximum(0.0, squares[np.arange(len(part)), place])
    return found, far


def _begun(points: Numbers, many: int, draws: np.random.Generator) -> Numbers:
    """The best of several k-means++ beginnings on some of the vectors."""
    some = points[draws.permutation(len(points))[: max(3 * BATCH, 3 * many)]]
    begun = [_spread(some, many, draws) for _ in range(STARTS)]
    return min(begun, key=lambda centres: float(nearest(some, centres)[1].sum()))


def _spread(points: Numbers, many: int, draws: np.random.Generator) -> Numbers:
    """k-means++: each further centre is a vector drawn by the square of its distance to those before."""
    chosen = [int(draws.integers(len(points)))]
    far = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < many:
        upto = np.cumsum(far)
        drawn = float(draws.random()) * float(upto[-1])
        # Where all vectors are centres already (there are fewer distinct ones than clusters) any will do.
        place = int(np.searchsorted(upto, drawn, side="right")) if upto[-1] > 0 else int(draws.integers(len(points)))
        chosen.append(min(place, len(points) - 1))
        far = np.minimum(far, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
    return points[chosen].copy()


def _step(batch: Numbers, centres: Numbers, counts: Numbers) -> None:
    """Every centre becomes the mean of all vectors that were ever given to it."""
    place, _ = nearest(batch, centres)
    new = np.bincount(place, minlength=len(centres)).astype(np.float64)
    met = np.flatnonzero(new)
    order = np.argsort(place, kind="stable")
    sums = np.add.reduceat(batch[order], (np.cumsum(new) - new).astype(np.int64)[met], axis=0)
    counts[met] += new[met]
    centres[met] += (sums - new[met, None] * centres[met]) / counts[met, None]
