"""Number, mean and scatter of vectors that come in batches: all that whitening and centring need, in constant memory.

Two sets of vectors are joined exactly (Chan, Golub and LeVeque 1979), so the split into batches changes the last bits
at most. The sums are around each batch's own mean: a large common mean costs no digits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from maskery.errors import ArgumentError
from maskery.vectors.after.given import Double, blocks, table


class Moments:
    def __init__(self) -> None:
        self.count = 0
        self.mean: Double = np.zeros(0)
        self.scatter: Double = np.zeros((0, 0))
        """The sum of (x - mean)(x - mean)^T."""
        self.resolution = float(np.finfo(np.float64).eps)
        """The relative rounding of the coarsest numbers that were given: below it, a direction is noise."""

    def update(self, batch: ArrayLike) -> Self:
        """Take in more vectors: all of them or, when one is refused, none."""
        rows = table(batch, len(self.mean) or None)
        joined = (self.count, self.mean, self.scatter)
        if not self.count:
            joined = (0, np.zeros(rows.shape[1]), np.zeros((rows.shape[1], rows.shape[1])))
        for block in blocks(rows, self.count):
            joined = _joined(*joined, block)
        if len(rows):
            self.count, self.mean, self.scatter = joined
            if rows.dtype.kind == "f":
                self.resolution = max(self.resolution, float(np.finfo(rows.dtype).eps))
        return self

    def covariance(self) -> Double:
        """With n - 1, as np.cov."""
        return self.scatter / (self.count - 1)

    def principal(self) -> tuple[Double, Double]:
        """Variances, largest first, and their directions as columns (D, r): those that exist.

        n vectors span n - 1 directions around their mean. Besides, a variance has to stand out from the rounding of
        the sums and from that of the numbers that were given.
        """
        self._require_two()
        values, vectors = np.linalg.eigh(self.covariance())
        values, vectors = values[::-1], vectors[:, ::-1]
        squares = self.mean**2 + np.diag(self.scatter) / self.count
        noise = (2 * self.resolution) ** 2 * (squares @ vectors**2)
        rounding = 8 * len(self.mean) * np.finfo(np.float64).eps * max(float(values[0]), 0.0)
        exist = np.flatnonzero(values > np.maximum(noise, rounding))[: self.count - 1]
        if len(exist) == 0:
            raise ArgumentError(
                f"all {self.count:,} vectors are equal: there is no direction in which they differ",
                repair="fit on the vectors of different texts, a few thousand are enough",
            )
        return values[exist], with_signs(vectors[:, exist])

    def _require_two(self) -> None:
        if self.count < 2:
            raise ArgumentError(
                f"{self.count} vector{'' if self.count == 1 else 's'} given: a fit needs at least 2",
                repair="fit on the vectors of different texts, a few thousand are enough",
            )


def _joined(count: int, mean: Double, scatter: Double, block: Double) -> tuple[int, Double, Double]:
    total = count + len(block)
    with np.errstate(over="ignore", invalid="ignore"):
        own, around = _centred(block)
        between = own - mean
        weight = len(block) / total
        # The first block is taken as it is: its mean must not go through a difference and back.
        new = own if count == 0 else mean + between * weight
        sums = scatter + around.T @ around + np.outer(between, between) * (count * weight)
    if not np.isfinite(sums).all():
        raise ArgumentError(
            "the squares of the vectors are too large for double precision",
            where=f"rows {count} to {total - 1} (counted from 0)",
            repair="divide all vectors by their largest number",
        )
    return total, new, sums


def _centred(block: Double) -> tuple[Double, Double]:
    """Mean and what is left; the mean of what is left is taken out again, or thousands of equal rows would differ."""
    mean = block.mean(axis=0)
    around = block - mean
    rest = around.mean(axis=0)
    return mean + rest, around - rest


def with_signs(columns: Double) -> Double:
    """Each column with its largest component positive; of several as large as it the first decides.

    The sign of an eigenvector is the library's whim, and rounding must not decide between equals.
    """
    size = np.abs(columns)
    first = np.argmax(size >= size.max(axis=0) * (1 - 1e-9), axis=0)
    signs = np.where(columns[first, np.arange(columns.shape[1])] < 0, -1.0, 1.0)
    return np.ascontiguousarray(columns * signs)


def moments(batches: Iterable[ArrayLike]) -> Moments:
    """Of all batches together."""
    found = Moments()
    for batch in batches:
        found.update(batch)
    return found
