"""How surprising counts are under a law: Pearson's chi-square, with the tail of its distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Surprise:
    chi_square: float
    freedom: int
    p: float
    """The chance of a deviation at least this large, if the law holds."""


def surprise(counts: ArrayLike, shares: ArrayLike) -> Surprise:
    """Counts of independent draws against the shares of a law. What the law gives no share must not occur."""
    seen, law = np.asarray(counts, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    if seen.shape != law.shape:
        raise ValueError(f"{seen.size} counts for {law.size} shares")
    possible = law > 0
    freedom = int(possible.sum()) - 1
    if seen[~possible].any() or not seen.any():
        return Surprise(float("inf"), freedom, 0.0)
    if freedom == 0:
        return Surprise(0.0, 0, 1.0)
    expected = law[possible] * seen.sum() / law.sum()
    value = float(((seen[possible] - expected) ** 2 / expected).sum())
    tail = torch.special.gammaincc(torch.tensor(freedom / 2, dtype=torch.float64), torch.tensor(value / 2).double())
    return Surprise(value, freedom, float(tail))
