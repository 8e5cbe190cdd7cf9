"""A chunk of text to tokens, flags and sentences: a pure function of (text, tokenizer, segmenter).

Everything is decided inside a line, so the same text gives the same tokens however it is cut into chunks. A token
starts a word if the word of its first visible character differs from that of the last one of the token before it, or
if it is the first of its sentence; a token whose first and last characters lie in different words is counted. A token
of white space alone goes with the word behind it, as the space of a byte-level token does; at the end of a line, with
the word before it.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import IntFlag
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskery.text.characters import Kind, capitals, codes, kinds
from maskery.text.sentences import boundaries
from maskery.text.tokenizer import FlatTokens, Tokenizer
from maskery.text.unknown import unknown_characters
from maskery.text.words import Segmenter


class Flag(IntFlag):
    """The byte kept beside every token."""

    WORD = 1
    """First token of a word; so are the next two for sentence and document."""
    SENTENCE = 2
    DOCUMENT = 4
    PHRASE = 8
    IN_PHRASE = 16
    ENTITY = 32
    IN_ENTITY = 64
    CAPITAL = 128
    """The token's first character is a capital letter."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """The tokens of one chunk. A chunk is parts of documents in order; a blank line parts them."""

    tokens: NDArray[np.uint32]
    flags: NDArray[np.uint8]
    sentences: NDArray[np.uint32]
    """Tokens of each sentence; none is empty."""
    parts: NDArray[np.uint32]
    """Sentences of each part of a document; a part may have none."""
    unknown: int
    straddling: int
    strange: Mapping[str, int]
    """What was unknown, by the characters to blame."""

    def to_bytes(self) -> bytes:
        arrays = (self.tokens, self.flags, self.sentences, self.parts)
        head = struct.pack("<6q", *(array.size for array in arrays), self.unknown, self.straddling)
        return b"".join([head, *(array.tobytes() for array in arrays), json.dumps(self.strange).encode()])

    @classmethod
    def from_bytes(cls, data: bytes) -> Piece:
        *sizes, unknown, straddling = struct.unpack_from("<6q", data)
        at = struct.calcsize("<6q")
        arrays = {}
        for item, size in zip(fields(cls), sizes, strict=False):
            dtype = np.dtype(np.uint8 if item.name == "flags" else np.uint32)
            arrays[item.name] = np.frombuffer(data, dtype=dtype, count=size, offset=at)
            at += size * dtype.itemsize
        return cls(**arrays, unknown=unknown, straddling=straddling, strange=json.loads(data[at:]))


@dataclass(frozen=True)
class Pairs:
    """Documents are pairs: a source and a target, a line each, and each line is one sentence."""

    target: Tokenizer | None = None
    """What the second texts are written with; None: the same as the first."""


def encode(text: str, tokenizer: Tokenizer, segmenter: Segmenter, pairs: Pairs | None = None) -> Piece:
    lines = text.split("\n")
    flat = _tokens(lines, tokenizer, pairs)
    line = np.repeat(np.arange(len(lines)), flat.lengths)
    begins = np.array([0, *accumulate(len(item) + 1 for item in lines)][:-1], dtype=np.int64)
    # One sign more than the text, so that the place of a token without text is always a place.
    code_points = codes(text + "\n")
    ends = np.append(begins[1:] - 1, code_points.size - 1)
    first, last, visible = _places(flat, begins[line], ends[line], kinds(code_points) != Kind.SPACE)

    strange = np.flatnonzero(_unknown(flat.ids, line, tokenizer, pairs))
    sentence = _sentence_numbers(lines, begins, code_points.size, whole=pairs is not None)[first]
    starts_line = _changes(line)
    starts_sentence = starts_line | _changes(np.maximum.accumulate(sentence))
    starts_word, straddling = _word_starts(segmenter(text + "\n"), first, last, starts_sentence)

    part = np.cumsum(np.fromiter((not item for item in lines), dtype=np.int64, count=len(lines)))
    sentence_at = np.flatnonzero(starts_sentence)
    part_of_sentence = part[line[sentence_at]]
    flags = starts_word * np.uint8(Flag.WORD)
    flags |= starts_sentence * np.uint8(Flag.SENTENCE)
    flags[sentence_at[_changes(part_of_sentence)]] |= np.uint8(Flag.DOCUMENT)
    flags |= (capitals(code_points)[first] & visible) * np.uint8(Flag.CAPITAL)
    return Piece(
        tokens=flat.ids,
        flags=flags,
        sentences=np.diff(np.append(sentence_at, flat.ids.size)).astype(np.uint32),
        parts=np.bincount(part_of_sentence, minlength=int(part[-1]) + 1).astype(np.uint32),
        unknown=len(strange),
        straddling=straddling,
        strange=_strange(strange, lines, line, flat, tokenizer, pairs),
    )


_EVERY = 3
"""Lines from one pair to the next: source, target, and the empty one between two documents."""


def _tokens(lines: list[str], tokenizer: Tokenizer, pairs: Pairs | None) -> FlatTokens:
    """The tokens of all lines; every second line of a pair is the target's."""
    if pairs is None or pairs.target is None:
        return tokenizer.encode_flat(lines)
    both = (tokenizer.encode_flat(lines), pairs.target.encode_flat(lines))
    theirs = np.arange(len(lines)) % _EVERY == 1
    lengths = np.where(theirs, both[1].lengths, both[0].lengths)
    line = np.repeat(np.arange(len(lines)), lengths)
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    found = []
    for flat, mine in zip(both, (~theirs, theirs), strict=True):
        place = (np.cumsum(flat.lengths) - flat.lengths)[line] + within
        found.append((flat, place, mine[line]))

    def joined(name: str) -> NDArray[Any]:
        first = np.zeros(line.size, dtype=getattr(both[0], name).dtype)
        for flat, place, mine in found:
            first[mine] = getattr(flat, name)[place[mine]]
        return first

    return FlatTokens(ids=joined("ids"), start=joined("start"), end=joined("end"), lengths=lengths)


def _unknown(
    ids: NDArray[np.uint32], line: NDArray[np.int64], tokenizer: Tokenizer, pairs: Pairs | None
) -> NDArray[np.bool_]:
    theirs = tokenizer if pairs is None or pairs.target is None else pairs.target
    unknown = np.where(line % _EVERY == 1, theirs.specials.unk, tokenizer.specials.unk)
    found: NDArray[np.bool_] = ids == (unknown if pairs is not None else tokenizer.specials.unk)
    return found


def _strange(
    places: NDArray[np.int64],
    lines: list[str],
    line: NDArray[np.int64],
    flat: FlatTokens,
    tokenizer: Tokenizer,
    pairs: Pairs | None,
) -> Counter[str]:
    """What stands where tokens are unknown, by the characters to blame."""
    spans: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
    where = zip(line[places].tolist(), flat.start[places].tolist(), flat.end[places].tolist(), strict=True)
    apart = pairs is not None and pairs.target is not None
    for number, start, end in where:
        spans[apart and number % _EVERY == 1][lines[number][start:end]] += 1
    found = unknown_characters(tokenizer, spans[False]) if spans[False] else Counter[str]()
    if spans[True] and pairs is not None and pairs.target is not None:
        found += unknown_characters(pairs.target, spans[True])
    return found


def _places(
    flat: FlatTokens, line_begin: NDArray[np.int64], line_end: NDArray[np.int64], visible: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Places in the chunk of each token's first and last visible characters, and whether it has any.

    One that has none stands at the next visible character of its line, else at the one before it, else where it is.
    """
    first = flat.start + line_begin
    last = np.maximum(flat.end + line_begin - 1, first)
    if visible[first].all() and visible[last].all():
        return first, last, np.ones(first.size, dtype=bool)
    here = np.arange(visible.size)
    behind = np.minimum.accumulate(np.where(visible, here, visible.size)[::-1])[::-1][first]
    before = np.maximum.accumulate(np.where(visible, here, -1))[last]
    seen = behind <= last
    nearest = np.where(before >= line_begin, before, first)
    place = np.where(behind < line_end, behind, nearest)
    return np.where(seen, behind, place), np.where(seen, before, place), seen


def _sentence_numbers(lines: list[str], begins: NDArray[np.int64], size: int, *, whole: bool) -> NDArray[np.int64]:
    """The number of the sentence in which each character stands; `whole`: a line is one sentence."""
    starts = np.zeros(size, dtype=bool)
    if whole:
        starts[begins] = True
        return np.cumsum(starts)
    places = [begin + start for begin, item in zip(begins.tolist(), lines, strict=True) for start in boundaries(item)]
    starts[places] = True
    return np.cumsum(starts)


def _word_starts(
    word: NDArray[np.int32] | None,
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    starts_sentence: NDArray[np.bool_],
) -> tuple[NDArray[np.bool_], int]:
    """Which tokens start a word, and how many straddle two."""
    if word is None:
        return np.ones(first.size, dtype=bool), 0
    of_first, of_last = word[first], word[last]
    starts = starts_sentence.copy()
    starts[1:] |= of_first[1:] != of_last[:-1]
    return starts, int(np.count_nonzero(of_first != of_last))


def _changes(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Where a value differs from the one before it; the first always does."""
    changed = np.ones(values.size, dtype=bool)
    changed[1:] = values[1:] != values[:-1]
    return changed
