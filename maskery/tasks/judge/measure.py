"""The metrics of a task with their intervals: from right answers and predictions to a `Judgement`.

task              gold                              predicted                besides
classify, pair    names of classes                  names of classes         labels, probabilities (N,C)
choice            names of choices                  the same
multilabel        sets of names                     sets of names            labels
regress           scores                            scores
tag               spans of each example             spans                    tags: (right, predicted) of tokens
qa                right answers (none: no answer)   a text, "" for none      language
rank              relevance of each candidate       scores                   groups: the question of each
seq2seq           a text, or several                a text
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maskery.errors import InputError, UnknownName
from maskery.inspection.bootstrap import interval
from maskery.inspection.bootstrap import weights as resampled_weights
from maskery.inspection.statistics import Interval, wilson
from maskery.tasks.examples import TASKS
from maskery.tasks.judge.answers import Language, answer_tally
from maskery.tasks.judge.classes import class_tally, label_set_tally, right_tally
from maskery.tasks.judge.ranking import rank_tally
from maskery.tasks.judge.scores import score_tally
from maskery.tasks.judge.tagging import TokenTags, span_tally
from maskery.tasks.judge.tally import Tally
from maskery.tasks.judge.written import written_tally

HEADLINES: Mapping[str, tuple[str, ...]] = {
    "classify": ("accuracy",),
    "pair": ("accuracy",),
    "choice": ("accuracy",),
    "multilabel": ("micro_f1", "macro_f1"),
    "regress": ("spearman", "pearson"),
    "tag": ("span_f1", "precision", "recall"),
    "qa": ("f1", "em"),
    "rank": ("mrr", "map"),
    "seq2seq": ("rouge_l", "bleu"),
}
"""What is told of a task before all else. The first decides which of two models is better: more is better in all."""
_NO_SHARES = ("mcc", "spearman", "pearson", "mse")


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What a model is worth on a set: figures, their 95 % intervals, and what has to be known to read them."""

    task: str
    n: int
    """What the intervals are over: examples, of rank questions."""
    metrics: dict[str, float]
    intervals: dict[str, Interval] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        return HEADLINES[self.task][0]

    @property
    def value(self) -> float:
        """What decides between two models: more is better."""
        return self.metrics[self.headline]

    def plain(self) -> dict[str, Any]:
        """As JSON: each metric under its own name, and n, intervals, notes."""
        intervals = {name: list(pair) for name, pair in self.intervals.items()}
        return {"task": self.task, "n": self.n, **self.metrics, "intervals": intervals, "notes": list(self.notes)}


def measure(
    task: str,
    gold: Sequence[Any],
    predicted: Sequence[Any],
    *,
    labels: Sequence[str] = (),
    probabilities: ArrayLike | None = None,
    groups: Sequence[Hashable] | None = None,
    tags: TokenTags | None = None,
    language: Language = "auto",
) -> dict[str, float]:
    """The metrics alone, without intervals: for the evaluations in the course of training."""
    asked = _Asked(gold, predicted, labels, probabilities, groups, tags, language)
    return _figures(tally_of(task, asked))


def judge(
    task: str,
    gold: Sequence[Any],
    predicted: Sequence[Any],
    *,
    labels: Sequence[str] = (),
    probabilities: ArrayLike | None = None,
    groups: Sequence[Hashable] | None = None,
    tags: TokenTags | None = None,
    language: Language = "auto",
) -> Judgement:
    """The metrics with 95 % intervals by a bootstrap over examples (of rank: over questions)."""
    asked = _Asked(gold, predicted, labels, probabilities, groups, tags, language)
    tally = tally_of(task, asked)
    metrics = _figures(tally)
    notes = (*tally.notes, *_few(tally.size))
    return Judgement(task=task, n=tally.size, metrics=metrics, intervals=_intervals(tally, metrics), notes=notes)


@dataclass(frozen=True)
class _Asked:
    gold: Sequence[Any]
    predicted: Sequence[Any]
    labels: Sequence[str] = ()
    probabilities: ArrayLike | None = None
    groups: Sequence[Hashable] | None = None
    tags: TokenTags | None = None
    language: Language = "auto"


def _rank(asked: _Asked) -> Tally:
    if asked.groups is None:
        raise InputError("nobody said which candidates belong to one question", repair="groups=[...], one for each")
    return rank_tally(asked.gold, asked.predicted, asked.groups)


def _classes(asked: _Asked) -> Tally:
    return class_tally(asked.gold, asked.predicted, asked.labels, asked.probabilities)


_TALLIES: Mapping[str, Callable[[_Asked], Tally]] = {
    "classify": _classes,
    "pair": _classes,
    "choice": lambda asked: right_tally(asked.gold, asked.predicted),
    "multilabel": lambda asked: label_set_tally(asked.gold, asked.predicted, asked.labels),
    "regress": lambda asked: score_tally(asked.gold, asked.predicted),
    "tag": lambda asked: span_tally(asked.gold, asked.predicted, asked.tags),
    "qa": lambda asked: answer_tally(asked.gold, asked.predicted, asked.language),
    "rank": _rank,
    "seq2seq": lambda asked: written_tally(asked.gold, asked.predicted),
}


def tally_of(task: str, asked: _Asked) -> Tally:
    if task not in _TALLIES:
        raise UnknownName("task", task, TASKS)
    return _TALLIES[task](asked)


def _figures(tally: Tally) -> dict[str, float]:
    return {name: float(value[0]) for name, value in tally.values(np.ones((1, tally.size))).items()}


def _intervals(tally: Tally, metrics: Mapping[str, float]) -> dict[str, Interval]:
    """Where a share is 0 or 1 every resample says the same: there Wilson's, with a draw for each example."""
    found: dict[str, list[Any]] = {name: [] for name in metrics}
    for weights in resampled_weights(tally.size):
        for name, values in tally.values(weights).items():
            found[name].append(values)
    return {
        name: wilson(metrics[name], tally.size)
        if metrics[name] in (0.0, 1.0) and name not in _NO_SHARES
        else interval(np.concatenate(values))
        for name, values in found.items()
    }


_FEW = 30


def _few(size: int) -> tuple[str, ...]:
    return (f"only {size} example{'' if size == 1 else 's'}: the intervals are too narrow",) if size < _FEW else ()
