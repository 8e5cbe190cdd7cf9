"""Spans of characters (tag): precision, recall and F1 of whole spans, all together and kind by kind.

A span counts as found if begin, end and kind are right. Where nothing was predicted precision is 0, where nothing is
there recall is 0. `token_accuracy` needs the tags of the tokens, and is told where they are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from maskery.errors import InputError
from maskery.tasks.examples import Span
from maskery.tasks.judge.tally import Numbers, Values, precision_recall_f1, ratio, require_as_many

TokenTags = tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]]
"""Right and predicted tags of the tokens of each example."""


@dataclass(frozen=True)
class SpanTally:
    kinds: tuple[str, ...]
    counts: Numbers
    """(3,N,K): found, predicted and right spans of each kind."""
    tokens: Numbers | None
    """(2,N): tokens with the right tag, and all tokens."""

    @property
    def size(self) -> int:
        return len(self.counts[0])

    def values(self, weights: Numbers) -> Values:
        hits, predicted, gold = (weights @ each for each in self.counts)
        found = _figures(hits.sum(1), predicted.sum(1), gold.sum(1))
        if self.tokens is not None:
            found["token_accuracy"] = ratio(weights @ self.tokens[0], weights @ self.tokens[1])
        each = _figures(hits, predicted, gold)
        for place, kind in enumerate(self.kinds):
            found |= {f"{name}/{kind}": table[:, place] for name, table in each.items()}
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        _, predicted, gold = self.counts.sum(1)
        told = []
        if not predicted.any():
            told.append("no span was predicted: precision and span_f1 are 0 by definition")
        if not gold.any():
            told.append("no right span is there: recall and span_f1 are 0 by definition")
        invented = [kind for kind, many in zip(self.kinds, gold, strict=True) if not many]
        if gold.any() and invented:
            told.append(f"predicted, but never right: {', '.join(invented)}")
        return tuple(told)


def _figures(hits: Numbers, predicted: Numbers, gold: Numbers) -> Values:
    precision, recall, both = precision_recall_f1(hits, predicted, gold)
    return {"span_f1": both, "precision": precision, "recall": recall}


def span_tally(
    gold: Sequence[Iterable[Span]], predicted: Sequence[Iterable[Span]], tags: TokenTags | None = None
) -> SpanTally:
    require_as_many(gold, predicted)
    right, found = [set(each) for each in gold], [set(each) for each in predicted]
    kinds = tuple(sorted({span.kind for each in (*right, *found) for span in each}))
    number = {kind: place for place, kind in enumerate(kinds)}
    counts = np.zeros((3, len(right), len(kinds)))
    for line, (wanted, given) in enumerate(zip(right, found, strict=True)):
        for row, spans in enumerate((wanted & given, given, wanted)):
            for span in spans:
                counts[row, line, number[span.kind]] += 1
    return SpanTally(kinds, counts, None if tags is None else _tokens(tags, len(right)))


def _tokens(tags: TokenTags, examples: int) -> Numbers:
    wanted, given = tags
    if not len(wanted) == len(given) == examples:
        raise InputError(f"tags of {len(wanted):,} and {len(given):,} texts for {examples:,} examples")
    counts = np.zeros((2, examples))
    for line, (one, other) in enumerate(zip(wanted, given, strict=True)):
        if len(one) != len(other):
            raise InputError(
                f"{len(other)} predicted tags for {len(one)} tokens",
                where=f"example {line}",
                repair="give one tag for each token",
            )
        counts[:, line] = sum(a == b for a, b in zip(one, other, strict=True)), len(one)
    return counts
