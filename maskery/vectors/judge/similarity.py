"""How alike the vectors of pairs are: cosine, dot product, and two distances with the sign turned.

Sums are made in float64 and told in float32, which is all that the vectors themselves know: so two equal texts have the
cosine 1 and not 1 - 1e-16, and ties are ties. A vector of zeros has the cosine 0 with everything.

Shapes: N pairs, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from maskery.vectors.judge.encodes import Numbers, Vectors

_AT_ONCE = 1 << 20
"""Numbers of a block."""


def _cosine(one: Numbers, other: Numbers) -> Numbers:
    return np.asarray(np.einsum("nd,nd->n", units(one), units(other)))


def _dot(one: Numbers, other: Numbers) -> Numbers:
    return np.asarray(np.einsum("nd,nd->n", one, other))


def _euclidean(one: Numbers, other: Numbers) -> Numbers:
    return -np.asarray(np.linalg.norm(one - other, axis=1))


def _manhattan(one: Numbers, other: Numbers) -> Numbers:
    return -np.asarray(np.abs(one - other).sum(axis=1))


SIMILARITIES: Mapping[str, Callable[[Numbers, Numbers], Numbers]] = {
    "cosine": _cosine,
    "dot": _dot,
    "euclidean": _euclidean,
    "manhattan": _manhattan,
}
"""More is more alike in all. The first is the one that is meant where none is named."""


def units(vectors: Vectors | Numbers) -> Numbers:
    """float64 of length one; zeros stay zeros."""
    exact = np.asarray(vectors, dtype=np.float64)
    length = np.linalg.norm(exact, axis=1, keepdims=True)
    return np.asarray(exact / np.where(length > 0, length, 1.0))


def similarities(one: Vectors, other: Vectors, names: Sequence[str] = tuple(SIMILARITIES)) -> dict[str, Numbers]:
    """(N,D) each -> (N,) of each name: row by row."""
    found = {name: np.empty(len(one)) for name in names}
    for block in _rows(len(one), one.shape[1]):
        pair = one[block].astype(np.float64), other[block].astype(np.float64)
        for name in names:
            found[name][block] = SIMILARITIES[name](*pair).astype(np.float32)
    return found


def zeros_note(*sides: Vectors) -> tuple[str, ...]:
    """Tell of vectors that have no direction."""
    many = sum(int((~side.any(axis=1)).sum()) for side in sides)
    return (f"{many:,} of the vectors are all zeros: their cosine is taken as 0",) if many else ()


def _rows(many: int, width: int) -> Iterator[slice]:
    size = max(1, _AT_ONCE // max(1, width))
    return (slice(begin, begin + size) for begin in range(0, many, size))
