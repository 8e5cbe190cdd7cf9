"""Phrases: runs of words that keep together, and stand freely among other words.

Two numbers say so, both in bits. The pointwise mutual information of a run is how much oftener it stands than if its
two halves met by chance, log2 of c(xy) T / (c(x) c(y)) with T words in the text; of all ways to part it the worst
counts, so that no word is in it that only happens to stand beside the rest. The branching entropy is how open the text
is at its ends, over the words before it and over those behind it; the smaller one counts, so that 史密森尼, which
nearly always goes on with 学会, is no phrase. The edge of a sentence counts as one neighbour, as a full stop does.

Phrases are sorted by `score`, the product of the two numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskery.words.function_words import FUNCTION_WORDS, JOINERS
from maskery.words.runs import BLOCK, Level, Numbers, Tally, levels
from maskery.words.vocabulary import Told, Words

Scores = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a run must reach to be a phrase."""

    count: int = 20
    words: int = 5
    """At most."""
    pmi: float = 6.0
    entropy: float = 1.5


@dataclass(frozen=True, kw_only=True)
class Phrases:
    """P phrases, the best first."""

    place: Numbers
    """(P,) where each stands first, in word occurrences."""
    length: Numbers
    """(P,) words."""
    count: Numbers
    pmi: Scores
    entropy: Scores
    left_out: dict[str, int]
    """Why -> how many frequent runs are no phrase: ends, pmi, entropy."""
    best_pmi: float
    """Of frequent runs with fit ends; minus infinity if there are none."""
    best_entropy: float
    """Of those of them that have the mutual information."""

    @property
    def score(self) -> Scores:
        """(P,)"""
        return self.pmi * self.entropy


def find_phrases(words: Words, limits: Limits, progress: Told | None = None) -> Phrases:
    """What stands in the text often enough, keeps together and is free, as the limits say."""
    text = _Text(words)
    whole, found = limits.words - 1, _Found()
    before: list[Level] = []

    def tell(done: int, total: int) -> None:
        if progress is not None:
            progress(min(whole, len(before) - 1 + done / max(1, total)), whole)

    runs = levels(words.number, words.sentence_start, text.parting, least=limits.count, longest=limits.words, tell=tell)
    for level in runs:
        before = [*before, _light(level)]
        if level.length > 1:
            found.add(text, before, level, limits)
    if progress is not None:
        progress(whole, whole)
    return found.sorted()


class _Found:
    """Phrases as they come, level by level."""

    def __init__(self) -> None:
        self.parts: list[tuple[Numbers, Numbers, Numbers, Scores, Scores]] = []
        self.left_out = {"ends": 0, "pmi": 0, "entropy": 0}
        self.best_pmi = self.best_entropy = -np.inf

    def add(self, text: _Text, before: list[Level], level: Level, limits: Limits) -> None:
        everything = np.arange(len(level.count))
        first = _part(before, everything, level.length, 0, 1)
        last = _part(before, everything, level.length, level.length - 1, level.length)
        ends = ~(text.no_end[first] | text.no_end[last])
        pmi = _pmi(before, level, len(text.number))
        close = pmi >= limits.pmi
        wanted = np.flatnonzero(ends & close)
        entropy, place = text.surroundings(level, wanted)
        free = entropy >= limits.entropy
        self.best_pmi = max(self.best_pmi, float(pmi[ends].max(initial=-np.inf)))
        self.best_entropy = max(self.best_entropy, float(entropy.max(initial=-np.inf)))
        self.left_out["ends"] += int((~ends).sum())
        self.left_out["pmi"] += int((ends & ~close).sum())
        self.left_out["entropy"] += int((~free).sum())
        wanted = wanted[free]
        length = np.full(len(wanted), level.length)
        self.parts.append((place[free], length, level.count[wanted], pmi[wanted], entropy[free]))

    def sorted(self) -> Phrases:
        empty = np.zeros(0, dtype=np.int64)
        columns = zip(*self.parts, strict=True) if self.parts else [[empty]] * 5
        place, length, count, pmi, entropy = (np.concatenate(column) for column in columns)
        order = np.lexsort((length, place, -pmi * entropy))
        return Phrases(
            place=place[order],
            length=length[order],
            count=count[order],
            pmi=pmi[order],
            entropy=entropy[order],
            left_out=self.left_out,
            best_pmi=self.best_pmi,
            best_entropy=self.best_entropy,
        )


class _Text:
    """The words of the text, and what stands around runs of them."""

    def __init__(self, words: Words) -> None:
        self.number = words.number
        signs = np.array([not any(map(str.isalnum, word)) for word in words.words], dtype=bool)
        joiners = np.array([word in JOINERS for word in words.words], dtype=bool)
        function = np.array([word.lower() in FUNCTION_WORDS or word.isdecimal() for word in words.words], dtype=bool)
        self.parting = signs & ~joiners
        """(W,) words that no phrase holds: punctuation and symbols."""
        self.no_end = signs | function
        """(W,) words that no phrase begins or ends with."""
        self._starts = np.zeros(len(self.number) + 1, dtype=bool)
        self._starts[words.sentence_start] = True

    def surroundings(self, level: Level, wanted: Numbers) -> tuple[Scores, Numbers]:
        """For these runs of a level: the smaller of both branching entropies, and where each stands first."""
        order = np.full(len(level.count) + 1, -1, dtype=np.int64)
        order[wanted] = np.arange(len(wanted))
        first = np.full(len(wanted), len(self.number), dtype=np.int64)
        sides = (Tally(), Tally())
        width = len(self.parting) + 2
        for begin in range(0, len(self.number), BLOCK):
            run = order[level.at[begin : begin + BLOCK]]
            places = np.flatnonzero(run >= 0)
            run, places = run[places], places + begin
            np.minimum.at(first, run, places)
            for side, neighbour in zip(sides, self._neighbours(places, level.length), strict=True):
                side.add(run * width + neighbour)
        both = [_entropy(side, width, level.count[wanted]) for side in sides]
        return np.minimum(*both), first

    def _neighbours(self, places: Numbers, length: int) -> tuple[Numbers, Numbers]:
        """The words before and behind runs of this length: 0 for the edge of a sentence, 1 for an unknown word."""
        before = np.where(self._starts[places], 0, self.number[places - 1].astype(np.int64) + 2)
        ends = places + length
        behind = self.number[np.minimum(ends, len(self.number) - 1)].astype(np.int64) + 2
        return before, np.where(self._starts[ends], 0, behind)


def _light(level: Level) -> Level:
    """Without the places, which are only good until the next level."""
    nothing = np.zeros(0, dtype=np.int32)
    return Level(length=level.length, count=level.count, first=level.first, second=level.second, at=nothing)


def _part(before: list[Level], run: Numbers, length: int, begin: int, end: int) -> Numbers:
    """Which runs the words `begin` to `end` of runs of `length` words are."""
    for here in range(length, end, -1):
        run = before[here - 1].first[run]
    for here in range(end, end - begin, -1):
        run = before[here - 1].second[run]
    return run


def _pmi(before: list[Level], level: Level, total: int) -> Scores:
    """(R,) of the worst way to part each run in two."""
    worst: Scores = np.full(len(level.count), np.inf)
    everything, length = np.arange(len(level.count)), level.length
    for cut in range(1, length):
        left = before[cut - 1].count[_part(before, everything, length, 0, cut)]
        right = before[length - cut - 1].count[_part(before, everything, length, cut, length)]
        worst = np.minimum(worst, np.log2(level.count) + np.log2(total) - np.log2(left) - np.log2(right))
    return worst


def _entropy(side: Tally, width: int, count: Numbers) -> Scores:
    """(R,) in bits, of what stands on one side of each run."""
    keys, often = side.result()
    share = often / count[keys // width]
    entropy = np.bincount(keys // width, -share * np.log2(share), minlength=len(count)).astype(np.float64)
    return np.maximum(entropy, 0.0)
