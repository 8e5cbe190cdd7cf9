"""Vectors in fewer bits: a byte a number by the range of each dimension, or one bit by its sign.

    int8      round((x - low) / step) - 128 with step = (high - low) / 255 for each dimension: the nearest of 256 values
              from its least to its greatest number; beyond them, the last. sentence-transformers rounds down instead,
              which doubles the error. What comes back (`from_bytes`) is at most half a step off.
    binary    the bits x > 0, eight a byte, the first dimension highest: sentence-transformers' "ubinary". Its "binary"
              is these bytes less 128.

Codes of int8 mean something only with their ranges: those of one set of vectors serve for all that are compared.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maskery.errors import ArgumentError, UnknownName

Precision = Literal["float32", "int8", "binary"]
PRECISIONS: tuple[Precision, ...] = ("float32", "int8", "binary")
FEWEST = 2
"""Vectors that tell a range."""


def check_precision(precision: str) -> Precision:
    for known in PRECISIONS:
        if known == precision:
            return known
    raise UnknownName("precision", str(precision), PRECISIONS)


def quantised(
    vectors: NDArray[np.float32], precision: Precision, ranges: NDArray[np.float32] | None = None
) -> NDArray[Any]:
    """`ranges` (2,D): the least and the greatest number of each dimension; of these vectors, where none are given."""
    check_precision(precision)
    if precision == "float32":
        return vectors
    if precision == "binary":
        return np.packbits(vectors > 0, axis=-1)
    return to_bytes(vectors, ranges_of(vectors) if ranges is None else ranges)


def ranges_of(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """(2,D) the least and the greatest number of each dimension."""
    if len(vectors) < FEWEST:
        raise ArgumentError(
            f"the ranges of int8 are those of many vectors, and {len(vectors)} is given",
            repair="encode many texts first, or give the ranges of other vectors",
        )
    return np.stack([vectors.min(axis=0), vectors.max(axis=0)])


def to_bytes(vectors: NDArray[np.float32], ranges: NDArray[np.float32]) -> NDArray[np.int8]:
    low, step = _low_and_step(ranges, vectors.shape[-1])
    codes: NDArray[np.int8] = np.clip(np.round((vectors - low) / step) - 128, -128, 127).astype(np.int8)
    return codes


def from_bytes(codes: NDArray[np.int8], ranges: NDArray[np.float32]) -> NDArray[np.float32]:
    low, step = _low_and_step(ranges, codes.shape[-1])
    vectors: NDArray[np.float32] = ((codes.astype(np.float64) + 128) * step + low).astype(np.float32)
    return vectors


def signs(packed: NDArray[np.uint8], dimensions: int | None = None) -> NDArray[np.float32]:
    """The bits of `binary` as 1 and -1: their cosine is 1 less twice the share of bits that differ."""
    found: NDArray[np.float32] = np.unpackbits(packed, axis=-1, count=dimensions).astype(np.float32) * 2 - 1
    return found


def _low_and_step(ranges: NDArray[np.float32], dimensions: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if np.shape(ranges) != (2, dimensions):
        raise ArgumentError(
            f"ranges of the shape {np.shape(ranges)} for vectors of {dimensions} dimensions",
            repair=f"(2, {dimensions}): the least and the greatest number of each dimension",
        )
    low, high = np.asarray(ranges, dtype=np.float64)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (high >= low).all()):
        raise ArgumentError("the ranges are not finite, or end before they begin", repair="ranges_of(vectors)")
    return low, np.where(high > low, (high - low) / 255, 1.0)
