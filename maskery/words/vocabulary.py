"""The words of a corpus with their counts, and the corpus as word numbers.

A word is a run of tokens from one word flag to the next, never over the end of a sentence. Runs are told apart as ids,
one place of all runs at a time: no loop over tokens. Runs that are spelt alike are one word (byte-level tokenizers
write a word in another way behind a space). W words, N occurrences, S sentences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskery.corpus.encode import Flag
from maskery.errors import CorpusError

if TYPE_CHECKING:
    from maskery.corpus.store import Corpus
    from maskery.text.tokenizer import Tokenizer

Told = Callable[[float, float], None]
"""Work done, work in all."""
LONGEST = 64
"""Tokens; a longer run is an address or noise, no word."""
_BROKEN = "\N{REPLACEMENT CHARACTER}"
_SPELLING = 0.5
"""Work of spelling the distinct runs, beside 1 for telling them apart."""


@dataclass(frozen=True, kw_only=True)
class Words:
    words: list[str]
    """The commonest first; among equals the one that stands first in the corpus."""
    counts: NDArray[np.int64]
    """(W,)"""
    number: NDArray[np.int32]
    """(N,) the word of each occurrence in the order of the corpus; -1 where it is left out."""
    sentence_start: NDArray[np.int64]
    """(S+1,) occurrences."""
    total: int
    """N: all occurrences, those left out too."""
    rare: int = 0
    """Occurrences left out because their word stands fewer than `min_count` times."""
    rare_words: int = 0
    unknown: int = 0
    """Occurrences left out because they hold a special or unknown token or half a character, or are too long."""


def read_words(corpus: Corpus, min_count: int = 5, split: str = "train", progress: Told | None = None) -> Words:
    """Count the words of a split. Refused: a corpus built without words, or without a word that is frequent enough."""
    tell = progress or _silent
    begin, length, sentence_start = word_places(corpus, split)
    if not begin.size:
        raise CorpusError(f"there is no word in the split {split}", where=corpus.path, repair="build it from more text")
    run = _runs(np.asarray(corpus.tokens), begin, length, corpus.vocabulary, tell)
    spelling, word_of = _spelt(corpus, run, begin, length, tell)
    number = word_of[run.number]
    unknown = int((number < 0).sum())
    if unknown == number.size:
        raise CorpusError(
            f"each of the {unknown:,} words holds a token that the tokenizer does not know, or is longer than any word",
            where=corpus.path,
            repair="build it with a tokenizer of its language: maskery corpus build FILES --tokenizer train --out DIR",
        )
    return _counted(corpus, spelling, number, min_count, sentence_start, unknown)


def _silent(done: float, total: float) -> None:
    pass


def word_places(corpus: Corpus, split: str) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """First token and number of tokens of each word of the split; the first word of each of its sentences."""
    if corpus.manifest["options"]["words"] == "none":
        raise CorpusError(
            "the corpus was built with --words none, so its words are not known",
            where=corpus.path,
            repair="build it with words: maskery corpus build FILES --words auto --out DIR",
        )
    starts = (corpus.flags & Flag.WORD) != 0
    starts[corpus.sentence_start[:-1]] = True
    begin = np.flatnonzero(starts)
    length = np.diff(begin, append=starts.size)
    words = np.diff(np.searchsorted(begin, corpus.sentence_start))
    wanted = np.zeros(corpus.heldout.size, dtype=bool)
    wanted[corpus.documents(split)] = True
    sentence = np.repeat(wanted, np.diff(corpus.document_start))
    if not sentence.all():
        mine = np.repeat(sentence, words)
        begin, length, words = begin[mine], length[mine], words[sentence]
    return begin, length, np.concatenate(([0], np.cumsum(words)))


class _Runs(NamedTuple):
    number: NDArray[np.int64]
    """(N,) equal for equal runs; -1 for one that is too long."""
    first: NDArray[np.int64]
    """(R,) where each run occurs first; runs are numbered in this order."""


def _runs(
    tokens: NDArray[Any], begin: NDArray[np.int64], length: NDArray[np.int64], vocabulary: int, tell: Told
) -> _Runs:
    """Runs of one token are told apart by it; those of k by what their first k - 1 tokens are, and the k-th."""
    whole = np.full(begin.size, -1, dtype=np.int64)
    open_, prefix, made = np.arange(begin.size), tokens[begin].astype(np.int64), vocabulary
    base = 0
    for place in range(1, LONGEST + 1):
        ends = length[open_] == place
        whole[open_[ends]] = base + prefix[ends]
        open_, prefix = open_[~ends], prefix[~ends]
        tell(begin.size - open_.size, begin.size * (1 + _SPELLING))
        if not open_.size:
            break
        base += made
        pair = prefix * vocabulary + tokens[begin[open_] + place]
        distinct, prefix = np.unique(pair, return_inverse=True)
        made = distinct.size
    return _in_order(whole, base + made)


def _in_order(whole: NDArray[np.int64], limit: int) -> _Runs:
    """The numbers anew, by first occurrence."""
    known = np.flatnonzero(whole >= 0)[::-1]
    first = np.full(limit, whole.size, dtype=np.int64)
    first[whole[known]] = known  # of equal places the last is kept, here the first of the corpus
    order = np.argsort(first, kind="stable")[: int((first < whole.size).sum())]
    again = np.full(limit + 1, -1, dtype=np.int64)
    again[order] = np.arange(order.size)
    return _Runs(again[whole], first[order])


def _spelt(
    corpus: Corpus, run: _Runs, begin: NDArray[np.int64], length: NDArray[np.int64], tell: Told
) -> tuple[list[str], NDArray[np.int64]]:
    """The spellings in the order of the runs, each once; and for each run its spelling or -1, with a -1 at the end."""
    many = length[run.first]
    edge = np.concatenate(([0], np.cumsum(many)))
    flat = np.arange(edge[-1]) - np.repeat(edge[:-1] - begin[run.first], many)
    ids = np.asarray(corpus.tokens)[flat]
    special = np.zeros(corpus.vocabulary, dtype=bool)
    special[list(corpus.specials.ids)] = True
    strange = np.logical_or.reduceat(special[ids], edge[:-1]) if ids.size else np.zeros(0, dtype=bool)
    found: dict[str, int] = {}
    word_of = np.full(run.first.size + 1, -1, dtype=np.int64)
    listed, edges, tokenizer = ids.tolist(), edge.tolist(), corpus.tokenizer
    for number in np.flatnonzero(~strange).tolist():
        text = spelling(tokenizer, listed[edges[number] : edges[number + 1]])
        if text and _BROKEN not in text:
            word_of[number] = found.setdefault(text, len(found))
        if number % 4096 == 0:
            tell(begin.size * (1 + _SPELLING * number / run.first.size), begin.size * (1 + _SPELLING))
    return list(found), word_of


def spelling(tokenizer: Tokenizer, ids: list[int]) -> str:
    """A word as it is written: no white space, which is never inside one."""
    return "".join(tokenizer.decode(ids).split())


def _counted(
    corpus: Corpus,
    spelling: list[str],
    number: NDArray[np.int64],
    min_count: int,
    sentence_start: NDArray[np.int64],
    unknown: int,
) -> Words:
    counts = np.bincount(number[number >= 0], minlength=len(spelling))
    order = np.argsort(-counts, kind="stable")
    kept = order[counts[order] >= min_count]
    if not kept.size:
        most = int(counts.max(initial=0))
        raise CorpusError(
            f"no word stands {min_count} times or more; the commonest of {len(spelling):,} stands {most} times",
            where=corpus.path,
            repair=f"--min-count {max(1, most // 2)}, or a corpus of more text",
        )
    again = np.full(len(spelling) + 1, -1, dtype=np.int32)
    again[kept] = np.arange(kept.size)
    return Words(
        words=[spelling[each] for each in kept.tolist()],
        counts=counts[kept].astype(np.int64),
        number=again[number],
        sentence_start=sentence_start,
        total=int(number.size),
        rare=int(counts.sum() - counts[kept].sum()),
        rare_words=len(spelling) - kept.size,
        unknown=unknown,
    )
