"""Whitening (Su, Cao, Liu and Ou 2021): vectors moved and turned so that their mean is 0 and their covariance is I.

y = (x - mean) W with W = U diag(1 / sqrt(s)), where U diag(s) U^T is the covariance (n - 1, as np.cov), largest s
first; the first k columns of W keep the k directions of largest variance. Cosines are taken after it: normalise then.

Directions that the vectors do not have (fewer vectors than dimensions, or one dimension made of others) would be
divided by zero; they are left out, and counted in the notes. Where two variances are equal, their directions are any
pair in their plane: no convention makes those the same everywhere, and no cosine over all of them depends on it.

    white = Whitening.fit(vectors, dimensions=256)
    white.apply(others)                                       # float32 (n, 256)
    Whitening.of(moments(batches), dimensions=256)            # any number of vectors, in constant memory
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maskery.errors import ArgumentError
from maskery.vectors.after.affine import Affine
from maskery.vectors.after.given import Double
from maskery.vectors.after.kept import AGAIN, part
from maskery.vectors.after.moments import Moments


class Whitening(Affine):
    kind = "whitening"

    def __init__(self, mean: Double, matrix: Double, variances: Double, total: float, seen: int) -> None:
        super().__init__(mean, seen)
        self._matrix = matrix
        self.variances = variances
        """(k,) of the directions that are kept, largest first."""
        self.total = total
        """The variance of all dimensions together."""

    @property
    def matrix(self) -> Double:
        return self._matrix

    @classmethod
    def fit(cls, vectors: ArrayLike, dimensions: int | None = None) -> Self:
        return cls.of(Moments().update(vectors), dimensions)

    @classmethod
    def of(cls, found: Moments, dimensions: int | None = None) -> Self:
        """From the moments of vectors that came in batches."""
        _require_some(dimensions)
        variances, directions = found.principal()
        made = cls(
            found.mean,
            directions / np.sqrt(variances),
            variances,
            float(np.trace(found.scatter)) / (found.count - 1),
            found.count,
        )
        made.notes = _notes(found, len(variances), dimensions)
        return made if dimensions is None else made._first(dimensions)

    def reduced(self, dimensions: int) -> Self:
        """The same with the first `dimensions` directions only: a fit serves all sizes."""
        _require_some(dimensions)
        made = self._first(dimensions)
        if dimensions > self.given:
            made.notes += (f"{dimensions:,} dimensions were asked for; {self.given:,} are there and kept",)
        return made

    def _first(self, dimensions: int) -> Self:
        columns = np.ascontiguousarray(self.matrix[:, :dimensions])
        made = type(self)(self.mean, columns, self.variances[:dimensions], self.total, self.seen)
        made.notes = self.notes
        return made

    def state(self) -> dict[str, NDArray[Any]]:
        return {"mean": self.mean, "matrix": self.matrix, "variances": self.variances}

    def settings(self) -> dict[str, Any]:
        return {"seen": self.seen, "total": self.total}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        mean, variances = part(state, "mean", None), part(state, "variances", None)
        matrix = part(state, "matrix", len(mean), len(variances))
        total = float(settings["total"])
        if not 0 < total < np.inf:
            raise ArgumentError(f"the variance of all dimensions is {total}", repair=AGAIN)
        return cls(mean, matrix, variances, total, int(settings["seen"]))

    def describe(self) -> str:
        share = 100 * float(self.variances.sum()) / self.total
        return (
            f"whitening, {self.taken:,} to {self.given:,} dimensions, fitted on {self.seen:,} vectors; "
            f"the dimensions kept held {share:.1f} % of the variance"
        )


def _require_some(dimensions: int | None) -> None:
    if dimensions is not None and dimensions < 1:
        raise ArgumentError(f"{dimensions} dimensions asked for: at least 1 is wanted", repair="dimensions=256")


def _notes(found: Moments, exist: int, asked: int | None) -> tuple[str, ...]:
    width = len(found.mean)
    notes: list[str] = []
    if exist < width:
        notes.append(f"{exist:,} of {width:,} directions exist (the rank of the covariance): {_why(found, exist)}")
    if asked is not None and asked > exist:
        notes.append(f"{asked:,} dimensions were asked for; {exist:,} are there and kept")
    return tuple(notes)


def _why(found: Moments, exist: int) -> str:
    """Why the vectors have fewer directions than numbers, where whitening would divide by 0."""
    missing = len(found.mean) - exist
    if found.count <= len(found.mean):
        return f"{found.count:,} vectors differ in no more; fit on more texts than {len(found.mean):,}"
    if missing == 1:
        # Before gain g and bias b a LayerNorm's numbers sum to 0: sum((y - b) / g) = 0 for each slot, and any mean.
        return "one weighted sum of the dimensions is the same in all vectors, as after a last LayerNorm"
    return f"{missing:,} weighted sums of the dimensions are the same in all vectors"
