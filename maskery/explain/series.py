"""Long series made short enough to draw: smoothing, gaps, and one point for each pixel."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]
SHORT = 100
"""A series with fewer points is drawn as it is."""


def window(points: int) -> int:
    """Over how many points a curve is smoothed: a twentieth of it."""
    return 1 if points < SHORT else points // 20


def smoothed(values: Column, over: int) -> Column:
    """Exponential mean with the weight of the start taken out; a value that is not finite stays, and counts nothing."""
    if over <= 1:
        return values.copy()
    keep = math.exp(-1 / over)
    total = weight = 0.0
    result = np.empty_like(values)
    for place, value in enumerate(values.tolist()):
        if math.isfinite(value):
            total, weight = keep * total + (1 - keep) * value, keep * weight + (1 - keep)
            result[place] = total / weight
        else:
            result[place] = np.nan
    return result


def stretches(x: Column, y: Column) -> Iterator[tuple[Column, Column]]:
    """The finite parts: a curve has a gap where a value is not a number."""
    fine = np.isfinite(x) & np.isfinite(y)
    edges = np.flatnonzero(np.diff(fine.astype(np.int8), prepend=0, append=0))
    for first, stop in zip(edges[::2], edges[1::2], strict=True):
        yield x[first:stop], y[first:stop]


def thinned(x: Column, y: Column, most: int) -> tuple[Column, Column]:
    """At most about `most` points: of each bucket its lowest and highest, so that no spike is lost."""
    if len(x) <= most:
        return x, y
    kept: list[int] = []
    for bucket in np.array_split(np.arange(len(x)), max(1, most // 2)):
        part = y[bucket]
        kept += sorted({int(bucket[part.argmin()]), int(bucket[part.argmax()])})
    return x[kept], y[kept]
