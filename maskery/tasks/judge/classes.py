"""One class for each example (classify, pair, choice): accuracy, F1, MCC and the area under the ROC curve.

accuracy   the share of right answers
macro_f1   the mean F1 of the classes that occur, among the right answers or the predictions
f1         of two classes, that of the last one in the order of labels: the positive one
mcc        Matthews' correlation, of many classes Gorodkin's; 0 where all answers are one class
auc        of two classes by the chance of the last; of more, the mean over the classes that occur, each against
           the rest; equal chances count half; 0.5 where there is only one class
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maskery.errors import InputError
from maskery.tasks.judge.tally import Numbers, Values, grouped, mean, precision_recall_f1, ratio, require_as_many

Classes = NDArray[np.int64]


@dataclass(frozen=True)
class ClassTally:
    labels: tuple[str, ...]
    gold: Classes
    predicted: Classes
    chances: Numbers | None
    """(N,C)"""

    @property
    def size(self) -> int:
        return len(self.gold)

    @cached_property
    def _areas(self) -> list[_Area]:
        """A curve for each class; of two classes one is enough, for the other's is the same."""
        if self.chances is None:
            return []
        asked = [1] if len(self.labels) == 2 else range(len(self.labels))
        return [_Area(self.chances[:, each], self.gold == each) for each in asked]

    def values(self, weights: Numbers) -> Values:
        many = len(self.labels)
        table = grouped(weights, self.gold * many + self.predicted, many * many).reshape(-1, many, many)
        hits, gold, predicted = np.trace(table, axis1=1, axis2=2), table.sum(2), table.sum(1)
        f1 = precision_recall_f1(np.diagonal(table, axis1=1, axis2=2), predicted, gold)[2]
        found = {
            "accuracy": ratio(hits, gold.sum(1)),
            "macro_f1": ratio(f1.sum(1), ((gold + predicted) > 0).sum(1).astype(float)),
        }
        if many == 2:
            found["f1"] = f1[:, 1]
        found["mcc"] = _matthews(hits, gold, predicted)
        if self.chances is not None:
            found["auc"] = self._auc(weights)
        return found

    def _auc(self, weights: Numbers) -> Numbers:
        turned = np.ascontiguousarray(weights.T)
        areas = np.stack([each.values(turned) for each in self._areas])
        there = ~np.isnan(areas)
        return ratio(np.where(there, areas, 0.0).sum(0), there.sum(0).astype(float), empty=0.5)

    @property
    def notes(self) -> tuple[str, ...]:
        told = []
        if len(self.labels) == 2:
            told.append(f"f1 is that of {self.labels[1]!r}, the last label")
        gold, predicted = (np.bincount(each, minlength=len(self.labels)) for each in (self.gold, self.predicted))
        absent = [self.labels[each] for each in np.flatnonzero(gold + predicted == 0)]
        if absent:
            told.append(f"macro_f1 leaves out what neither occurs nor is predicted: {', '.join(absent)}")
        if (gold > 0).sum() == 1:
            value = " and auc 0.5" if self.chances is not None else ""
            told.append(f"all right answers are {self.labels[gold.argmax()]!r}: mcc is 0{value} by definition")
        elif (predicted > 0).sum() == 1:
            told.append(f"all predictions are {self.labels[predicted.argmax()]!r}: mcc is 0 by definition")
        if self.chances is not None and len(self.labels) > 2 and 1 < (gold > 0).sum() < len(self.labels):
            told.append("auc is the mean over the classes that occur")
        return tuple(told)


class _Area:
    """The area under the curve of a class against the rest: the chance that one of it is scored above one of them."""

    def __init__(self, scores: Numbers, of: NDArray[np.bool_]) -> None:
        rest = np.flatnonzero(~of)
        self.rest = rest[np.argsort(scores[rest], kind="stable")]
        self.of = np.flatnonzero(of)
        ladder = scores[self.rest]
        self.below, self.upto = (np.searchsorted(ladder, scores[self.of], side) for side in ("left", "right"))

    def values(self, weights: Numbers) -> Numbers:
        """(N,B) -> (B,); not a number where the class, or the rest, is not there."""
        heap = np.zeros((len(self.rest) + 1, weights.shape[1]))
        np.cumsum(weights.take(self.rest, axis=0), axis=0, out=heap[1:])
        own = weights.take(self.of, axis=0)
        wins = np.einsum("nb,nb->b", own, heap.take(self.below, axis=0) + heap.take(self.upto, axis=0)) / 2
        return ratio(wins, own.sum(0) * heap[-1], empty=np.nan)


def _matthews(hits: Numbers, gold: Numbers, predicted: Numbers) -> Numbers:
    every = gold.sum(1)
    together = hits * every - (gold * predicted).sum(1)
    apart = (every**2 - (predicted**2).sum(1)) * (every**2 - (gold**2).sum(1))
    return ratio(together, np.sqrt(apart))


def class_tally(
    gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str] = (), chances: ArrayLike | None = None
) -> ClassTally:
    """Without labels, those that occur, in order. What is none of the labels is a class of its own, of chance 0."""
    require_as_many(gold, predicted)
    known = tuple(labels) or tuple(sorted({*gold, *predicted}))
    known += tuple(sorted({*gold, *predicted} - set(known)))
    number = {label: place for place, label in enumerate(known)}
    asked = np.array([number[each] for each in gold], dtype=np.int64)
    given = np.array([number[each] for each in predicted], dtype=np.int64)
    if chances is None:
        return ClassTally(known, asked, given, None)
    columns = _checked(chances, len(gold), len(labels) or len(known))
    unknown = np.zeros((len(gold), len(known) - columns.shape[1]))
    return ClassTally(known, asked, given, np.concatenate([columns, unknown], axis=1))


def _checked(chances: ArrayLike, examples: int, classes: int) -> Numbers:
    found = np.asarray(chances, dtype=np.float64)
    if found.shape != (examples, classes):
        raise InputError(
            f"probabilities of shape {found.shape} for {examples:,} examples of {classes} classes",
            repair="give one line for each example and one column for each label, in the order of labels",
        )
    if not np.isfinite(found).all():
        line = int(np.flatnonzero(~np.isfinite(found).all(1))[0])
        raise InputError("a probability is not a number", where=f"example {line}", repair="train with a lower rate")
    return found


@dataclass(frozen=True)
class RightTally:
    """Where only right and wrong are told apart (choice): classes are numbers that mean nothing by themselves."""

    right: Numbers

    @property
    def size(self) -> int:
        return len(self.right)

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def values(self, weights: Numbers) -> Values:
        return {"accuracy": mean(weights, self.right)}


def right_tally(gold: Sequence[str], predicted: Sequence[str]) -> RightTally:
    require_as_many(gold, predicted)
    return RightTally(np.array([one == other for one, other in zip(gold, predicted, strict=True)], dtype=np.float64))


@dataclass(frozen=True)
class LabelSetTally:
    """All classes that apply (multilabel)."""

    labels: tuple[str, ...]
    gold: Numbers
    """(N,C) ones and zeros."""
    predicted: Numbers

    @property
    def size(self) -> int:
        return len(self.gold)

    def values(self, weights: Numbers) -> Values:
        hits, predicted, gold = (weights @ each for each in (self.gold * self.predicted, self.predicted, self.gold))
        f1 = precision_recall_f1(hits, predicted, gold)[2]
        whole = (self.gold == self.predicted).all(1).astype(np.float64)
        return {
            "micro_f1": precision_recall_f1(hits.sum(1), predicted.sum(1), gold.sum(1))[2],
            "macro_f1": ratio(f1.sum(1), ((gold + predicted) > 0).sum(1).astype(float)),
            "subset_accuracy": mean(weights, whole),
        }

    @property
    def notes(self) -> tuple[str, ...]:
        told = []
        absent = [self.labels[each] for each in np.flatnonzero((self.gold + self.predicted).sum(0) == 0)]
        if absent:
            told.append(f"macro_f1 leaves out what neither occurs nor is predicted: {', '.join(absent)}")
        if not self.gold.any() and not self.predicted.any():
            told.append("no label applies and none was predicted: micro_f1 and macro_f1 are 0 by definition")
        return tuple(told)


def label_set_tally(
    gold: Sequence[frozenset[str]], predicted: Sequence[frozenset[str]], labels: Sequence[str] = ()
) -> LabelSetTally:
    require_as_many(gold, predicted)
    every = set().union(*gold, *predicted)
    known = tuple(labels) or tuple(sorted(every))
    known += tuple(sorted(every - set(known)))
    number = {label: place for place, label in enumerate(known)}
    return LabelSetTally(known, _marks(gold, number), _marks(predicted, number))


def _marks(sets: Sequence[frozenset[str]], number: dict[str, int]) -> Numbers:
    marks = np.zeros((len(sets), len(number)))
    for line, each in enumerate(sets):
        marks[line, [number[label] for label in each]] = 1
    return marks
