"""Post-processings of the form y = (x - mean) M, fitted from mean and covariance alone.

They can be fitted on batches of any number, and be stored as one layer: `affine` gives matrix and bias of
y = x M + b, which is sentence-transformers' Dense without an activation (its weight is M transposed).
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from maskery.vectors.after.base import After
from maskery.vectors.after.given import Double


class Affine(After):
    def __init__(self, mean: Double, seen: int) -> None:
        self.mean = mean
        self.seen = seen
        """Vectors it was fitted on."""

    @property
    def taken(self) -> int:
        return len(self.mean)

    @property
    @abstractmethod
    def matrix(self) -> Double:
        """(D, k)"""

    @property
    def given(self) -> int:
        return int(self.matrix.shape[1])

    def affine(self) -> tuple[Double, Double]:
        """Matrix (D, k) and bias (k,), in double precision: y = x matrix + bias."""
        return self.matrix, np.asarray(-self.mean @ self.matrix)

    def transform(self, block: Double) -> Double:
        return np.asarray((block - self.mean) @ self.matrix)
