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


@dataclass(frozen=True)
class ScoreTally:
    gold: Numbers
    predicted: Numbers

    @property
    def size(self) -> int:
        return len(self.gold)

    @cached_property
    def _ladders(self) -> tuple[_Ladder, _Ladder]:
        return _Ladder(self.gold), _Ladder(self.predicted)

    def values(self, weights: Numbers) -> Values:
        gold, predicted = (np.broadcast_to(each, weights.shape) for each in (self.gold, self.predicted))
        ranks = [each.ranks(weights) for each in self._ladders]
        return {
            "spearman": _correlation(weights, *ranks),
            "pearson": _correlation(weights, gold, predicted),
            "mse": mean(weights, (self.gold - self.predicted) ** 2),
        }

    @property
    def notes(self) -> tuple[str, ...]:
        sides = {"right scores": self.gold, "predicted scores": self.predicted}
        return tuple(
            f"all {name} are {each[0]:g}: spearman and pearson are 0 by definition"
            for name, each in sides.items()
            if (each == each[0]).all()
        )


class _Ladder:
    """Ranks of scores in sets that hold them several times or not at all."""

    def __init__(self, scores: Numbers) -> None:
        self.order = np.argsort(scores, kind="stable")
        ordered = scores[self.order]
        first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
        self.starts = np.flatnonzero(first)
        self.step: NDArray[np.int64] = np.empty(len(scores), dtype=np.int64)
        self.step[self.order] = np.cumsum(first) - 1

    def ranks(self, weights: Numbers) -> Numbers:
        """(B,N) -> (B,N): the mean place of all that have the same score, from 1."""
        upto = np.cumsum(weights[:, self.order], axis=1)
        ends = upto[:, np.append(self.starts[1:], upto.shape[1]) - 1]
        before = np.concatenate([np.zeros((len(weights), 1)), ends[:, :-1]], axis=1)
        middle = (before + ends + 1) / 2
        return middle[:, self.step]


def _correlation(weights: Numbers, one: Numbers, other: Numbers) -> Numbers:
    many = weights.sum(1, keepdims=True)
    x, y = (each - (weights * each).sum(1, keepdims=True) / many for each in (one, other))
    spread = np.sqrt((weights * x * x).sum(1)) * np.sqrt((weights * y * y).sum(1))
    flat = _flat(weights, one) | _flat(weights, other)
    return np.clip(ratio((weights * x * y).sum(1), np.where(flat, 0.0, spread)), -1.0, 1.0)


def _flat(weights: Numbers, scores: Numbers) -> NDArray[np.bool_]:
    """Whether all that is drawn is one score: rounding would make a correlation of nothing."""
    there = weights > 0
    highest = np.where(there, scores, -np.inf).max(1)
    return np.asarray(highest == np.where(there, scores, np.inf).min(1))


def score_tally(gold: Sequence[float], predicted: Sequence[float]) -> ScoreTally:
    require_as_many(gold, predicted)
    sides = {"right": np.asarray(gold, dtype=np.float64), "predicted": np.asarray(predicted, dtype=np.float64)}
    for name, scores in sides.items():
        if not np.isfinite(scores).all():
            place = int(np.flatnonzero(~np.isfinite(scores))[0])
            raise InputError(f"a {name} score is not a number", where=f"example {place}", repair="remove the example")
    return ScoreTally(sides["right"], sides["predicted"])
