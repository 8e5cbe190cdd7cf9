"""What corruption really did, counted over rows. Everything is read off the rows themselves, not asked of the code
that made them; only the spans, as drawn and as kept, are asked for again under the same keys.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from maskery.corruption.choose import Chosen
from maskery.corruption.config import CorruptionConfig
from maskery.corruption.reach import opened, within
from maskery.corruption.spans import Spans
from maskery.corruption.units import word_starts
from maskery.edit import ASKED, Edit
from maskery.inspection.statistics import Ratio
from maskery.inspection.words import per_row, run_words, windows, word_numbers
from maskery.model.config import Mode
from maskery.rows.ragged import Rows

CHOSEN = (*ASKED, Edit.INFILLED)
"""What counts as chosen: what is asked for, or stands for what is. Slots that were only moved do not, nor those that
were hidden for the contrast."""
NAMES = {
    "mask": Edit.MASK,
    "random": Edit.RANDOM,
    "keep": Edit.KEEP,
    "similar": Edit.SIMILAR,
    "unmatched": Edit.UNMATCHED,
}


@dataclass
class Measured:
    rows: int = 0
    tokens: int = 0
    """Real positions, [CLS] and [SEP] included."""
    written: int = 0
    """Positions of a decoder, which are counted apart."""
    chosen: Ratio = field(default_factory=Ratio)
    """Of ordinary positions."""
    open: Ratio = field(default_factory=Ratio)
    """Chosen, of the positions that may be: without the n-gram of a contrast, in the segment that is corrupted."""
    words: Ratio = field(default_factory=Ratio)
    """Words touched, of all outside that n-gram."""
    split: Ratio = field(default_factory=Ratio)
    """Words of which a part was chosen, of the words touched."""
    edits: dict[str, Ratio] = field(default_factory=dict)
    """What became of the chosen."""
    similar: Ratio = field(default_factory=Ratio)
    """Drawn to become a similar word, whether there was one or not; of the chosen."""
    shuffled: Ratio = field(default_factory=Ratio)
    """Of ordinary positions."""
    shuffled_runs: Ratio = field(default_factory=Ratio)
    """Of all runs of neighbouring slots that were not chosen."""
    ngram: Ratio = field(default_factory=Ratio)
    """Of ordinary positions."""
    ngram_words: Counter[int] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    unpaired: int = 0
    modes: Counter[str] = field(default_factory=Counter)
    """Rows by how they are read, where that is drawn."""
    corpora: Counter[str] = field(default_factory=Counter)
    """Rows of each corpus."""
    runs: Counter[int] = field(default_factory=Counter)
    """Maximal runs of chosen slots, by the number of words they touch."""
    drawn: Counter[int] = field(default_factory=Counter)
    """Spans as the law offered them, before any budget, by their units."""
    kept: Counter[int] = field(default_factory=Counter)
    """Spans that the budget took, by the units it left them."""
    plan_rows: set[tuple[int, int]] = field(default_factory=set)
    """Phase and number of the rows: pairs of a row that comes again are not drawn again."""
    mask_keys: set[int] = field(default_factory=set)
    """Nor are the masks of a row that comes again, if these are static."""

    def add(self, rows: Rows, config: CorruptionConfig | None = None, before: Rows | None = None) -> None:
        """Count some rows; `before` are the same before corruption, needed where it makes them longer or shorter."""
        config, before = config or CorruptionConfig(), before or rows
        word = word_numbers(rows)
        chosen = np.isin(rows.edit, CHOSEN)
        ordinary = per_row(before, ~before.special)
        removed = self._add_edits(rows, before, config)
        self.rows += len(rows)
        self.tokens += len(rows.ids)
        taken = per_row(rows, np.isin(rows.edit, ASKED)) + removed
        self.chosen.add(taken, ordinary)
        self.open.add(taken, per_row(before, ~opened(before, config).special) - per_row(rows, rows.edit == Edit.NGRAM))
        self.runs.update(_histogram(run_words(chosen & ~rows.special, word)))
        self._add_words(rows, before, chosen, word)
        self._add_moved(rows, config, word, ordinary)

    def _add_edits(self, rows: Rows, before: Rows, config: CorruptionConfig) -> NDArray[np.int64]:
        """Counts what became of the chosen; answers with the slots of each row that were taken out or filled."""
        shares = config.replace
        out = " and ".join(name for name in ("infill", "delete") if getattr(shares, name) > 0)
        asked = {name: per_row(rows, rows.edit == code) for name, code in NAMES.items()}
        removed = np.zeros(len(rows), dtype=np.int64)
        if out:
            removed = per_row(before, ~before.special) - per_row(rows, ~rows.special)
            removed += per_row(rows, rows.edit == Edit.INFILLED)
            asked[out] = removed
        whole = np.sum(list(asked.values()), axis=0)
        for name, hits in asked.items():
            self.edits.setdefault(name, Ratio()).add(hits, whole)
        self.similar.add(asked["similar"] + asked["unmatched"], whole)
        return removed

    def _add_words(self, rows: Rows, before: Rows, chosen: NDArray[np.bool_], word: NDArray[np.int64]) -> None:
        inside = word >= 0
        size = np.bincount(word[inside])
        hit = np.bincount(word[chosen & inside], minlength=len(size))
        owner = np.zeros(len(size), dtype=np.int64)
        owner[word[inside]] = rows.row[inside]
        touched = np.bincount(owner[hit > 0], minlength=len(rows))
        closed = np.bincount(word[inside], rows.edit[inside] == Edit.NGRAM) > 0
        # Words that were taken out were touched, and a mask that was put in is none.
        gone = per_row(before, word_starts(before)) - np.bincount(owner, minlength=len(rows))
        self.words.add(touched + gone, np.bincount(owner[~closed], minlength=len(rows)) + gone)
        self.split.add(np.bincount(owner[(hit > 0) & (hit < size)], minlength=len(rows)), touched)

    def _add_moved(
        self, rows: Rows, config: CorruptionConfig, word: NDArray[np.int64], ordinary: NDArray[np.int64]
    ) -> None:
        shuffled, ngram = rows.edit == Edit.SHUFFLED, rows.edit == Edit.NGRAM
        moved = per_row(rows, shuffled)
        self.shuffled.add(moved, ordinary)
        free = within(rows, config) & ~rows.special & ((rows.edit == Edit.NONE) | shuffled)
        size = config.shuffle.size
        self.shuffled_runs.add(moved // size, windows(rows, free, size))
        self.ngram.add(per_row(rows, ngram), ordinary)
        self.ngram_words.update(_histogram(run_words(ngram, word)))

    def add_modes(self, mode: NDArray[np.uint8]) -> None:
        self.modes.update({Mode(code).kind: number for code, number in _histogram(mode.astype(np.int64)).items()})

    def add_labels(self, label: NDArray[np.int64], names: tuple[str, ...]) -> None:
        """Count the labels of the rows that are asked about them."""
        self.unpaired += int((label < 0).sum())
        for number, count in _histogram(label[label >= 0]).items():
            self.labels[names[number]] += count

    def add_spans(self, spans: Spans, chosen: Chosen) -> None:
        self.drawn.update(_histogram(spans.drawn))
        new = np.ones(len(chosen.slot), dtype=bool)
        new[1:] = (chosen.unit[1:] != chosen.unit[:-1]) | (chosen.span[1:] != chosen.span[:-1])
        units = np.bincount(chosen.span[new])
        self.kept.update(_histogram(units[units > 0]))

    @property
    def fresh_rows(self) -> float:
        """The part of the rows that had not been seen before."""
        return len(self.plan_rows) / self.rows if self.plan_rows else 1.0

    @property
    def fresh_masks(self) -> float:
        return len(self.mask_keys) / self.rows if self.mask_keys else 1.0


def mean(lengths: Counter[int]) -> float:
    return sum(length * number for length, number in lengths.items()) / max(1, lengths.total())


def shares(counts: Counter[int] | Counter[str]) -> dict[str, float]:
    total = counts.total()
    return {str(name): number / total for name, number in sorted(counts.items())} if total else {}


def _histogram(values: NDArray[np.int64]) -> Counter[int]:
    return Counter({value: number for value, number in enumerate(np.bincount(values).tolist()) if number})
