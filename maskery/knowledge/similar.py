"""Words of like meaning as token ids, made once from groups of words: what MacBERT puts in the place of a word.

A word is replaced only by one that has as many tokens, so a row keeps its length and every answer its place. Looking up
ten thousand words is a few vector operations for each number of tokens that occurs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskery.randomness import Keys, below, keys
from maskery.text.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class _Length:
    """The W words of n tokens."""

    code: NDArray[np.uint64]
    """(W,) ascending."""
    ids: NDArray[np.int32]
    """(W,n)"""
    start: NDArray[np.int64]
    """(W+1,)"""
    other: NDArray[np.int64]
    """Similar words of word w: other[start[w]:start[w+1]], as numbers of words."""


class SimilarWords:
    def __init__(self, groups: Iterable[tuple[list[str], bool]], tokenizer: Tokenizer) -> None:
        self._ordinary = tokenizer.ordinary
        others: dict[str, dict[str, None]] = {}
        for words, mutual in groups:
            for word in words if mutual else words[:1]:
                others.setdefault(word, {}).update(dict.fromkeys(other for other in words if other != word))
        known = list(dict.fromkeys([*others, *(other for each in others.values() for other in each)]))
        encoded = dict(zip(known, (ids.astype(np.int32) for ids, _ in tokenizer.encode_raw(known)), strict=True))
        unknown = tokenizer.specials.unk
        usable = {word for word, ids in encoded.items() if len(ids) and not (ids == unknown).any()}
        self.words, self.dropped = len(usable), len(known) - len(usable)
        """Words that can be put into a row, and those with a token unknown to the tokenizer."""
        self._lengths = {
            length: _table([word for word in known if word in usable and len(encoded[word]) == length], others, encoded)
            for length in sorted({len(encoded[word]) for word in usable})
        }

    def words_with_a_like(self) -> int:
        return sum(int((np.diff(each.start) > 0).sum()) for each in self._lengths.values())

    def replacements(
        self,
        ids: NDArray[np.int32],
        start: NDArray[np.int64],
        length: NDArray[np.int64],
        own: Keys,
        at: NDArray[np.int64],
    ) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """For W words (their flat ids, where each begins, its tokens) as many ids, and which were found (W,)."""
        new, found = np.empty_like(ids), np.zeros(len(start), dtype=bool)
        for size in np.unique(length):
            mine = np.flatnonzero(length == size)
            slots = start[mine][:, None] + np.arange(size)
            new[slots], found[mine] = self._of_length(int(size), ids[slots], own[mine], at[mine])
        return new, found

    def _of_length(
        self, size: int, ids: NDArray[np.int32], own: Keys, at: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        table = self._lengths.get(size)
        if table is None:
            places = at[:, None] + np.arange(size)
            drawn = below(own[:, None], "random word", len(self._ordinary), places)
            return self._ordinary[drawn].astype(np.int32), np.zeros(len(ids), dtype=bool)
        word = np.minimum(np.searchsorted(table.code, _codes(ids)), len(table.code) - 1)
        many = np.diff(table.start)[word]
        found = (table.ids[word] == ids).all(axis=1) & (many > 0)
        chosen = below(own, "random word", len(table.code), at)
        pick = table.start[word] + below(own, "similar word", np.maximum(many, 1), at)
        chosen[found] = table.other[pick[found]]
        return table.ids[chosen], found


def _codes(ids: NDArray[np.int32]) -> NDArray[np.uint64]:
    """(W,n) -> (W,) one number for each word."""
    return keys(0, "word", *ids.T) if ids.size else np.zeros(len(ids), dtype=np.uint64)


def _table(words: list[str], others: dict[str, dict[str, None]], encoded: dict[str, NDArray[np.int32]]) -> _Length:
    """Words that are spelt alike to the tokenizer (case, width) are one word with the others of all."""
    ids = np.stack([encoded[word] for word in words])
    code, first, number = np.unique(_codes(ids), return_index=True, return_inverse=True)
    place = dict(zip(words, number.tolist(), strict=True))
    alike: list[dict[int, None]] = [{} for _ in code]
    for word in words:
        here = place[word]
        alike[here].update((place[each], None) for each in others.get(word, ()) if place.get(each, here) != here)
    many = [len(each) for each in alike]
    return _Length(
        code=code,
        ids=ids[first],
        start=np.concatenate(([0], np.cumsum(many))).astype(np.int64),
        other=np.array([each for group in alike for each in group], dtype=np.int64),
    )
