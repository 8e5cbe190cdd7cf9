"""Whether a model is as often right as it says: the expected calibration error, and one temperature that repairs it.

Chances are put into bins of equal width by that of the class chosen; ECE is the mean distance between chance and share
of right answers, weighted by what lies in the bins (Guo et al. 2017). A temperature divides the scores before the
softmax: no answer changes, only how sure it is. It is fitted on the loss of a set that was not trained on; what it is
worth has to be looked at on another one, or it looks better than it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maskery.errors import InputError
from maskery.tasks.judge.tally import Numbers

BINS = 15
COLDEST, HOTTEST = 0.02, 50.0
_ENOUGH = 1e-10
_MOST_STEPS = 100


@dataclass(frozen=True)
class Bin:
    low: float
    high: float
    n: int
    chance: float
    """The mean chance of what lies in it; the middle of the bin if nothing does."""
    right: float


@dataclass(frozen=True)
class Calibration:
    ece: float
    nll: float
    """The mean loss of the right answer."""
    bins: tuple[Bin, ...]


@dataclass(frozen=True)
class Calibrated:
    """Before, and after division by a temperature; the same set if `fitted_here`."""

    temperature: float
    before: Calibration
    after: Calibration
    fitted_here: bool
    notes: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        return {
            "temperature": self.temperature,
            "ece": self.before.ece,
            "ece_after": self.after.ece,
            "nll": self.before.nll,
            "nll_after": self.after.nll,
        }


def calibration(probabilities: ArrayLike, gold: Sequence[int] | NDArray[np.int64], bins: int = BINS) -> Calibration:
    """(N,C) chances and (N,) numbers of the right classes."""
    chances, right = _checked(probabilities, gold)
    sure = chances.max(1)
    hit = (chances.argmax(1) == right).astype(np.float64)
    place = np.clip(np.ceil(sure * bins).astype(np.int64) - 1, 0, bins - 1)
    many, sums, hits = (np.bincount(place, weights=each, minlength=bins) for each in (np.ones_like(sure), sure, hit))
    found = []
    for number, (n, total, good) in enumerate(zip(many.tolist(), sums.tolist(), hits.tolist(), strict=True)):
        low, high = number / bins, (number + 1) / bins
        found.append(Bin(low, high, int(n), total / n if n else (low + high) / 2, good / n if n else 0.0))
    with np.errstate(divide="ignore"):
        loss = -np.log(chances[np.arange(len(right)), right])
    ece = float(np.abs(sums - hits).sum() / len(right))
    return Calibration(ece, float(np.minimum(loss, -np.log(np.finfo(np.float64).tiny)).mean()), tuple(found))


def fit_temperature(probabilities: ArrayLike, gold: Sequence[int] | NDArray[np.int64]) -> float:
    """The temperature of the least loss, between `COLDEST` and `HOTTEST`: Newton's steps on 1 / T, for which the loss
    is convex, inside a bracket that halves where a step leaves it. Chances serve as well as scores: their logarithms
    are the scores but for a constant."""
    chances, right = _checked(probabilities, gold)
    with np.errstate(divide="ignore"):
        scores = np.log(chances)
    if not np.isfinite(scores[np.arange(len(right)), right]).all():
        return HOTTEST
    low, high = 1 / HOTTEST, 1 / COLDEST
    if _slope(scores, right, low)[0] >= 0:
        return HOTTEST
    if _slope(scores, right, high)[0] <= 0:
        return COLDEST
    at = 1.0
    for _ in range(_MOST_STEPS):
        slope, curve = _slope(scores, right, at)
        low, high = (at, high) if slope < 0 else (low, at)
        step = at - slope / curve if curve > 0 else low
        after = step if low < step < high else (low + high) / 2
        if abs(after - at) < _ENOUGH * at:
            break
        at = after
    return 1 / at


def _slope(scores: Numbers, right: NDArray[np.int64], at: float) -> tuple[float, float]:
    """First and second derivative of the mean loss after 1 / T."""
    chances = _softmax(scores * at)
    finite = np.where(chances > 0, scores, 0.0)
    mean = (chances * finite).sum(1)
    spread = (chances * (finite - mean[:, None]) ** 2).sum(1)
    return float((mean - scores[np.arange(len(right)), right]).mean()), float(spread.mean())


def _softmax(scores: Numbers) -> Numbers:
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True))


def cooled(probabilities: ArrayLike, temperature: float) -> Numbers:
    """The chances after the scores were divided by a temperature."""
    with np.errstate(divide="ignore"):
        return _softmax(np.log(np.asarray(probabilities, dtype=np.float64)) / temperature)


def calibrated(
    probabilities: ArrayLike, gold: Sequence[int] | NDArray[np.int64], temperature: float | None = None
) -> Calibrated:
    """Before and after a temperature; without one it is fitted on the very set, which is told."""
    used = fit_temperature(probabilities, gold) if temperature is None else temperature
    notes = []
    if temperature is None:
        notes.append("the temperature was fitted on the same examples: after it they look better than others would")
    if used in (COLDEST, HOTTEST):
        why = "all answers are right" if used == COLDEST else "chances say nothing about the answers"
        notes.append(f"the temperature is at its limit, {used:g}: {why}")
    after = calibration(cooled(probabilities, used), gold)
    return Calibrated(used, calibration(probabilities, gold), after, temperature is None, tuple(notes))


def _checked(probabilities: ArrayLike, gold: Sequence[int] | NDArray[np.int64]) -> tuple[Numbers, NDArray[np.int64]]:
    chances, right = np.asarray(probabilities, dtype=np.float64), np.asarray(gold, dtype=np.int64)
    if chances.ndim != 2 or len(chances) != len(right) or not len(right):
        raise InputError(f"probabilities of shape {chances.shape} for {len(right):,} right answers")
    if not (chances >= 0).all() or (np.abs(chances.sum(1) - 1) > 1e-3).any():
        place = int(np.flatnonzero(~((chances >= 0).all(1) & (np.abs(chances.sum(1) - 1) <= 1e-3)))[0])
        raise InputError("the chances of an example do not add up to 1", where=f"example {place}")
    return chances, right
