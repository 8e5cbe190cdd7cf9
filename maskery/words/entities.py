"""Entities: words, and runs of them, that a tagger calls names of people (nr), places (ns) or organisations (nt); or
the entries of a list that stand in the text.

The tagger is jieba's, offline. A word has the same tag alone as in its sentence, so each different word is asked for
once; but 0.3 % of the names in Chinese Wikipedia are parted when they stand alone, and are missed (太多 as a place).
Tags that begin with nr, ns or nt count as these (nrt and nrfg are people). A word of a single character is no entity.
Neighbours of the same tag are an entity together, too, as many as stand side by side; people also over a sign that
joins names (卡尔·马克思).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import rjieba
from numpy.typing import NDArray

from maskery.corpus.encode import Flag
from maskery.corpus.mark import pieces
from maskery.knowledge.entries import read_entries, tag_of
from maskery.knowledge.lexicon import Lexicon
from maskery.words.function_words import JOINERS
from maskery.words.runs import Numbers, levels
from maskery.words.vocabulary import Told, Words, word_places

if TYPE_CHECKING:
    from maskery.corpus.store import Corpus

TAGS = ("", "nr", "ns", "nt")
_PERSON = TAGS.index("nr")
_READING = 0.5
"""Work of reading a list, beside 1 for a walk over the text."""


@dataclass(frozen=True, kw_only=True)
class Entities:
    """P entities, the most frequent first."""

    place: Numbers
    """(P,) where each stands first, in word occurrences."""
    length: Numbers
    """(P,) words."""
    count: Numbers
    tag: Numbers
    """(P,) numbers of `TAGS`."""


def tags_of(words: Sequence[str]) -> NDArray[np.int8]:
    """(W,) numbers of `TAGS`; 0 for what is no entity."""
    return np.array([_tag(word) for word in words], dtype=np.int8)


def _tag(word: str) -> int:
    if len(word) < 2:
        return 0
    found = rjieba.tag(word)
    # A word that jieba parts when it stands alone has no tag.
    tag = found[0][1][:2] if len(found) == 1 else ""
    return TAGS.index(tag) if tag in TAGS else 0


def tagged_entities(words: Words, *, min_count: int, longest: int, progress: Told | None = None) -> Entities:
    """Words that the tagger calls names, and runs of up to `longest` of them; each at least `min_count` times."""
    tag = np.append(tags_of(words.words), np.int8(0))
    joins = np.array([*(word in JOINERS for word in words.words), False], dtype=bool)
    begin, length = _stretches(words, tag, joins)
    parts = [_single(words, tag, min_count)]

    def tell(done: int, total: int) -> None:
        if progress is not None:
            progress(len(parts) - 1 + done / max(1, total), longest)

    parting = (tag == 0)[:-1] & ~joins[:-1]
    for level in levels(
        words.number, words.sentence_start, parting, least=min_count, longest=max(2, longest), tell=tell
    ):
        here = begin[length == level.length]
        here = here[level.at[here] >= 0]
        if level.length == 1 or level.length > longest:
            continue
        count = np.bincount(level.at[here], minlength=len(level.count))
        first = np.zeros(len(level.count), dtype=np.int64)
        first[level.at[here][::-1]] = here[::-1]
        often = np.flatnonzero(count >= min_count)
        place = first[often]
        parts.append((place, np.full(len(often), level.length), count[often], tag[words.number[place]]))
    place, size, count, kind = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((size, place, -count))
    return Entities(place=place[order], length=size[order], count=count[order], tag=kind[order].astype(np.int64))


def _single(words: Words, tag: NDArray[np.int8], min_count: int) -> tuple[Numbers, Numbers, Numbers, NDArray[np.int8]]:
    """Words that are entities by themselves: first places, lengths, counts, tags."""
    wanted = np.flatnonzero((tag[:-1] > 0) & (words.counts >= min_count))
    first = np.zeros(len(words.words) + 1, dtype=np.int64)
    first[words.number[::-1]] = np.arange(len(words.number))[::-1]
    return first[wanted], np.ones(len(wanted), dtype=np.int64), words.counts[wanted], tag[wanted]


def _stretches(words: Words, tag: NDArray[np.int8], joins: NDArray[np.bool_]) -> tuple[Numbers, Numbers]:
    """First word and number of words of each longest stretch of one tag inside a sentence."""
    kind, sign = tag[words.number], joins[words.number]
    inner = np.flatnonzero(sign[1:-1] & (kind[:-2] == _PERSON) & (kind[2:] == _PERSON)) + 1
    starts = np.zeros(len(kind) + 1, dtype=bool)
    starts[words.sentence_start] = True
    inner = inner[~starts[inner] & ~starts[inner + 1]]
    kind[inner] = _PERSON
    new = starts[:-1].copy()
    new[1:] |= kind[1:] != kind[:-1]
    begin = np.flatnonzero(new)
    length = np.diff(begin, append=len(kind))
    named = kind[begin] > 0
    return begin[named], length[named]


Listed = tuple[str, int, str]
"""An entry of a list, how often it stands in the text, and its tag or nothing."""


@dataclass(frozen=True, kw_only=True)
class ListedEntities:
    entities: list[Listed]
    """The most frequent first, else in the order of the list."""
    lexicon: Lexicon
    most: int
    """How often the most frequent entry stands in the text."""


def listed_entities(
    corpus: Corpus, file: Path, *, min_count: int, split: str = "train", progress: Told | None = None
) -> ListedEntities:
    """The entries of a list that stand at least `min_count` times in the text, as `corpus mark` would mark them."""
    begin, _, _ = word_places(corpus, split)

    def tell(part: float, work: float, done: int, total: int) -> None:
        if progress is not None:
            progress(part + work * done / max(1, total), _READING + 1)

    lexicon = Lexicon.read(file, corpus.tokenizer, lambda done, total: tell(0, _READING, done, total))
    mine = np.zeros(corpus.tokens.size, dtype=bool)
    mine[begin] = True
    found = np.zeros(max(1, len(lexicon.trie)), dtype=np.int64)
    for first, end, sentence_start in pieces(corpus.sentence_start):
        word = (corpus.flags[first:end] & Flag.WORD) != 0
        matches = lexicon.matches(np.asarray(corpus.tokens[first:end]), word, sentence_start)
        here = matches.entry[mine[first:end][matches.start]]
        found += np.bincount(here, minlength=len(found))
        tell(_READING, 1, end, corpus.tokens.size)
    count = lexicon.counts(found)
    entities = sorted(_named(file, lexicon.line, count, min_count), key=lambda entry: -entry[1])
    return ListedEntities(entities=entities, lexicon=lexicon, most=int(count.max(initial=0)))


def _named(file: Path, line: NDArray[np.int32], count: Numbers, min_count: int) -> list[Listed]:
    """The frequent entries as the list writes them where they come first; it is read again, and not kept."""
    wanted, found, at = count >= min_count, [], 0
    for block in read_entries(file):
        which = line[at : at + len(block)]
        at += len(block)
        for place in np.flatnonzero(which >= 0).tolist():
            number = which[place]
            if wanted[number]:
                wanted[number] = False
                found.append((block[place][0], int(count[number]), tag_of(block[place][1])))
    return found
