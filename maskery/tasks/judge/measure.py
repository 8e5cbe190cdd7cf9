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
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maskery.errors import InputError, UnknownName
from maskery.inspection.bootstrap import interval, resamples
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
_BESIDE: Mapping[str, tuple[str, ...]] = {
    "regress": ("mse",),
    "classify": ("macro_f1", "mcc"),
    "pair": ("macro_f1", "mcc"),
}
"""Further figures of a baseline: of equal scores there is no rank correlation."""
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
    baselines: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The same figures of the simplest answers to the same examples (maskery/tasks/judge/baselines.py)."""
    verdict: str = ""
    """Whether the model is ahead of the best of them, in a sentence; empty: there is none."""
    groups: Mapping[str, Mapping[str, Judgement]] = field(default_factory=dict)
    """Column -> its value -> the same for the examples that have it."""

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
        plain = {"task": self.task, "n": self.n, **self.metrics, "intervals": intervals, "notes": list(self.notes)}
        if self.groups:
            plain["groups"] = {
                by: {name: each.plain() for name, each in values.items()} for by, values in self.groups.items()
            }
        if not self.baselines:
            return plain
        return plain | {
            "baselines": {name: dict(each) for name, each in self.baselines.items()},
            "verdict": self.verdict,
        }


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


def compared(
    judgement: Judgement,
    gold: Sequence[Any],
    predicted: Sequence[Any],
    baselines: Mapping[str, Sequence[Any]],
    *,
    labels: Sequence[str] = (),
    groups: Sequence[Hashable] | None = None,
) -> Judgement:
    """The judgement with the figures of other answers to the same examples, and whether the model is ahead of the
    best: by the 95 % interval of the difference, both resampled alike."""
    task, headline = judgement.task, judgement.headline
    own = tally_of(task, _Asked(gold, predicted, labels, groups=groups))
    tallies = {name: tally_of(task, _Asked(gold, each, labels, groups=groups)) for name, each in baselines.items()}
    told = (*HEADLINES[task], *_BESIDE.get(task, ()))
    figures = {
        name: {key: value for key, value in _figures(tally).items() if key in told and not np.isnan(value)}
        for name, tally in tallies.items()
    }
    for name, each in baselines.items():
        if task == "regress" and len(set(each)) == 1:  # equal scores have no rank
            figures[name] = {key: value for key, value in figures[name].items() if key in _BESIDE[task]}
    known = [name for name, each in figures.items() if headline in each]
    if not known or np.isnan(judgement.value):
        return replace(judgement, baselines=figures)
    best = max(known, key=lambda name: figures[name][headline])
    mine, other = (resamples(each.values, own.size)[headline] for each in (own, tallies[best]))
    low, high = interval(np.nan_to_num(mine - other))
    verdict = _verdict(headline, judgement.value, best, figures[best][headline], (low, high))
    return replace(judgement, baselines=figures, verdict=verdict)


def _verdict(metric: str, value: float, best: str, other: float, bounds: Interval) -> str:
    low, high = bounds
    where = "ahead of" if low > 0 else "behind" if high < 0 else "level with"
    return (
        f"the model is {where} the best baseline, {best}: {metric} {value:.4f} against {other:.4f}, difference "
        f"{value - other:+.4f} [{low:+.4f}, {high:+.4f}]"
    )


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
    notes = (*tally.notes, *_few(tally.size), *one_class(task, gold, predicted))
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


def one_class(task: str, gold: Sequence[Any], predicted: Sequence[Any]) -> tuple[str, ...]:
    """A warning where a classifier gives the same answer to everything, though the right ones differ."""
    if task not in ("classify", "pair") or len(set(predicted)) != 1 or len(set(gold)) < 2:
        return ()
    return (
        f"warning: all {len(predicted):,} examples are predicted as {predicted[0]}: the model does not tell the "
        "classes apart. Train more epochs, with another learning rate, or from another model",
    )


_FEW = 30


def _few(size: int) -> tuple[str, ...]:
    return (f"only {size} example{'' if size == 1 else 's'}: the intervals are too narrow",) if size < _FEW else ()
