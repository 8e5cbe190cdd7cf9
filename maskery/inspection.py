"""What corruption really did: rates measured over the rows that training will read, to be laid beside the recipe's.

Words are those of the corpus store (a token's word flag); the first token behind a special starts one too, because a
row may be cut within a word. Everything is computed from the rows themselves, apart from the spans as drawn, which
the recipe's law is asked for again under the same keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskery.corpus.store import Flag
from maskery.corruption.corrupt import candidates
from maskery.edit import Edit
from maskery.feed import Feed
from maskery.phases import Phase
from maskery.rows.config import PAIRS
from maskery.rows.ragged import Rows

Visit = tuple[int, Phase, NDArray[np.int64], NDArray[np.int64]]
"""Step, its phase, and the epochs and plan rows of some of its rows."""
_CHUNK = 512
"""Rows measured at once; bounds the memory."""


@dataclass
class Measured:
    """Counts over rows; the properties are what they say of the corruption."""

    rows: int = 0
    tokens: int = 0
    """Real positions, [CLS] and [SEP] included."""
    ordinary: int = 0
    chosen: int = 0
    edits: dict[str, int] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    corpora: dict[str, int] = field(default_factory=dict)
    """Rows of each corpus."""
    runs: dict[int, int] = field(default_factory=dict)
    """Maximal runs of chosen slots, by the number of words they touch."""
    drawn: dict[int, int] = field(default_factory=dict)
    """Spans as the law offered them, before any budget, by the number of words they touch."""
    words_touched: int = 0
    words_split: int = 0

    def add(self, rows: Rows) -> None:
        word = word_numbers(rows)
        chosen = rows.edit != Edit.NONE
        self.rows += len(rows)
        self.tokens += len(rows.ids)
        self.ordinary += int((~rows.special).sum())
        self.chosen += int(chosen.sum())
        for code, count in zip(*np.unique(rows.edit[chosen], return_counts=True), strict=True):
            _count(self.edits, Edit(code).name.lower(), int(count))
        _count_all(self.runs, _run_words(chosen, word))
        self._add_words(chosen, word)

    def _add_words(self, chosen: NDArray[np.bool_], word: NDArray[np.int64]) -> None:
        inside = word >= 0
        size = np.bincount(word[inside])
        hit = np.bincount(word[chosen & inside], minlength=len(size))
        self.words_touched += int((hit > 0).sum())
        self.words_split += int(((hit > 0) & (hit < size)).sum())

    def plain(self) -> dict[str, Any]:
        """As JSON: shares from 0 to 1, histograms as shares by the number of words."""
        return {
            "rows": self.rows,
            "tokens": self.tokens,
            "chosen_rate": self.chosen / max(1, self.ordinary),
            "span_words": {
                "mean": _mean(self.runs),
                "histogram": _shares(self.runs),
                "drawn_mean": _mean(self.drawn),
                "drawn_histogram": _shares(self.drawn),
            },
            "replaced": _shares(self.edits),
            "pair": _shares(self.labels),
            "corpora": {name: number / max(1, self.rows) for name, number in self.corpora.items()},
            "words_split": self.words_split / max(1, self.words_touched),
        }


def visits(feed: Feed, count: int) -> Iterator[Visit]:
    """The first `count` rows in the order of training, in chunks."""
    step = 0
    while count > 0:
        phase, epochs, numbers = feed.numbers(step)
        for start in range(0, min(count, len(numbers)), _CHUNK):
            part = slice(start, min(start + _CHUNK, count))
            yield step, phase, epochs[part], numbers[part]
        count -= len(numbers)
        step += 1


def measure(feed: Feed, count: int) -> Measured:
    """Measure the first `count` rows of training."""
    measured = Measured()
    names = PAIRS.get(feed.recipe.rows.pair).labels
    for step, phase, epochs, numbers in visits(feed, count):
        config = feed.corruption(step)
        rows = feed.corrupted(step, phase, epochs, numbers)
        measured.add(rows)
        owners = np.bincount(feed.corpus_of(phase, numbers)[0], minlength=len(feed.names))
        for name, number in zip(feed.names, owners.tolist(), strict=True):
            _count(measured.corpora, name, number)
        for label in rows.label[rows.label >= 0].tolist():
            _count(measured.labels, names[label])
        if config.rate > 0:
            _, spans = candidates(rows, config, feed.mask_keys(phase, epochs, numbers))
            _count_all(measured.drawn, spans.drawn)
    return measured


def word_numbers(rows: Rows) -> NDArray[np.int64]:
    """(N,) the word of each slot, counted over all rows; -1 for specials."""
    ordinary = ~rows.special
    behind_special = np.concatenate(([True], rows.special[:-1]))
    starts = ordinary & (((rows.flags & Flag.WORD) != 0) | behind_special)
    return np.where(ordinary, np.cumsum(starts) - 1, -1)


def _run_words(chosen: NDArray[np.bool_], word: NDArray[np.int64]) -> NDArray[np.int64]:
    """Words touched by each maximal run of chosen slots. Rows begin with a special, so no run joins two of them."""
    edges = np.diff(chosen.astype(np.int8), prepend=0, append=0)
    first, last = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    return word[last] - word[first] + 1


def _count(counts: dict[Any, int], name: object, number: int = 1) -> None:
    counts[name] = counts.get(name, 0) + number


def _count_all(counts: dict[int, int], values: NDArray[np.int64]) -> None:
    for value, number in enumerate(np.bincount(values).tolist() if len(values) else ()):
        if number:
            _count(counts, value, number)


def _mean(counts: dict[int, int]) -> float:
    return sum(value * number for value, number in counts.items()) / max(1, sum(counts.values()))


def _shares(counts: dict[Any, int]) -> dict[str, float]:
    total = sum(counts.values())
    return {str(name): counts[name] / total for name in sorted(counts)} if total else {}
