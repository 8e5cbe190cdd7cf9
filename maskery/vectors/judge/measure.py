"""An encoder and examples to figures with their intervals.

    judgement = evaluate_vectors(encoder, "sts", "STSB.dev.tsv")
    print("\\n".join(judgement.lines()))

kind          examples (a file, a folder, rows, or a list of)                  headline
sts           (text, text, score)                                        spearman
pairs         (text, text, 0 or 1)                                       average_precision
retrieval     (query, document, relevance)                               ndcg@10
clustering    (text, label)                                              v_measure
geometry      texts, or pairs as above                                   mean_cosine, uniformity, alignment
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np

from maskery.errors import ArgumentError, UnknownName
from maskery.inspection.bootstrap import interval, resamples
from maskery.inspection.statistics import Interval, wilson
from maskery.records import FORM, Records, records_or_items
from maskery.tasks.judge.tally import Tally
from maskery.tasks.read.given import RENAME, in_python
from maskery.vectors.judge.clustering import cluster_tally
from maskery.vectors.judge.encodes import Encodes, Numbers, Told
from maskery.vectors.judge.examples import (
    KINDS,
    LabelledTexts,
    PlainTexts,
    Searches,
    TextPairs,
    VectorExamples,
    searches_of_pairs,
)
from maskery.vectors.judge.geometry import alignment_tally, geometry_tally
from maskery.vectors.judge.pairs import pair_tally
from maskery.vectors.judge.read import read_vector_examples
from maskery.vectors.judge.retrieval import retrieval_tally
from maskery.vectors.judge.similarity import SIMILARITIES
from maskery.vectors.judge.sts import MAIN, similarity_tally

HEADLINES: Mapping[str, str] = {
    "sts": "spearman",
    "pairs": "average_precision",
    "retrieval": "ndcg@10",
    "clustering": "v_measure",
    "geometry": "mean_cosine",
}
UNITS = {"sts": "pairs", "pairs": "pairs", "retrieval": "queries", "clustering": "texts", "geometry": "texts"}
"""What n counts and the intervals are over."""
_SHARES = ("pairs", "retrieval", "clustering")
"""Kinds whose figures are shares: of 0 or 1 every resample says the same, and Wilson's interval is told."""
_FORM = f"the path of a file, {FORM}, or a list of tuples"
_FEW = 30
_ENOUGH = 0.5
"""Share of the resamples in which a figure has to be defined, for an interval to mean anything."""


@dataclass(frozen=True, kw_only=True)
class VectorJudgement:
    """What vectors are worth on a set: figures, their 95 % intervals, and what has to be known to read them."""

    kind: str
    n: int
    metrics: dict[str, float]
    """Not-a-number: the set does not define it, which the notes tell."""
    intervals: dict[str, Interval] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        return HEADLINES[self.kind]

    @property
    def value(self) -> float:
        return self.metrics[self.headline]

    def plain(self) -> dict[str, Any]:
        """As JSON: each metric under its own name, and n, intervals, notes. What is not defined is null."""
        figures = {name: _finite(value) for name, value in self.metrics.items()}
        intervals = {name: [_finite(bound) for bound in pair] for name, pair in self.intervals.items()}
        return {"task": self.kind, "n": self.n, **figures, "intervals": intervals, "notes": list(self.notes)}

    def lines(self) -> list[str]:
        """For a terminal."""
        width = max(map(len, self.metrics))
        shown = [f"{self.kind}, {self.n:,} {UNITS[self.kind]}; in brackets the 95 % interval"]
        for name, value in self.metrics.items():
            bounds = self.intervals.get(name)
            behind = f"  [{_text(bounds[0])}, {_text(bounds[1])}]" if bounds else ""
            shown.append(f"  {name:{width}}  {_text(value)}{behind}")
        return [*shown, *self.notes]


def evaluate_vectors(
    encoder: Encodes,
    kind: str,
    examples: VectorExamples | Iterable[Any] | str | Path,
    *,
    besides: bool = True,
    told: Told | None = None,
) -> VectorJudgement:
    """`besides`: sts and pairs by dot product and two distances too; without them it takes a quarter of the time.
    `told` hears how many texts were encoded since it was called before."""
    if kind not in KINDS:
        raise UnknownName("kind of judgement", kind, KINDS)
    if not callable(getattr(encoder, "encode", None)):
        raise ArgumentError(f"{type(encoder).__name__} has no encode(texts)", repair="give an encoder of texts")
    found = examples_of(kind, examples)
    tallies, extra = _TALLIES[kind](_Asked(encoder, found, besides, told))
    metrics: dict[str, float] = {}
    intervals: dict[str, Interval] = {}
    notes = list(found.notes)
    for tally in tallies:
        own = {name: float(value[0]) for name, value in tally.values(np.ones((1, tally.size))).items()}
        metrics |= own
        notes += tally.notes
        intervals |= _intervals(tally, own, shares=kind in _SHARES, notes=notes)
    n = tallies[0].size
    if n < _FEW:
        notes.append(f"only {n} {UNITS[kind]}: the intervals are too narrow")
    return VectorJudgement(kind=kind, n=n, metrics=metrics | extra, intervals=intervals, notes=tuple(notes))


def examples_of(kind: str, examples: VectorExamples | Iterable[Any] | str | Path) -> VectorExamples:
    """What the kind needs: as it is, read from a file, of rows, or of a list of tuples."""
    found: VectorExamples
    if isinstance(examples, str | Path):
        found = read_vector_examples(examples, kind)
    elif isinstance(examples, TextPairs | Searches | LabelledTexts | PlainTexts):
        found = examples
    else:
        given = records_or_items("data", examples, _FORM)
        with in_python(RENAME):
            found = read_vector_examples(given, kind) if isinstance(given, Records) else _of_tuples(kind, given)
    if not isinstance(found, _WANTED[kind]):
        wanted = " or ".join(each.__name__ for each in _WANTED[kind])
        raise ArgumentError(f"{kind} is judged on {wanted}, not on {type(found).__name__}", repair=f"give {wanted}")
    return found


_WANTED: Mapping[str, tuple[type, ...]] = {
    "sts": (TextPairs,),
    "pairs": (TextPairs,),
    "retrieval": (Searches,),
    "clustering": (LabelledTexts,),
    "geometry": (PlainTexts, TextPairs),
}


def _of_tuples(kind: str, rows: list[Any]) -> VectorExamples:
    if kind == "geometry" and all(isinstance(row, str) for row in rows):
        return PlainTexts(texts=tuple(rows))
    wide = 2 if kind == "clustering" else 3
    for place, row in enumerate(rows):
        if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != wide:
            what = "(text, label)" if wide == 2 else "(text, text, number)"
            raise ArgumentError(f"example {place} is {row!r:.60}", repair=f"give {what} for each example")
    if kind == "clustering":
        return LabelledTexts(texts=tuple(row[0] for row in rows), labels=tuple(row[1] for row in rows))
    if kind == "retrieval":
        return searches_of_pairs([(row[0], row[1], float(row[2])) for row in rows])
    score = np.array([row[2] for row in rows], dtype=np.float64)
    return TextPairs(first=tuple(row[0] for row in rows), second=tuple(row[1] for row in rows), score=score)


Tallies = tuple[list[Tally], dict[str, float]]
"""And figures that have no interval: thresholds."""


@dataclass(frozen=True)
class _Asked:
    encoder: Encodes
    examples: Any
    """Of the type that the kind wants."""
    besides: bool
    told: Told | None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(SIMILARITIES) if self.besides else (MAIN,)


def _sts(asked: _Asked) -> Tallies:
    return [similarity_tally(asked.encoder, asked.examples, asked.told, asked.names)], {}


def _pairs(asked: _Asked) -> Tallies:
    tally = pair_tally(asked.encoder, asked.examples, asked.told, asked.names)
    return [tally], tally.thresholds()


def _retrieval(asked: _Asked) -> Tallies:
    return [retrieval_tally(asked.encoder, asked.examples, asked.told)], {}


def _clustering(asked: _Asked) -> Tallies:
    return [cluster_tally(asked.encoder, asked.examples, asked.told)], {}


def _geometry(asked: _Asked) -> Tallies:
    examples, told = asked.examples, asked.told
    if isinstance(examples, PlainTexts):
        return [geometry_tally(asked.encoder, examples.texts, told, examples.place)], {}
    geometry = geometry_tally(asked.encoder, [*examples.first, *examples.second], told, examples.place)
    return [geometry, alignment_tally(asked.encoder, examples, told)], {}


_TALLIES: Mapping[str, Callable[[_Asked], Tallies]] = {
    "sts": _sts,
    "pairs": _pairs,
    "retrieval": _retrieval,
    "clustering": _clustering,
    "geometry": _geometry,
}


def _intervals(tally: Tally, metrics: Mapping[str, float], *, shares: bool, notes: list[str]) -> dict[str, Interval]:
    """Resamples in which a figure is not defined say nothing; they are counted."""
    found: dict[str, Interval] = {}
    unsaid = 0
    for name, each in resamples(tally.values, tally.size).items():
        said: Numbers = each[np.isfinite(each)]
        unsaid = max(unsaid, len(each) - len(said) if isfinite(metrics[name]) else 0)
        if shares and metrics[name] in (0.0, 1.0):
            found[name] = wilson(metrics[name], tally.size)
        elif isfinite(metrics[name]) and len(said) >= _ENOUGH * len(each):
            found[name] = interval(said)
        else:
            found[name] = (nan, nan)
    if unsaid:
        notes.append(f"figures are not defined in up to {unsaid:,} resamples, which the intervals leave out")
    return found


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _text(value: float) -> str:
    return f"{value:.4f}" if isfinite(value) else "not defined"
