"""What corruption and row plans drew, counted draw by draw from what they give out.

A draw is what one number decides: the length of one candidate span, what becomes of one token, word or span, the label
of one pair. Slots that share a draw count once; where a draw was not free (a chunk of one sentence has no next one) it
does not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from maskery import randomness
from maskery.corpus.encode import Flag
from maskery.corpus.store import Corpus
from maskery.corruption.choose import Chosen, choose
from maskery.corruption.config import CorruptionConfig
from maskery.corruption.corrupt import budget, candidates, corrupt
from maskery.corruption.spans import Spans
from maskery.corruption.units import Units, words_in
from maskery.edit import Edit
from maskery.feed import Feed
from maskery.recipes.recipe import Recipe
from maskery.rows.config import KINDS
from maskery.rows.plan import Draft, RowPlan, outline_of
from maskery.rows.ragged import Rows, gather

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """The first rows of a run, before corruption, and what corrupts them."""

    feed: Feed
    plan: RowPlan
    rows: Rows
    keys: randomness.Keys

    @property
    def config(self) -> CorruptionConfig:
        return self.feed.recipe.corruption

    def corrupted(self) -> Rows:
        return corrupt(self.rows, self.config, self.keys, self.feed.corpus.facts, self.feed.similar)

    def candidates(self) -> tuple[Units, Spans]:
        return candidates(self.rows, self.config, self.keys)

    def chosen(self, units: Units, spans: Spans) -> Chosen:
        """The candidates that `corrupt` takes."""
        cost = words_in(self.rows, units) if self.config.of == "words" else units.length
        return choose(units, spans, cost, budget(self.rows, units, cost, self.config.rate, self.keys))


def sample(made: Recipe, corpus: Corpus, seed: int, count: int) -> Sample:
    feed = Feed(made, corpus, seed)
    phase = feed.phases[0]
    epochs, numbers = feed.first(phase, count)
    plan = feed.plan(phase)
    return Sample(feed, plan, gather(plan, numbers, corpus), feed.mask_keys(phase, epochs, numbers))


def tally(values: NDArray[np.integer], cells: int) -> Counts:
    """How often 0, 1, .. cells-1 occur; the last cell also holds what is above it."""
    return np.bincount(np.minimum(values, cells - 1), minlength=cells).astype(np.int64)


@dataclass(frozen=True)
class Lengths:
    drawn: Counts
    """By units: every candidate span once, as the law drew it."""
    kept: Counts
    """Spans that were taken, after the text's end, other spans and the budget shortened some."""
    merged: Counts
    """Runs of neighbouring units that were taken, whichever spans they came from."""


def lengths(of: Sample, cells: int) -> Lengths:
    units, spans = of.candidates()
    chosen = of.chosen(units, spans)
    taken, begins = np.unique(chosen.unit, return_index=True)
    kept = np.unique(chosen.span[begins], return_counts=True)[1]
    return Lengths(tally(spans.drawn, cells), tally(kept, cells), tally(_runs(units, taken), cells))


def _runs(units: Units, taken: NDArray[np.int64]) -> NDArray[np.int64]:
    end = units.start[taken] + units.length[taken]
    begins = np.flatnonzero(np.append(True, units.start[taken[1:]] != end[:-1]))
    return np.diff(np.append(begins, len(taken)))


OUTCOMES = ("mask", "random", "keep", "similar")
_OUTCOME = {Edit.MASK: 0, Edit.RANDOM: 1, Edit.KEEP: 2, Edit.SIMILAR: 3, Edit.UNMATCHED: 3}


@dataclass(frozen=True)
class Replaced:
    draws: Counts
    """By OUTCOMES."""
    unmatched: int
    """Words drawn to be similar that have no similar one."""
    words: int
    """Words of which some token was chosen."""
    split: int
    """Those of which another token was not."""


def replacements(of: Sample) -> Replaced:
    chosen, out = of.chosen(*of.candidates()), of.corrupted()
    if not np.array_equal(np.sort(chosen.slot), np.flatnonzero(out.edit)):
        raise AssertionError("corrupt chose other slots than its own steps do")
    codes = out.edit[chosen.slot]
    group = _groups(of, chosen)
    groups, first = np.unique(group, return_index=True)
    if (codes != codes[first][np.searchsorted(groups, group)]).any():
        raise AssertionError(f"one draw for each {of.config.decide} gave its slots different ends")
    by_code = np.bincount(codes[first], minlength=256)
    counts = np.zeros(len(OUTCOMES), dtype=np.int64)
    for code, outcome in _OUTCOME.items():
        counts[outcome] += by_code[code]
    word = _words(of.rows)
    size, hidden = np.bincount(word), np.bincount(word[chosen.slot], minlength=word[-1] + 1)
    split = (hidden > 0) & (hidden < size)
    return Replaced(counts, int(by_code[Edit.UNMATCHED]), int((hidden > 0).sum()), int(split.sum()))


def _groups(of: Sample, chosen: Chosen) -> NDArray[np.int64]:
    """The number of each chosen slot's draw."""
    if of.config.decide == "span":
        return chosen.span
    return chosen.slot if of.config.decide == "token" else _words(of.rows)[chosen.slot]


def _words(rows: Rows) -> NDArray[np.int64]:
    """(N,) the number of each slot's word, from the store's flags; specials are words of their own."""
    begins = rows.special | ((rows.flags & Flag.WORD) != 0) | np.append(True, rows.special[:-1])
    number: NDArray[np.int64] = np.cumsum(begins) - 1
    return number


def random_ids(of: Sample) -> NDArray[np.int32]:
    out = of.corrupted()
    return out.ids[out.edit == Edit.RANDOM]


ORDERS = list(permutations(range(3)))


def shuffled_orders(of: Sample) -> Counts:
    """How often each of the ORDERS of three slots came, where the three ids differ and no two runs touch."""
    out = of.corrupted()
    there = np.concatenate(([False], out.edit == Edit.SHUFFLED, [False]))
    first, stop = np.flatnonzero(~there[:-1] & there[1:]), np.flatnonzero(there[:-1] & ~there[1:])
    slots = first[stop - first == 3][:, None] + np.arange(3)
    old, new = out.original[slots], out.ids[slots]
    apart = (old[:, 0] != old[:, 1]) & (old[:, 0] != old[:, 2]) & (old[:, 1] != old[:, 2])
    source = (new[apart][:, :, None] == old[apart][:, None, :]).argmax(axis=2)
    return np.array([(source == order).all(axis=1).sum() for order in ORDERS])


class _Watched(Draft):
    """A plan that also remembers which of its rows came from a chunk of one sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.alone: list[bool] = []
        self._alone = False

    def count(self, name: str, number: int = 1) -> None:
        self._alone |= name == "one_sentence_chunks"
        super().count(name, number)

    def close(self, label: int = -1) -> None:
        self.alone.append(self._alone)
        self._alone = False
        super().close(label)


def one_sentence_rows(of: Sample) -> NDArray[np.bool_]:
    """(B,) whether a row of the sample was made of a chunk of one sentence: the walk over the text, done again."""
    config, phase = of.feed.recipe.rows, of.feed.phases[0]
    draft, seed = _Watched(), of.feed.seed
    outline = outline_of(of.feed.parts[0], of.feed.split)
    for turn in range(config.copies):
        draw = randomness.scalars(randomness.key(seed, "plan", turn))
        KINDS.get(config.kind)(config, outline, phase.length, turn, draw, draft)
    if not np.array_equal(draft.finish().label, of.plan.label):
        raise AssertionError("the walk done again gave other rows")
    return np.array(draft.alone)[of.rows.number]


def sentences_of(of: Sample, room: int) -> NDArray[np.int64]:
    """(B,) how many sentences each row of permuted segments was made of, if a row has `room` tokens.

    The stretches follow each other through a document, whatever is drawn: each ends with the sentence that fills it.
    """
    outline = outline_of(of.feed.parts[0], of.feed.split)
    many = []
    for here, end in zip(outline.first, outline.end, strict=True):
        while here < end:
            stop = here + 1
            while stop < end and outline.sentence[stop] - outline.sentence[here] < room:
                stop += 1
            many.append(stop - here)
            here = stop
    if len(many) != len(of.plan):
        raise AssertionError(f"{len(many)} stretches of text for {len(of.plan)} rows")
    return np.array(many)[of.rows.number]
