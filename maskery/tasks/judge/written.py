"""Texts that were written (seq2seq): exact match, F1 of characters, ROUGE-L, BLEU-4; all between 0 and 1.

    exact_match   the same but for white space around it
    char_f1       F1 of the bags of characters without white space
    rouge_l       F1 of the longest common subsequence of units, the mean over examples
    bleu          of the whole set: the geometric mean of the precisions of 1 to 4 units in a row, made smaller where
                  too little was written; without smoothing, so 0 if no four units in a row are right anywhere

Units are Chinese and Japanese signs one by one and words of other writing; capitals count. With several right texts the
best one counts, in BLEU as Papineni et al. 2002 have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maskery.tasks.judge.common import common_sequence, f1, overlap_f1, units
from maskery.tasks.judge.tally import Numbers, Values, mean, ratio, require_as_many

ORDERS = 4


@dataclass(frozen=True)
class WrittenTally:
    means: Numbers
    """(3,N): exact match, F1 of characters, ROUGE-L."""
    counts: Numbers
    """(10,N): for 1 to 4 units in a row those that are right and those that were written, then the lengths of the
    written and of the nearest right text."""
    empty: int

    @property
    def size(self) -> int:
        return len(self.means[0])

    def values(self, weights: Numbers) -> Values:
        names = ("exact_match", "char_f1", "rouge_l")
        found = {name: mean(weights, each) for name, each in zip(names, self.means, strict=True)}
        return found | {"bleu": _bleu(weights @ self.counts.T)}

    @property
    def notes(self) -> tuple[str, ...]:
        told = [f"{self.empty:,} of {self.size:,} texts were left empty"] if self.empty else []
        if not (self.counts[0:8:2].sum(1) > 0).all():
            told.append("no four units in a row are right anywhere: bleu is 0 by definition")
        return tuple(told)


def _bleu(sums: Numbers) -> Numbers:
    """(B,10) -> (B,)"""
    shares = np.stack([ratio(sums[:, at], sums[:, at + 1]) for at in range(0, 2 * ORDERS, 2)])
    with np.errstate(divide="ignore"):
        center = np.exp(np.log(shares).mean(0))
    short = 1 - ratio(sums[:, 9], sums[:, 8], empty=np.inf)
    return np.asarray(center * np.exp(np.minimum(0.0, short)))


def written_tally(gold: Sequence[str | Sequence[str]], predicted: Sequence[str]) -> WrittenTally:
    """A right text, or several, for each example."""
    require_as_many(gold, predicted)
    right = [[each] if isinstance(each, str) else list(each) for each in gold]
    pairs = list(zip(right, predicted, strict=True))
    means = [text_scores(texts, given) for texts, given in pairs]
    counts = [_counts([units(each) for each in texts], units(given)) for texts, given in pairs]
    empty = sum(not given.strip() for given in predicted)
    return WrittenTally(np.array(means, dtype=np.float64).T, np.array(counts, dtype=np.float64).T, empty)


def text_scores(gold: Sequence[str], predicted: str) -> tuple[float, float, float]:
    exact = float(any(predicted.strip() == each.strip() for each in gold))
    signs, written = "".join(predicted.split()), units(predicted)
    characters = max(overlap_f1("".join(each.split()), signs) for each in gold)
    return exact, characters, max(_rouge(units(each), written) for each in gold)


def _rouge(one: list[str], other: list[str]) -> float:
    if not one or not other:
        return float(one == other)
    return f1(common_sequence(one, other), len(one), len(other))


def _counts(gold: list[list[str]], written: list[str]) -> list[int]:
    found = []
    for order in range(1, ORDERS + 1):
        given = _in_a_row(written, order)
        most: Counter[tuple[str, ...]] = Counter()
        for each in gold:
            most |= _in_a_row(each, order)
        found += [(given & most).total(), given.total()]
    nearest = min((abs(len(each) - len(written)), len(each)) for each in gold)[1]
    return [*found, len(written), nearest]


def _in_a_row(text: list[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(text[at:] for at in range(order)), strict=False))
