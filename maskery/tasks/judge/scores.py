"""Scores (regress): Spearman's and Pearson's correlation, and the mean squared error.

Equal scores share the mean of their ranks. A side that is all one score has no correlation: 0, told in the notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maskery.errors import InputError
from maskery.tasks.judge.tally import Numbers, Values, mean, ratio, require_as_many

_ROUNDING = 1e-12


@dataclass(frozen=True)
class ScoreTally:
    gold: Numbers
    predicted: Numbers

    @property
    def size(self) -> int:
        return len(self.gold)

    @cached_property
    def _ladders(self) -> tuple[Ladder, Ladder]:
        return Ladder(self.gold), Ladder(self.predicted)

    def values(self, weights: Numbers) -> Values:
        turned = np.ascontiguousarray(weights.T)
        x, y = (centered(each) for each in (self.gold, self.predicted))
        sums = [weights @ each for each in (x, y, x * x, y * y, x * y)]
        return {
            "spearman": self._spearman(turned),
            "pearson": correlation(weights.sum(1), *sums),
            "mse": mean(weights, (self.gold - self.predicted) ** 2),
        }

    def _spearman(self, turned: Numbers) -> Numbers:
        many = turned.sum(0)
        x, y = (each.ranks(turned) for each in self._ladders)
        own = turned * x
        products = [np.einsum("nb,nb->b", *pair) for pair in ((own, x), (turned * y, y), (own, y))]
        none = np.zeros_like(many)
        return correlation(many, none, none, *products)

    @property
    def notes(self) -> tuple[str, ...]:
        sides = {"right scores": self.gold, "predicted scores": self.predicted}
        return tuple(
            f"all {name} are {each[0]:g}: spearman and pearson are 0 by definition"
            for name, each in sides.items()
            if (each == each[0]).all()
        )


class Ladder:
    """Ranks of scores in sets that hold them several times or not at all."""

    def __init__(self, scores: Numbers) -> None:
        self.order = np.argsort(scores, kind="stable")
        ordered = scores[self.order]
        first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
        self.starts = np.flatnonzero(first)
        self.step: NDArray[np.int64] = np.empty(len(scores), dtype=np.int64)
        self.step[self.order] = np.cumsum(first) - 1

    def ranks(self, weights: Numbers) -> Numbers:
        """(N,B) -> (N,B): the mean place of all that have the same score, as far as it is from the middle place."""
        upto = np.cumsum(weights.take(self.order, axis=0), axis=0)
        ends = upto.take(np.append(self.starts[1:], len(upto)) - 1, axis=0)
        places = ends - upto[-1] / 2
        places[0] -= ends[0] / 2
        places[1:] -= np.diff(ends, axis=0) / 2
        return np.asarray(places.take(self.step, axis=0))


def centered(scores: Numbers) -> Numbers:
    """Less their mean; nothing but zeros where all are one score, whatever rounding makes of the mean."""
    return np.zeros_like(scores) if (scores == scores[0]).all() else scores - scores.mean()


def correlation(
    many: Numbers, x: Numbers, y: Numbers, xx: Numbers, yy: Numbers, xy: Numbers, *, undefined: float = 0.0
) -> Numbers:
    """Of sums; a side whose spread is no more than rounding has none, which is told as `undefined`."""
    spread_x, spread_y = xx - x * x / many, yy - y * y / many
    flat = (spread_x <= _ROUNDING * xx) | (spread_y <= _ROUNDING * yy)
    spread = np.where(flat, 0.0, np.sqrt(np.maximum(0.0, spread_x) * np.maximum(0.0, spread_y)))
    found: Numbers = np.clip(ratio(xy - x * y / many, spread, undefined), -1.0, 1.0)
    return found


def score_tally(gold: Sequence[float], predicted: Sequence[float]) -> ScoreTally:
    require_as_many(gold, predicted)
    sides = {"right": np.asarray(gold, dtype=np.float64), "predicted": np.asarray(predicted, dtype=np.float64)}
    for name, scores in sides.items():
        if not np.isfinite(scores).all():
            place = int(np.flatnonzero(~np.isfinite(scores))[0])
            raise InputError(f"a {name} score is not a number", where=f"example {place}", repair="remove the example")
    return ScoreTally(sides["right"], sides["predicted"])
