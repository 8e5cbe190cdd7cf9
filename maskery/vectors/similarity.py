"""How alike two vectors are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskery.errors import ArgumentError, UnknownName
from maskery.vectors.settings import SIMILARITIES, Similarity

_BLOCK = 1 << 22
"""Differences held at once."""


def similarity(one: NDArray[Any], other: NDArray[Any], kind: Similarity = "cosine") -> NDArray[np.float32]:
    """(n,D), (m,D) -> (n,m); distances are negative, so that more is always more alike."""
    if kind not in SIMILARITIES:
        raise UnknownName("similarity", kind, SIMILARITIES)
    a, b = (np.atleast_2d(np.asarray(each, dtype=np.float32)) for each in (one, other))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ArgumentError(f"vectors of the shapes {a.shape} and {b.shape}", repair="compare those of one encoder")
    if kind == "dot":
        return a @ b.T
    if kind == "cosine":
        return unit(a) @ unit(b).T
    return _euclidean(a, b) if kind == "euclidean" else _manhattan(a, b)


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """To length 1; zeros stay zeros."""
    found: NDArray[np.float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return found


def _euclidean(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """In double precision: of two vectors that are nearly alike, squares would leave nothing but their rounding."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    squares = (x * x).sum(1)[:, None] + (y * y).sum(1)[None] - 2 * (x @ y.T)
    found: NDArray[np.float32] = -np.sqrt(np.maximum(squares, 0)).astype(np.float32)
    return found


def _manhattan(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    found = np.empty((len(a), len(b)), dtype=np.float32)
    step = max(1, _BLOCK // max(1, b.size))
    for first in range(0, len(a), step):
        found[first : first + step] = -np.abs(a[first : first + step, None] - b[None]).sum(2)
    return found
