"""Candidates put into an order for each question (rank): MRR, MAP, NDCG@10 and accuracy@1 as means over questions.

A candidate is right if its relevance is above 0. Candidates of equal score share the last of their places (for NDCG the
mean over their orders), so that a model which scores all alike gains nothing. Questions without a right candidate
say nothing and are left out, which is told.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from maskery.errors import InputError
from maskery.tasks.judge.tally import Numbers, Values, mean, require_as_many

DEPTH = 10
NAMES = ("mrr", "map", f"ndcg@{DEPTH}", "accuracy@1")


@dataclass(frozen=True)
class RankTally:
    each: Numbers
    """(4,N): the metrics of each question."""
    left_out: int
    tied: int
    """Questions in which candidates have the same score."""

    @property
    def size(self) -> int:
        return len(self.each[0])

    def values(self, weights: Numbers) -> Values:
        return {name: mean(weights, each) for name, each in zip(NAMES, self.each, strict=True)}

    @property
    def notes(self) -> tuple[str, ...]:
        told = []
        if self.left_out:
            told.append(f"left out: {self.left_out:,} questions without a right candidate")
        if self.tied:
            told.append(f"{self.tied:,} questions have candidates of equal score: these share the last of their places")
        return tuple(told)


def rank_tally(gold: Sequence[float], predicted: Sequence[float], groups: Sequence[Hashable]) -> RankTally:
    """Relevance and score of each candidate, and which question it belongs to."""
    require_as_many(gold, predicted)
    require_as_many(gold, groups)
    relevance, scores = np.asarray(gold, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if not (np.isfinite(relevance).all() and np.isfinite(scores).all()):
        place = int(np.flatnonzero(~(np.isfinite(relevance) & np.isfinite(scores)))[0])
        raise InputError("a score is not a number", where=f"example {place}", repair="remove the example")
    members: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(group, []).append(place)
    asked = [places for places in members.values() if (relevance[places] > 0).any()]
    if not asked:
        raise InputError("no question has a right candidate", repair="mark right candidates by labels above 0")
    each = np.array([question_scores(relevance[places], scores[places]) for places in asked]).T
    tied = sum(len(np.unique(scores[places])) < len(places) for places in asked)
    return RankTally(each, len(members) - len(asked), tied)


def question_scores(relevance: Numbers, scores: Numbers) -> tuple[float, float, float, float]:
    """MRR, MAP, NDCG and accuracy@1 of one question."""
    place = (scores[:, None] <= scores[None, :]).sum(1)
    right = relevance > 0
    first = int(place[right].min())
    among = (scores[right][:, None] <= scores[right][None, :]).sum(1)
    return (
        1 / first,
        float((among / place[right]).mean()),
        _ndcg(relevance, scores),
        float(_best_is_right(right, scores)),
    )


def _best_is_right(right: np.ndarray[tuple[int], np.dtype[np.bool_]], scores: Numbers) -> bool:
    return bool(right[scores == scores.max()].all())


def _ndcg(relevance: Numbers, scores: Numbers) -> float:
    """Equal scores: each has the mean gain of all of them."""
    worth = 1 / np.log2(np.arange(2, len(scores) + 2))
    worth[DEPTH:] = 0
    _, group, many = np.unique(-scores, return_inverse=True, return_counts=True)
    gain = np.bincount(group, weights=np.maximum(relevance, 0)) / many
    stops = np.cumsum(many)
    sums = np.concatenate([[0.0], np.cumsum(worth)])
    best = float(np.sort(np.maximum(relevance, 0))[::-1] @ worth)
    return float(gain @ (sums[stops] - sums[stops - many])) / best
