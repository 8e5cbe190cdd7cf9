"""Does a cost grow as it should? Exponents and lines through measured points; small samples, so nothing clever."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """The power p of y ~ x^p that fits best, by least squares of the logarithms."""
    slope, _ = np.polyfit(np.log(x), np.log(y), 1)
    return float(slope)


def line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """(fixed, each) of y ~ fixed + each * x, the relative errors being what is made small; fixed is not below 0."""
    points, values = np.asarray(x, float), np.asarray(y, float)
    design = np.stack([np.ones_like(points), points], axis=1) / values[:, None]
    fixed, each = np.linalg.lstsq(design, np.ones_like(values), rcond=None)[0]
    if fixed >= 0:
        return float(fixed), float(each)
    share = points / values
    return 0.0, float(share.sum() / (share**2).sum())


def against(measured: Sequence[float], expected: Sequence[float], reference: int) -> list[float]:
    """Each measured / expected, scaled to 1 at the point `reference`: what is above 1 grew more than it should."""
    ratios = [got / wanted for got, wanted in zip(measured, expected, strict=True)]
    return [ratio / ratios[reference] for ratio in ratios]
