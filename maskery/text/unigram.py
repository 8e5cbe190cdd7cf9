"""Learn unigram pieces: which ones, and how probable each is, by expectation and maximisation over all ways to cut.

The trainer of `tokenizers` adds floating-point numbers in the order of hash tables and threads, so that its scores
differ from process to process; here everything is arrays in a fixed order, and the same text always gives the same
pieces. Many pieces are proposed (every substring of a word that comes twice), then in rounds those go without which
the text loses least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskery.text.characters import codes

LONGEST_PIECE = 16
_LONGEST_WORD = 24
"""Longer words are cut for learning: products of so many probabilities stay above the smallest float."""
_MOST_CHARACTERS = 1_000_000
"""Of distinct words, the commonest first: about 0.5 s a round."""
_PROPOSED = 10
"""Pieces proposed for each that is wanted."""
_KEPT_A_ROUND = 0.75
_SMALLEST = 1e-10

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class _Words:
    """The words of one length; `edges[start][size - 1]` holds the piece of that span of every word."""

    length: int
    members: Numbers
    """Their numbers among all words."""
    edges: list[list[NDArray[np.int32]]]


def learn(counts: Mapping[str, int], characters: list[str], room: int) -> tuple[list[tuple[str, float]], int]:
    """At most `room` pieces with log-probabilities, commonest first: all `characters`, and longer ones.

    `counts` are words of these characters. Also the number of words that were left out because there were too many.
    """
    words, left_out = _chosen(counts)
    if not words:
        return [(letter, 0.0) for letter in sorted(characters)], left_out
    text, starts, lengths, weights = _laid_out(words)
    alphabet, letters = np.unique(codes(text), return_inverse=True)
    known = set(map(ord, characters))
    table, places, sizes, frequency = _propose(letters, starts, lengths, weights, _PROPOSED * room)
    groups, parts = _groups(table, starts, lengths), _groups(table, places, sizes)
    wanted = room - len(known.difference(alphabet.tolist()))
    probability = _fit(groups, weights, parts, frequency * sizes, wanted)
    kept = np.flatnonzero(probability > 0)
    found = {text[places[n] : places[n] + sizes[n]]: float(np.log(probability[n])) for n in kept.tolist()}
    lowest = min(found.values(), default=0.0)
    found |= {letter: lowest for letter in characters if letter not in found}
    ranked = sorted(found.items(), key=lambda item: (-round(item[1], 6), item[0]))
    return [(piece, round(score, 6)) for piece, score in ranked], left_out


def _chosen(counts: Mapping[str, int]) -> tuple[list[tuple[str, int]], int]:
    """The commonest words, cut where they are very long."""
    cut: Counter[str] = Counter()
    for word, count in counts.items():
        for at in range(0, len(word), _LONGEST_WORD):
            cut[word[at : at + _LONGEST_WORD]] += count
    ranked = sorted(cut.items(), key=lambda item: (-item[1], item[0]))
    fits = int(np.searchsorted(np.cumsum([len(word) for word, _ in ranked]), _MOST_CHARACTERS, side="right"))
    return ranked[:fits], len(ranked) - fits


def _laid_out(words: list[tuple[str, int]]) -> tuple[str, Numbers, Numbers, Floats]:
    text = "".join(word for word, _ in words)
    lengths = np.array([len(word) for word, _ in words], dtype=np.int64)
    weights = np.array([count for _, count in words], dtype=np.float64)
    return text, np.cumsum(lengths) - lengths, lengths, weights


def _propose(
    letters: Numbers, starts: Numbers, lengths: Numbers, weights: Floats, most: int
) -> tuple[NDArray[np.int32], Numbers, Numbers, Floats]:
    """The table (size, place) -> piece, and of each piece a place, its size and its frequency.

    Where there is no piece the table holds the number of pieces. Substrings are numbered size by size: one of size n
    is the pair of its first n-1 letters and its last.
    """
    left = np.repeat(starts + lengths, lengths) - np.arange(letters.size)
    weight = np.repeat(weights, lengths)
    number = letters.astype(np.int64)
    at = np.arange(letters.size)
    table = np.full((LONGEST_PIECE, letters.size), -1, dtype=np.int32)
    found: list[tuple[Numbers, Numbers, Floats]] = []
    total = 0
    for size in range(1, LONGEST_PIECE + 1):
        _, place, inverse = np.unique(number, return_index=True, return_inverse=True)
        frequency: Floats = np.bincount(inverse, weights=weight[at]).astype(np.float64)
        repeated = (frequency >= 2) | (size == 1)
        rank = np.where(repeated, np.cumsum(repeated) - 1, -1)[inverse]
        table[size - 1, at[rank >= 0]] = total + rank[rank >= 0]
        found.append((at[place[repeated]], np.full(int(repeated.sum()), size, dtype=np.int64), frequency[repeated]))
        total += int(repeated.sum())
        go_on = (rank >= 0) & (left[at] > size)
        at = at[go_on]
        if not at.size:
            break
        number = rank[go_on] * (int(letters.max()) + 1) + letters[at + size]
    places, sizes, frequencies = (np.concatenate(column) for column in zip(*found, strict=True))
    return _best(table, places, sizes, frequencies, most)


def _best(
    table: NDArray[np.int32], places: Numbers, sizes: Numbers, frequency: Floats, most: int
) -> tuple[NDArray[np.int32], Numbers, Numbers, Floats]:
    """Only the pieces that cover most text, and every single letter."""
    cover = np.where(sizes == 1, np.inf, frequency * sizes)
    kept = np.sort(np.argsort(-cover, kind="stable")[:most])
    renumbered = np.full(sizes.size + 1, kept.size, dtype=np.int32)
    renumbered[kept] = np.arange(kept.size)
    return renumbered[table], places[kept], sizes[kept], frequency[kept]


def _groups(table: NDArray[np.int32], starts: Numbers, lengths: Numbers) -> list[_Words]:
    groups = []
    for length in np.unique(lengths).tolist():
        members = np.flatnonzero(lengths == length)
        edges = [
            [table[size - 1, starts[members] + at] for size in range(1, min(LONGEST_PIECE, length - at) + 1)]
            for at in range(length)
        ]
        groups.append(_Words(length, members, edges))
    return groups


def _fit(groups: list[_Words], weights: Floats, parts: list[_Words], cover: Floats, wanted: int) -> Floats:
    """Rounds of re-estimating and leaving out, until no more than `wanted` pieces are left."""
    single = np.zeros(cover.size, dtype=bool)
    single[parts[0].members] = True
    probability: Floats = cover / cover.sum()
    while True:
        for _ in range(2):
            expected = _expected(groups, weights, probability)
            alive = (expected >= 0.5) | single
            share = expected / expected[alive].sum()
            probability = np.maximum(share, _SMALLEST) * alive
        number = int(np.count_nonzero(alive))
        if number <= wanted:
            return probability
        loss = np.where(single, np.inf, expected * _worth(parts, probability))
        ranked = np.argsort(np.where(alive, -loss, np.inf), kind="stable")
        probability[ranked[max(wanted, int(_KEPT_A_ROUND * number)) :]] = 0.0


def _forward(words: _Words, probability: Floats, whole: bool) -> Floats:
    """(length + 1, words): the probability of all ways to cut the letters before each place."""
    reached = np.zeros((words.length + 1, words.members.size))
    reached[0] = 1.0
    for at, edges in enumerate(words.edges):
        for size, piece in enumerate(edges, 1):
            if whole or size < words.length:
                reached[at + size] += reached[at] * probability[piece]
    return reached


def _expected(groups: list[_Words], weights: Floats, probability: Floats) -> Floats:
    """How often each piece is used in the text, over all ways to cut it."""
    padded = np.append(probability, 0.0)  # the number behind the last stands for no piece
    used = np.zeros(padded.size)
    for words in groups:
        reached = _forward(words, padded, whole=True)
        behind = np.zeros_like(reached)
        behind[-1] = weights[words.members] / reached[-1]
        passed: list[Floats] = []
        for at in range(words.length - 1, -1, -1):
            for size, piece in enumerate(words.edges[at], 1):
                onward = behind[at + size] * padded[piece]
                behind[at] += onward
                passed.append(onward * reached[at])
        pieces = np.concatenate([piece for edges in reversed(words.edges) for piece in edges])
        used += np.bincount(pieces, weights=np.concatenate(passed), minlength=padded.size)
    return used[:-1]


def _worth(parts: list[_Words], probability: Floats) -> Floats:
    """By how much the logarithm falls where each piece is cut into others; 0 for a piece that is not in use."""
    padded = np.append(probability, 0.0)
    worth = np.zeros(probability.size)
    for words in parts[1:]:
        mine = probability[words.members]
        others = _forward(words, padded, whole=False)[-1]
        used = mine > 0
        worth[words.members[used]] = np.log(mine[used] / np.maximum(others[used], np.finfo(float).tiny))
    return worth
