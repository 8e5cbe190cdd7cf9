"""Pairs that mean the same or not, told apart by a threshold on their similarity.

`average_precision` needs no threshold: the sum over all thresholds of the recall gained times the precision there.
`accuracy` and `f1` are those of the best threshold on these very pairs, so they flatter; every resample of the interval
looks for its own. A pair counts as the same from the threshold upwards, and equal similarities fall on one side.
Figures without a name behind them are of the cosine.

Shapes: N pairs, B sets, S steps: distinct similarities, from the highest down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maskery.errors import InputError
from maskery.tasks.judge.tally import Values, ratio
from maskery.vectors.judge.encodes import Encodes, Numbers, Told, vectors_of
from maskery.vectors.judge.examples import TextPairs
from maskery.vectors.judge.similarity import SIMILARITIES, similarities, zeros_note
from maskery.vectors.judge.sts import MAIN


@dataclass(frozen=True)
class _Steps:
    """The pairs from the most to the least alike."""

    order: NDArray[np.int64]
    ends: NDArray[np.int64]
    """(S,) the last pair of each step, in that order."""
    thresholds: Numbers
    """(S,) from which on pairs count as the same: halfway to the next step."""

    @classmethod
    def of(cls, found: Numbers) -> _Steps:
        order = np.argsort(-found, kind="stable")
        ordered = found[order]
        ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
        levels = ordered[ends]
        return cls(order, ends, np.append((levels[:-1] + levels[1:]) / 2, levels[-1]))


@dataclass(frozen=True)
class PairTally:
    same: Numbers
    """(N,) 1 or 0."""
    found: dict[str, Numbers]
    told: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return len(self.same)

    @cached_property
    def _steps(self) -> dict[str, _Steps]:
        return {name: _Steps.of(each) for name, each in self.found.items()}

    def _counts(self, name: str, weights: Numbers) -> tuple[Numbers, Numbers]:
        """(B,S) right ones and all pairs from each threshold upwards."""
        steps = self._steps[name]
        ordered = weights.take(steps.order, axis=1)
        taken = np.cumsum(ordered, axis=1)
        ordered *= self.same[steps.order]
        hits = np.cumsum(ordered, axis=1, out=ordered)
        if len(steps.ends) < self.size:
            hits, taken = hits.take(steps.ends, axis=1), taken.take(steps.ends, axis=1)
        return hits, taken

    def values(self, weights: Numbers) -> Values:
        figures: Values = {}
        every, right = weights.sum(1), weights @ self.same
        for name in self.found:
            end = "" if name == MAIN else f"_{name}"
            hits, taken = self._counts(name, weights)
            # Where nothing was taken there are no hits either: dividing by one is as good.
            precision = hits / np.maximum(taken, 1.0)
            total = precision[:, 0] * hits[:, 0] + np.einsum("bs,bs->b", np.diff(hits, axis=1), precision[:, 1:])
            figures[f"average_precision{end}"] = ratio(total, right, np.nan)
            figures[f"accuracy{end}"] = (every - right + np.maximum(0.0, (2 * hits - taken).max(1))) / every
            figures[f"f1{end}"] = (2 * hits / np.maximum(taken + right[:, None], 1.0)).max(1)
        return figures

    def thresholds(self) -> dict[str, float]:
        """The best thresholds of the cosine, and precision and recall at that of F1."""
        found = self._counts(MAIN, np.ones((1, self.size)))
        hits, taken = found[0][0], found[1][0]
        right = float(self.same.sum())
        levels = self._steps[MAIN].thresholds
        above = float(np.nextafter(self.found[MAIN].max(), np.inf))
        best, f1 = int(np.argmax(2 * hits - taken)), int(np.argmax(hits / (taken + right)))
        return {
            "accuracy_threshold": float(levels[best]) if 2 * hits[best] > taken[best] else above,
            "f1_threshold": float(levels[f1]),
            "precision": float(hits[f1] / taken[f1]),
            "recall": float(hits[f1] / right),
        }

    @property
    def notes(self) -> tuple[str, ...]:
        share = float(self.same.mean())
        flat = (
            f"all {name} similarities are {each[0]:.6g}: they tell no pairs apart"
            for name, each in self.found.items()
            if (each == each[0]).all()
        )
        guess = f"{share:.2%} of the pairs are the same: who guesses has that average precision"
        return (*self.told, *flat, guess, "accuracy and f1 are of the threshold that is best on these very pairs")


def pair_tally(
    encoder: Encodes, examples: TextPairs, told: Told | None = None, names: Sequence[str] = tuple(SIMILARITIES)
) -> PairTally:
    strange = np.flatnonzero(~np.isin(examples.score, (0.0, 1.0)))
    if strange.size:
        at = int(strange[0])
        cause = f"the label of pair {at} is {examples.score[at]:g}, not 0 or 1"
        raise InputError(cause, where=examples.place, repair='the kind "sts" is for scores on a scale')
    if (examples.score == examples.score[0]).all():
        cause = f"all {len(examples):,} pairs have the label {examples.score[0]:g}: there is nothing to tell apart"
        raise InputError(cause, where=examples.place, repair="give pairs of both labels")
    both = vectors_of(encoder, [*examples.first, *examples.second], told)
    one, other = both[: len(examples)], both[len(examples) :]
    return PairTally(examples.score, similarities(one, other, names), zeros_note(one, other))
