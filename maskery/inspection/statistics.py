"""How far a measured share or mean may be from what was asked by chance alone.

Draws of one row are not always apart: a span is masked or kept as one, a row's budget is rounded once. So a share is a
ratio of sums over rows, and its spread is measured from row to row, whatever was drawn together within them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, exp, inf, isfinite, lgamma, log, sqrt

import numpy as np
from numpy.typing import ArrayLike

Interval = tuple[float, float]
Z95 = 1.959964
FEWEST = 5.0
"""Cells of a chi-square test that expect less than this are put together."""


@dataclass
class Ratio:
    """Hits of cases, row by row: the two sums, and what their spread is made of."""

    rows: int = 0
    hits: int = 0
    cases: int = 0
    _squares: tuple[int, int, int] = (0, 0, 0)
    """Sums over rows of hits^2, hits x cases and cases^2."""

    def add(self, hits: ArrayLike, cases: ArrayLike) -> None:
        """The hits and cases of some rows; a row without a case says nothing."""
        h, c = np.asarray(hits, dtype=np.int64), np.asarray(cases, dtype=np.int64)
        self.rows += int((c > 0).sum())
        self.hits += int(h.sum())
        self.cases += int(c.sum())
        hh, hc, cc = self._squares
        self._squares = (hh + int(h @ h), hc + int(h @ c), cc + int(c @ c))

    @property
    def value(self) -> float:
        return self.hits / self.cases if self.cases else 0.0

    def spread(self, share: float) -> float:
        """The standard error of `value` around a share, from what rows differ by."""
        hh, hc, cc = self._squares
        squares = max(0.0, hh - 2 * share * hc + share * share * cc)
        return sqrt(squares * self.rows / (self.rows - 1)) / self.cases if self.rows > 1 else inf

    def interval(self, fresh: float = 1.0) -> Interval:
        """95 %, Wilson's, for as many draws apart as would spread so far. `fresh`: the part of rows drawn anew."""
        share, error = self.value, self.spread(self.value) / sqrt(fresh) if fresh else inf
        if error == 0.0 and 0.0 < share < 1.0:
            return share, share
        if error in (0.0, inf):
            return wilson(share, fresh * (self.rows if self.rows > 1 else self.cases))
        return wilson(share, share * (1 - share) / error**2, student(Z95, self.rows - 1))

    def surprise(self, share: float, fresh: float = 1.0) -> float:
        """How far `value` is from a share, in standard deviations of a normal variable."""
        if self.value == share or not self.cases:
            return 0.0
        if share in (0.0, 1.0):
            return copysign(inf, self.value - share)
        error = self.spread(share) / sqrt(fresh) if fresh else inf
        size = normal(abs(self.value - share) / error, self.rows - 1) if error else inf
        return copysign(size, self.value - share)


@dataclass(frozen=True)
class ChiSquare:
    statistic: float
    freedom: int
    p: float

    def plain(self) -> dict[str, float | None]:
        """As JSON, which has no infinity."""
        statistic = self.statistic if isfinite(self.statistic) else None
        return {"chi_square": statistic, "freedom": self.freedom, "p": self.p}


def wilson(share: float, draws: float, z: float = Z95) -> Interval:
    """Wilson's interval of a share of independent draws."""
    if draws <= 0:
        return 0.0, 1.0
    middle, half = share + z * z / (2 * draws), z * sqrt(share * (1 - share) / draws + (z / (2 * draws)) ** 2)
    low, high = (middle - half) / (1 + z * z / draws), (middle + half) / (1 + z * z / draws)
    return (0.0 if share == 0 else max(0.0, low)), (1.0 if share == 1 else min(1.0, high))


def mean_interval(lengths: dict[int, int], fresh: float = 1.0) -> Interval:
    """95 % of the mean of a histogram, by the normal law. `fresh`: the part of it that was drawn anew."""
    many = sum(lengths.values())
    if not many:
        return 0.0, 0.0
    mean = sum(length * number for length, number in lengths.items()) / many
    squares = sum(number * (length - mean) ** 2 for length, number in lengths.items())
    half = Z95 * sqrt(squares / max(1, many - 1) / (many * fresh))
    return mean - half, mean + half


def student(z: float, freedom: int) -> float:
    """The value of Student's law that is as rare as z of the normal one (Wallace's approximation)."""
    return sqrt(freedom * (exp((z * (8 * freedom + 3) / (8 * freedom + 1)) ** 2 / freedom) - 1))


def normal(t: float, freedom: int) -> float:
    """The other way: what Student's t would be as a normal variable. Few rows do not surprise much."""
    return (8 * freedom + 1) / (8 * freedom + 3) * sqrt(freedom * log(1 + t * t / freedom)) if freedom > 0 else 0.0


def chi_square(found: ArrayLike, chances: ArrayLike, fresh: float = 1.0) -> ChiSquare:
    """Counts against the chances of their cells; cells that expect little are put together, from the last on."""
    counts, share = np.asarray(found, dtype=np.float64) * fresh, np.asarray(chances, dtype=np.float64)
    if counts[share == 0].any():
        return ChiSquare(inf, len(counts) - 1, 0.0)
    expected = share * counts.sum()
    cells: list[tuple[float, float]] = []
    held = (0.0, 0.0)
    for count, wanted in zip(counts[::-1].tolist(), expected[::-1].tolist(), strict=True):
        held = (held[0] + count, held[1] + wanted)
        if held[1] >= FEWEST:
            cells.append(held)
            held = (0.0, 0.0)
    if cells:
        cells[-1] = (cells[-1][0] + held[0], cells[-1][1] + held[1])
    statistic = sum((count - wanted) ** 2 / wanted for count, wanted in cells)
    freedom = max(0, len(cells) - 1)
    return ChiSquare(statistic, freedom, upper_gamma(freedom / 2, statistic / 2) if freedom else 1.0)


def upper_gamma(a: float, x: float) -> float:
    """The regularised upper incomplete gamma function: a series below, a continued fraction (Lentz) above."""
    if x <= 0:
        return 1.0
    front = exp(a * log(x) - x - lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while term > total * 1e-15:
            n += 1
            term *= x / n
            total += term
        return max(0.0, 1 - front * total)
    b = x + 1 - a
    c, d = 1e300, 1 / b
    fraction, change, n = d, 0.0, 0.0
    while abs(change - 1) > 1e-14:
        n += 1
        step = -n * (n - a)
        b += 2
        d = 1 / (step * d + b)
        c = b + step / c
        change = c * d
        fraction *= change
    return front * fraction
