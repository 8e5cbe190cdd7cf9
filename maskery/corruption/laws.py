"""Span laws: how many units a span has. A law is nothing but a table of probabilities for the lengths 0, 1, 2, ...

`single` is one unit. `weights` are given shares of 1, 2, 3, ... (ALBERT 1, 1/2, 1/3; MacBERT .4 .3 .2 .1). `geometric`
is cut at `longest` and *renormalised*, as SpanBERT does (p = .2 up to 10: mean 3.797); taking the smaller of a draw and
the longest would heap the tail on it (mean 4.46). `poisson` has a length of 0: an insertion (BART: mean 3, P(0) =
.0498). `fragment` has no table: there is one span, as long as the rate says (MASS).
"""

from __future__ import annotations

from math import exp, lgamma, log
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from maskery.corruption.config import SpanConfig

_NEVER = 1e-12
"""The tail of a Poisson law below this is left out."""


class Law(Protocol):
    def __call__(self, config: SpanConfig) -> NDArray[np.float64]:
        """(longest+1,) the probability of each length; they sum to one. An empty table: one span as long as the rate
        of its text, instead of many."""
        ...


def single(config: SpanConfig) -> NDArray[np.float64]:
    return np.array([0.0, 1.0])


def weights(config: SpanConfig) -> NDArray[np.float64]:
    return _normal([0.0, *config.weights])


def geometric(config: SpanConfig) -> NDArray[np.float64]:
    return _normal([0.0, *(config.p * (1 - config.p) ** n for n in range(config.longest))])


def poisson(config: SpanConfig) -> NDArray[np.float64]:
    chances: list[float] = []
    while len(chances) <= config.mean or chances[-1] > _NEVER:
        chances.append(exp(len(chances) * log(config.mean) - config.mean - lgamma(len(chances) + 1)))
    return _normal(chances)


def fragment(config: SpanConfig) -> NDArray[np.float64]:
    return np.zeros(0)


def _normal(shares: list[float]) -> NDArray[np.float64]:
    table = np.array(shares, dtype=np.float64)
    shares_of_one: NDArray[np.float64] = table / table.sum()
    return shares_of_one
