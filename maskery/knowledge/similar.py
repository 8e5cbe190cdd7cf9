"""Words of like meaning as token ids, made once from groups of words: what MacBERT puts in the place of a word.

A word is replaced only by one that has as many tokens, so a row keeps its length and every answer its place. Groups are
kept as they are, cut by length: a word that is in several draws from all of them, and memory grows with the words, not
with the pairs. Looking up ten thousand words is a few vector operations for each token of the longest.
"""

from __future__ import annotations

from collections.abc import Iterable
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from maskery.knowledge.spelling import joined, spellings
from maskery.knowledge.synonyms import Group
from maskery.knowledge.trie import Numbers, Trie
from maskery.randomness import Keys, below
from maskery.text.tokenizer import Tokenizer


class SimilarWords:
    def __init__(self, groups: Iterable[Group], tokenizer: Tokenizer) -> None:
        self._ordinary = tokenizer.ordinary.astype(np.int32)
        self._marks = _punctuation(tokenizer)
        index: dict[str, int] = {}
        given = [([index.setdefault(word, len(index)) for word in words], mutual) for words, mutual in groups]
        spelt = spellings(tokenizer, list(index))
        every = joined(spelt)
        self._trie = Trie(every.ids, every.length, tokenizer.vocabulary)
        number = self._trie.number.reshape(len(spelt), len(index)).astype(np.int64)
        self._add_groups(given, number)
        usable = (number >= 0).any(axis=0)
        # The first way that can be written stands for the word; words that are spelt alike are one.
        name = np.take_along_axis(number, (number >= 0).argmax(axis=0)[None], axis=0)[0]
        _, one = np.unique(name[usable], return_index=True)
        ways = number[:, np.flatnonzero(usable)[one]]
        self.words = len(one)
        """Words that can be put into a row."""
        self.unknown = len(index) - int(usable.sum())
        """Words with a token that the tokenizer does not know."""
        self.with_similar = int((np.append(self._many, 0)[ways] > 0).any(axis=0).sum())
        """Words that have another of like meaning with as many tokens."""

    def _add_groups(self, given: list[tuple[list[int], bool]], number: Numbers) -> None:
        """Members, cut into ranges by group and length, and for every word the ranges from which it draws."""
        size = np.array([len(words) for words, _ in given], dtype=np.int64)
        word = np.array([each for words, _ in given for each in words], dtype=np.int64)
        first = np.cumsum(size) - size
        asks = np.repeat(np.array([mutual for _, mutual in given], dtype=bool), size)
        asks[first[size > 0]] = True
        # Each way of writing has groups of its own: a word behind a space is replaced by one behind a space.
        group = (np.repeat(np.arange(len(given)), size) + len(given) * np.arange(len(number))[:, None]).ravel()
        member = number[:, word].ravel()
        known = member >= 0
        group, member, asks = group[known], member[known], np.tile(asks, len(number))[known]
        self._member, begin, end, place, own = _ranges(group, self._trie.length[member], member, asks)
        order = np.argsort(own, kind="stable")
        begin, end, place, own = begin[order], end[order], place[order], own[order]
        self._range, self._place = begin, place
        self._upto: Numbers = np.concatenate(([0], np.cumsum(end - begin - 1)))
        """Others in all ranges before each one: a number below the last names a range and a word of it."""
        bound = self._upto[np.searchsorted(own, np.arange(len(self._trie) + 1))]
        self._first, self._many = bound[:-1], np.diff(bound)

    def replacements(
        self,
        ids: NDArray[np.int32],
        start: NDArray[np.int64],
        length: NDArray[np.int64],
        own: Keys,
        at: NDArray[np.int64],
    ) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """For W words (their flat ids end to end, where each begins, its tokens) as many ids, and which were found."""
        word = self._trie.find(ids.astype(np.int64), start, length)
        found = word >= 0
        found[found] = self._many[word[found]] > 0
        bounds = np.append(self._trie.first, [self._trie.first[-1]] * (int(length.max(initial=0)) + 1))
        low, many = bounds[length], bounds[length + 1] - bounds[length]
        chosen = low + below(own, "random word", many, at)
        chosen[found] = self._drawn(word[found], own[found], at[found])
        new = self._ordinary_ids(length, own, at)
        written = np.repeat(many > 0, length)
        shift = np.repeat(np.append(self._trie.start, 0)[np.where(many > 0, chosen, -1)] - start, length)
        new[written] = self._trie.ids[(shift + np.arange(len(ids)))[written]]
        return self._other_marks(ids, new, start, length, found, own, at), found

    def _other_marks(
        self,
        ids: NDArray[np.int32],
        new: NDArray[np.int32],
        start: NDArray[np.int64],
        length: NDArray[np.int64],
        found: NDArray[np.bool_],
        own: Keys,
        at: NDArray[np.int64],
    ) -> NDArray[np.int32]:
        """Punctuation that no table has becomes other punctuation: a word in its place would break the sentence."""
        if not len(ids) or not len(self._marks):
            return new
        marks = ~found & np.logical_and.reduceat(np.isin(ids, self._marks), start)
        step = np.arange(len(ids)) - np.repeat(start, length)
        drawn = below(np.repeat(own, length), "random mark", len(self._marks), np.repeat(at, length) + step)
        return np.where(np.repeat(marks, length), self._marks[drawn], new)

    def _drawn(self, word: Numbers, own: Keys, at: NDArray[np.int64]) -> Numbers:
        """Another word of one of the groups of each word."""
        pick = self._first[word] + below(own, "similar word", self._many[word], at)
        range_of = np.searchsorted(self._upto, pick, side="right") - 1
        step = pick - self._upto[range_of]
        drawn: Numbers = self._member[self._range[range_of] + step + (step >= self._place[range_of])]
        return drawn

    def _ordinary_ids(self, length: NDArray[np.int64], own: Keys, at: NDArray[np.int64]) -> NDArray[np.int32]:
        """Single tokens, for words as long as no word of the table."""
        step = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        drawn = below(np.repeat(own, length), "random word", len(self._ordinary), np.repeat(at, length) + step)
        return self._ordinary[drawn]


def _punctuation(tokenizer: Tokenizer) -> NDArray[np.int32]:
    """Ordinary pieces of punctuation alone."""
    pieces = (tokenizer.pieces[each] for each in tokenizer.ordinary)
    alone = [bool(piece) and all(category(sign).startswith("P") for sign in piece) for piece in pieces]
    marks: NDArray[np.int32] = tokenizer.ordinary[np.array(alone, dtype=bool)].astype(np.int32)
    return marks


def _ranges(
    group: Numbers, length: Numbers, member: Numbers, asks: NDArray[np.bool_]
) -> tuple[Numbers, Numbers, Numbers, Numbers, Numbers]:
    """All members by group and length, each once; and for every one that asks: where its range begins and ends, its
    own place in it, and which word it is. Ranges of one word are left out."""
    order = np.lexsort((~asks, member, length, group))
    group, length, member, asks = group[order], length[order], member[order], asks[order]
    once = np.ones(len(member), dtype=bool)
    once[1:] = (np.diff(group) != 0) | (np.diff(member) != 0)
    group, length, member, asks = group[once], length[once], member[once], asks[once]
    new = np.ones(len(member), dtype=bool)
    new[1:] = (np.diff(group) != 0) | (np.diff(length) != 0)
    edge = np.append(np.flatnonzero(new), len(member))
    range_of = np.cumsum(new) - 1
    begin, end = edge[range_of], edge[range_of + 1]
    mine = np.flatnonzero(asks & (end - begin > 1))
    return member, begin[mine], end[mine], mine - begin[mine], member[mine]
