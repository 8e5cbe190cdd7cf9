"""Centring: the mean of the vectors taken out, and with it, if asked, the directions that they have most in common.

The second is "all but the top" (Mu and Viswanath 2018): the first principal directions say how frequent or how long a
text is rather than what it means; the authors take out about one for every hundred dimensions. Their formula projects
the vector before its mean was taken out, which only adds a constant to all; here it is the centred one, so the mean of
the result is 0.

    Centring.fit(vectors, directions=3).apply(others)         # float32 (n, D)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maskery.errors import ArgumentError
from maskery.vectors.after.affine import Affine
from maskery.vectors.after.given import Double
from maskery.vectors.after.kept import part
from maskery.vectors.after.moments import Moments


class Centring(Affine):
    kind = "centring"

    def __init__(self, mean: Double, directions: Double, share: float, seen: int) -> None:
        super().__init__(mean, seen)
        self.directions = directions
        """(D, k), orthonormal columns: what is taken out."""
        self.share = share
        """Of the variance, that was in them."""

    @classmethod
    def fit(cls, vectors: ArrayLike, directions: int = 0) -> Self:
        return cls.of(Moments().update(vectors), directions)

    @classmethod
    def of(cls, found: Moments, directions: int = 0) -> Self:
        """From the moments of vectors that came in batches."""
        if directions < 0:
            raise ArgumentError(f"{directions} directions to take out: 0 or more are wanted", repair="directions=0")
        variances, columns = found.principal()
        if directions >= len(variances):
            raise ArgumentError(
                f"{directions:,} directions to take out of the {len(variances):,} in which the vectors differ: "
                "nothing would be left",
                repair=f"directions={max(0, min(len(variances) - 1, len(found.mean) // 100))}, or fit on more vectors",
            )
        share = float(variances[:directions].sum() / variances.sum())
        return cls(found.mean, np.ascontiguousarray(columns[:, :directions]), share, found.count)

    @property
    def given(self) -> int:
        return self.taken

    @property
    def matrix(self) -> Double:
        return np.asarray(np.eye(self.taken) - self.directions @ self.directions.T)

    def transform(self, block: Double) -> Double:
        """Through the few directions, not the whole matrix."""
        centred = block - self.mean
        if self.directions.shape[1]:
            centred -= (centred @ self.directions) @ self.directions.T
        return centred

    def state(self) -> dict[str, NDArray[Any]]:
        return {"mean": self.mean, "directions": self.directions}

    def settings(self) -> dict[str, Any]:
        return {"seen": self.seen, "share": self.share}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        mean = part(state, "mean", None)
        directions = part(state, "directions", len(mean), None)
        return cls(mean, directions, float(settings["share"]), int(settings["seen"]))

    def describe(self) -> str:
        many = self.directions.shape[1]
        top = f" and {many:,} common direction{'' if many == 1 else 's'}, {100 * self.share:.1f} % of the variance,"
        return f"centring, {self.taken:,} dimensions, the mean{top if many else ''} of {self.seen:,} vectors taken out"
