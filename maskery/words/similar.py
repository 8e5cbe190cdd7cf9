"""Words of like meaning, out of vectors or a thesaurus: a table for one tokenizer, made once, that a recipe names.

A word may stand for another if it has as many tokens, is common enough (`floor`), and, where the rules say so, is about
as frequent (`frequency_ratio`: a rare name in the place of a common word gives itself away) and of the same part of
speech: the first letter of jieba's tag of the word alone, of its last part where jieba sees several (n for
nouns and names, v, a, ...). Vectors give the nearest by cosine. A thesaurus knows no nearer and farther: it gives the
commonest of a word's groups, each with the score 1. Words that are spelt alike to the tokenizer are one.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import rjieba
from numpy.typing import NDArray

from maskery.errors import InputError
from maskery.knowledge.spelling import joined, spellings
from maskery.knowledge.synonyms import Group
from maskery.knowledge.table import Scored, SimilarTable
from maskery.knowledge.trie import Trie
from maskery.text.tokenizer import Tokenizer
from maskery.words.vectors import WordVectors

Progress = Callable[[int, int], None]
"""Words done, words in all."""
NEAREST, FLOOR, RATIO = 10, 5, 30.0
_CELLS = 1 << 24
"""Cosines that are held at a time."""


class Counts(NamedTuple):
    """How often each word stands in a text."""

    words: Sequence[str]
    counts: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Rules:
    nearest: int = NEAREST
    """Similar words that a word gets at most."""
    floor: int = FLOOR
    """How common a word must be to stand for another; 0: whatever it is. It needs counts."""
    same_part_of_speech: bool = False
    frequency_ratio: float = 0.0
    """How many times as frequent, or as rare, a word may be as the one it stands for; 0: any. It needs counts."""

    def __post_init__(self) -> None:
        for name, least in (("nearest", 1), ("floor", 0)):
            if getattr(self, name) < least:
                cause = f"{name} is {getattr(self, name)}: at least {least} is wanted"
                raise InputError(cause, repair=f"--{name} {NEAREST if name == 'nearest' else FLOOR}")
        if self.frequency_ratio != 0 and not 1 <= self.frequency_ratio < math.inf:
            cause = f"frequency_ratio is {self.frequency_ratio:g}: at least 1 is wanted"
            raise InputError(cause, repair=f"--frequency-ratio {RATIO:g}, or leave it out")


@dataclass(frozen=True, kw_only=True)
class Found:
    """A table, and what was left out of it on the way."""

    table: SimilarTable
    given: int
    """Words of the source."""
    unknown: int
    """With a token that the tokenizer does not know, or longer than any word."""
    alike: int
    """Spelt like another to the tokenizer."""
    rare: int
    """Too rare to stand for another; they have similar words themselves."""
    undirected: int
    """With a vector of zeros, which is near to nothing."""
    alone: int
    """Without any word that may stand for them."""


def similar_words(
    source: WordVectors | Sequence[Group],
    tokenizer: Tokenizer,
    rules: Rules,
    *,
    counts: Counts | None = None,
    made: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> Found:
    """The table of a source; `made` is what else its first line tells of where it comes from."""
    vectors = source if isinstance(source, WordVectors) else None
    named = (word for group, _ in _groups(source) for word in group)
    words = vectors.words if vectors is not None else list(dict.fromkeys(named))
    stock = _Stock(words, tokenizer, rules, counts)
    undirected = 0
    if vectors is not None:
        unit = vectors.unit[stock.one]
        directed = unit.any(axis=1)
        undirected = int((~directed).sum())
        kind, offered = np.where(directed, stock.kind, -1), stock.offered & directed
        pairs = list(_nearest(unit, kind, offered, stock.frequency, rules, progress))
    else:
        pairs = list(_commonest([[stock.place[word] for word in group] for group, _ in _groups(source)], stock, rules))
    near: list[list[tuple[int, float]]] = [[] for _ in stock.one]
    for own, others in pairs:
        near[own] = others
    entries: dict[str, Scored] = {
        stock.words[own]: [(stock.words[other], score) for other, score in others]
        for own, others in enumerate(near)
        if others
    }
    facts: dict[str, Any] = {
        "nearest": rules.nearest,
        "floor": rules.floor,
        "same_part_of_speech": rules.same_part_of_speech,
    }
    facts |= {"frequency_ratio": rules.frequency_ratio} if rules.frequency_ratio else {}
    table = SimilarTable(entries=entries, tokenizer=tokenizer.fingerprint, made={**(made or {}), **facts})
    return Found(
        table=table,
        given=len(words),
        unknown=stock.unknown,
        alike=len(words) - stock.unknown - len(stock.one),
        rare=int((~stock.offered).sum()),
        undirected=undirected,
        alone=len(stock.one) - undirected - len(entries),
    )


def part_of_speech(word: str) -> str:
    """One letter; of the last part, which in Chinese is the head, if jieba cuts the word."""
    tagged = rjieba.tag(word)
    return str(tagged[-1][1])[:1] if tagged else ""


class _Stock:
    """The K words of a source that the tokenizer can write, each once, with what decides who may stand for whom."""

    def __init__(self, words: Sequence[str], tokenizer: Tokenizer, rules: Rules, counts: Counts | None) -> None:
        names, length = _names([*words, *(counts.words if counts else ())], tokenizer)
        own = names[: len(words)]
        own[[any(sign in word for sign in "\t\r\n") for word in words]] = -1  # a line of the table could not hold it
        known = np.flatnonzero(own >= 0)
        _, first = np.unique(own[known], return_index=True)
        self.one = np.sort(known[first])
        """(K,) where each word stands in the source first."""
        self.words = [words[at] for at in self.one]
        self.unknown = len(words) - len(known)
        place = dict(zip(own[self.one].tolist(), range(len(self.one)), strict=True))
        self.place = {word: place.get(name, -1) for word, name in zip(words, own.tolist(), strict=True)}
        """Word of the source -> its number here, -1 for one that is unknown."""
        self.count = np.zeros(len(self.one), dtype=np.int64)
        if counts is not None:
            total = np.zeros(len(length) + 1, dtype=np.int64)
            np.add.at(total, names[len(words) :], np.asarray(counts.counts, dtype=np.int64))
            self.count = total[own[self.one]]
        self.frequency = np.log(self.count + 1.0)
        """(K,) of one more than the count: a word that was never counted has one, too."""
        self.offered = self.count >= (rules.floor if counts is not None else 0)
        """(K,) common enough to stand for another."""
        self.kind = length[own[self.one]]
        """(K,) only words of one kind may stand for each other."""
        if rules.same_part_of_speech:
            letters = np.array([part_of_speech(word) for word in self.words], dtype="<U1")
            self.kind = self.kind * 0x110000 + letters.view(np.uint32) if len(letters) else self.kind


def _names(words: Sequence[str], tokenizer: Tokenizer) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """A number for each word, the same for all that are spelt alike, -1 for one that cannot be written; and the tokens
    of each number."""
    ways = spellings(tokenizer, words)
    every = joined(ways)
    trie = Trie(every.ids, every.length, tokenizer.vocabulary)
    number = trie.number.reshape(len(ways), len(words))
    return np.take_along_axis(number, (number >= 0).argmax(axis=0)[None], axis=0)[0], trie.length


def _groups(source: WordVectors | Sequence[Group]) -> Sequence[Group]:
    return () if isinstance(source, WordVectors) else source


def _nearest(
    unit: NDArray[np.float32],
    kind: NDArray[np.int64],
    offered: NDArray[np.bool_],
    frequency: NDArray[np.float64],
    rules: Rules,
    progress: Progress | None,
) -> Iterator[tuple[int, list[tuple[int, float]]]]:
    """For each word the nearest of its kind by descending cosine; one of a negative kind takes no part."""
    done, whole = 0, int((kind >= 0).sum())
    for each in np.unique(kind[kind >= 0]):
        mine = np.flatnonzero(kind == each)
        others = mine[offered[mine]]
        columns = np.ascontiguousarray(unit[others].T)
        step = max(1, _CELLS // max(1, len(others)))
        for start in range(0, len(mine) if len(others) else 0, step):
            block = mine[start : start + step]
            cosine = unit[block] @ columns
            own, place = np.flatnonzero(offered[block]), np.searchsorted(others, block[offered[block]])
            cosine[own, place] = -np.inf  # no word is its own like
            if rules.frequency_ratio:
                apart = abs(frequency[block][:, None] - frequency[others][None])
                cosine[apart > math.log(rules.frequency_ratio)] = -np.inf
            many = min(rules.nearest, len(others))
            best = np.argpartition(cosine, len(others) - many, axis=1)[:, len(others) - many :]
            value = np.take_along_axis(cosine, best, axis=1)
            order = np.argsort(-value, axis=1, kind="stable")
            best, value = np.take_along_axis(best, order, axis=1), np.take_along_axis(value, order, axis=1)
            for word, near, scores in zip(block.tolist(), others[best].tolist(), value.tolist(), strict=True):
                yield word, [pair for pair in zip(near, scores, strict=True) if pair[1] >= -2]
            if progress is not None:
                progress(done + start + len(block), whole)
        done += len(mine)


def _commonest(groups: list[list[int]], stock: _Stock, rules: Rules) -> Iterator[tuple[int, list[tuple[int, float]]]]:
    """For each word the commonest of its groups and its kind; of equally common ones those that stand first."""
    rank = np.empty(len(stock.one), dtype=np.int64)
    rank[np.argsort(-stock.count, kind="stable")] = np.arange(len(stock.one))
    others: dict[int, set[int]] = {}
    for group in groups:
        parts: dict[int, list[int]] = {}
        for own in dict.fromkeys(group):
            if own >= 0:
                parts.setdefault(int(stock.kind[own]), []).append(own)
        for part in parts.values():
            # One more than are wanted, because a word is not its own like: a huge group stays cheap.
            ranked = sorted((own for own in part if stock.offered[own]), key=rank.__getitem__)
            for own in part:
                begin = _first_within(ranked, own, stock.frequency, rules.frequency_ratio)
                best = ranked[begin : begin + rules.nearest + 1]
                others.setdefault(own, set()).update(_within(best, own, stock.frequency, rules.frequency_ratio))
    for own, found in others.items():
        best = sorted(found - {own}, key=rank.__getitem__)[: rules.nearest]
        yield own, [(other, 1.0) for other in best]


def _first_within(ranked: list[int], own: int, frequency: NDArray[np.float64], ratio: float) -> int:
    """Where, among words by falling frequency, those begin that are not too frequent to stand for `own`."""
    if not ratio:
        return 0
    return bisect_left(ranked, -(frequency[own] + math.log(ratio)), key=lambda other: -frequency[other])


def _within(others: list[int], own: int, frequency: NDArray[np.float64], ratio: float) -> list[int]:
    if not ratio:
        return others
    return [other for other in others if abs(frequency[other] - frequency[own]) <= math.log(ratio)]
