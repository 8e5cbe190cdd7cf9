"""Vectors as they are given: what is no table of finite numbers is refused, with the row that is to blame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maskery.errors import ArgumentError

Double = NDArray[np.float64]
BLOCK = 4096
"""Rows that are worked on at once: copies in double precision stay small beside the vectors."""


def table(vectors: ArrayLike, dimensions: int | None = None) -> NDArray[Any]:
    """The vectors as an array (n, D) of real numbers, not copied if they are one already."""
    try:
        rows = np.asarray(vectors)
    except ValueError:
        raise ArgumentError(
            "the vectors are not all of one length", repair="give an array (n, D), a row a text"
        ) from None
    if rows.dtype.kind not in "fiu":
        raise ArgumentError(
            f"the vectors are of type {rows.dtype}, numbers are wanted", repair="vectors.astype(np.float32)"
        )
    if rows.ndim != 2 or rows.shape[1] == 0:
        hint = (
            "vectors[None, :] makes a table of one vector" if rows.ndim == 1 else "give an array (n, D), a row a text"
        )
        raise ArgumentError(f"the vectors have the shape {rows.shape}, (n, D) is wanted", repair=hint)
    if dimensions is not None and rows.shape[1] != dimensions:
        raise ArgumentError(
            f"the vectors have {rows.shape[1]} dimensions, this was fitted to {dimensions}",
            repair="give vectors of the same encoder with the same pooling, or fit again",
        )
    return rows


def blocks(rows: NDArray[Any], first: int = 0) -> Iterator[Double]:
    """The rows in double precision, `BLOCK` at a time; `first` is the number of row 0, for the message."""
    for begin in range(0, len(rows), BLOCK):
        yield finite(np.asarray(rows[begin : begin + BLOCK], dtype=np.float64), first + begin)


def finite(block: Double, first: int) -> Double:
    wrong = np.flatnonzero(~np.isfinite(block).all(axis=1))
    if len(wrong):
        at = int(wrong[0])
        column = int(np.flatnonzero(~np.isfinite(block[at]))[0])
        raise ArgumentError(
            f"the vector holds {block[at, column]} in dimension {column}",
            where=f"row {first + at} (counted from 0)",
            repair="a model whose weights are not finite, or one that overflowed, made it: look at that text",
        )
    return block


def single(block: Double, first: int) -> NDArray[np.float32]:
    """Rounded to float32; a number too large for it is an error, not an infinity."""
    with np.errstate(over="ignore"):
        rounded = block.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(rounded).all(axis=1))
    if len(wrong):
        raise ArgumentError(
            "the result is too large for float32",
            where=f"row {first + int(wrong[0])} (counted from 0)",
            repair="this vector is nothing like those of the fit: look at that text, or fit on texts like it",
        )
    return rounded
