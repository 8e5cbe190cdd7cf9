"""Similarity of pairs against people's scores: Spearman's and Pearson's correlation of four similarities.

`spearman` and `pearson` are of the cosine; the others have their name behind them. Equal scores share the mean of their
ranks. Where all scores of a side are one number there is no correlation: not-a-number, told, never 0.

Shapes: N pairs, B sets (the pairs themselves, or resamples).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maskery.tasks.judge.scores import Ladder, centered, correlation
from maskery.tasks.judge.tally import Values
from maskery.vectors.judge.encodes import Encodes, Numbers, Told, vectors_of
from maskery.vectors.judge.examples import TextPairs
from maskery.vectors.judge.similarity import SIMILARITIES, similarities, zeros_note

MAIN = "cosine"


@dataclass(frozen=True)
class SimilarityTally:
    gold: Numbers
    """(N,)"""
    found: dict[str, Numbers]
    """(N,) of each similarity."""
    told: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return len(self.gold)

    @cached_property
    def _ladders(self) -> dict[str, Ladder]:
        return {name: Ladder(each) for name, each in (("", self.gold), *self.found.items())}

    def values(self, weights: Numbers) -> Values:
        turned = np.ascontiguousarray(weights.T)
        many, none = weights.sum(1), np.zeros(len(weights))
        ranks = self._ladders[""].ranks(turned)
        own = turned * ranks
        square = np.einsum("nb,nb->b", own, ranks)
        figures: Values = {}
        for name, each in self.found.items():
            end = "" if name == MAIN else f"_{name}"
            other = self._ladders[name].ranks(turned)
            sums = square, np.einsum("nb,nb,nb->b", turned, other, other), np.einsum("nb,nb->b", own, other)
            figures[f"spearman{end}"] = correlation(many, none, none, *sums, undefined=np.nan)
            x, y = centered(self.gold), centered(each)
            moments = (weights @ part for part in (x, y, x * x, y * y, x * y))
            figures[f"pearson{end}"] = correlation(many, *moments, undefined=np.nan)
        return figures

    @property
    def notes(self) -> tuple[str, ...]:
        sides = {"scores": self.gold} | {f"{name} similarities": each for name, each in self.found.items()}
        flat = (
            f"all {name} are {each[0]:.6g}: there is no correlation (not a number)"
            for name, each in sides.items()
            if (each == each[0]).all()
        )
        return (*self.told, *flat)


def similarity_tally(
    encoder: Encodes, examples: TextPairs, told: Told | None = None, names: Sequence[str] = tuple(SIMILARITIES)
) -> SimilarityTally:
    both = vectors_of(encoder, [*examples.first, *examples.second], told)
    one, other = both[: len(examples)], both[len(examples) :]
    return SimilarityTally(examples.score, similarities(one, other, names), zeros_note(one, other))
