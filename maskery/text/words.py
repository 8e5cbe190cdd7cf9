"""Words of raw text, as a word number for every character: facts about the text, made before any token.

`auto` works on mixed text: runs of letters and digits with inner apostrophes (don't), one word for each punctuation
sign or symbol, jieba's words inside runs of Han characters (rjieba, with its model for unknown words). Combining marks
and skin tones stay with their base; signs held by zero-width joiners, and the two letters of a flag, are one. Thai,
Lao, Burmese, Khmer and Hiragana have no spaces and no dictionary here: a character is a word. A run of white space has
a number too, which no token with visible text ever takes. The words of a user's dictionary are kept whole.

A line feed separates everything, so the numbers inside a line do not depend on the lines around it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import rjieba
from numpy.typing import NDArray

from maskery.errors import InputError
from maskery.registry import Registry
from maskery.text.characters import FLAG_LETTERS, JOINER, Kind, codes, kinds
from maskery.text.dictionary import Dictionary

Segmenter = Callable[[str], "NDArray[np.int32] | None"]
"""Text -> the word number of every character, or None where nothing is known about words."""

SEGMENTERS: Registry[Callable[[str, Dictionary | None], NDArray[np.int32] | None]] = Registry(
    "word segmenter", {"auto": "maskery.text.words:auto", "none": "maskery.text.words:none"}
)


def segmenter(name: str, dictionary: Dictionary | None = None) -> Segmenter:
    """The segmenter of that name, with a user's words."""
    found = SEGMENTERS.get(name)
    if dictionary is not None and found is none:
        raise InputError("a dictionary has no use where no words are found", repair="leave out --words none")
    return lambda text: found(text, dictionary)


def none(text: str, dictionary: Dictionary | None = None) -> None:
    """No word facts: every token will count as a word."""


def auto(text: str, dictionary: Dictionary | None = None) -> NDArray[np.int32]:
    code_points = codes(text)
    if not code_points.size:
        return np.zeros(0, dtype=np.int32)
    kind = kinds(code_points)
    kind, attached = _attach_marks(kind)
    _join_apostrophes(kind)
    fresh = np.ones(kind.size, dtype=bool)
    fresh[1:] = (kind[1:] != kind[:-1]) | (kind[1:] == Kind.OTHER) | (kind[1:] == Kind.SINGLE)
    fresh &= ~attached & ~_joined_signs(code_points, kind)
    if dictionary is not None:
        edges = fresh | ((kind == Kind.HAN) & ~attached)
        for start, end in dictionary.find(text, edges):
            # A kind of its own keeps the Han characters beside the word out of it.
            kind[start:end] = Kind.OTHER
            fresh[start:end] = False
            fresh[start] = True
            fresh[end : end + 1] = True
    han = np.flatnonzero((kind == Kind.HAN) & ~attached)
    if han.size:
        cut = rjieba.cut if dictionary is None else dictionary.cut
        fresh[han[_han_starts(code_points, kind, han, cut)]] = True
    return np.cumsum(fresh, dtype=np.int32) - np.int32(1)


def _joined_signs(code_points: NDArray[np.uint32], kind: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Signs that continue the one before them: behind a joiner, and the second letter of a flag."""
    joined = np.zeros(kind.size, dtype=bool)
    joined[1:] = (code_points[:-1] == JOINER) & (kind[:-1] == Kind.OTHER) & (kind[1:] == Kind.OTHER)
    letter = (code_points >= FLAG_LETTERS[0]) & (code_points <= FLAG_LETTERS[1])
    if letter.any():
        place = np.arange(kind.size)
        before_run = np.maximum.accumulate(np.where(letter, -1, place))
        joined |= letter & ((place - before_run) % 2 == 0)
    return joined


def _attach_marks(kind: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Kinds in which a mark has taken that of its base, and which characters are so attached.

    Marks without a base, at the start or after white space, are a sign of their own.
    """
    mark = kind == Kind.MARK
    if not mark.any():
        return kind, mark
    base = np.maximum.accumulate(np.where(mark, -1, np.arange(kind.size)))
    stray = mark & ((base < 0) | (kind[base] == Kind.SPACE))
    after_mark = np.zeros(kind.size, dtype=bool)
    after_mark[1:] = mark[:-1]
    return np.where(stray, np.uint8(Kind.OTHER), kind[base]), mark & (~stray | after_mark)


def _join_apostrophes(kind: NDArray[np.uint8]) -> None:
    """An apostrophe between letters is part of the word, any other is a sign of its own."""
    at = np.flatnonzero(kind == Kind.APOSTROPHE)
    kind[at] = Kind.OTHER
    inner = at[(at > 0) & (at < kind.size - 1)]
    kind[inner[(kind[inner - 1] == Kind.WORD) & (kind[inner + 1] == Kind.WORD)]] = Kind.WORD


def _han_starts(
    code_points: NDArray[np.uint32], kind: NDArray[np.uint8], han: NDArray[np.int64], cut: Callable[[str], list[str]]
) -> NDArray[np.bool_]:
    """For each Han character whether jieba starts a word there: one call for all runs, parted by line feeds."""
    run = np.cumsum(kind[1:] != kind[:-1])
    run = np.concatenate(([0], run))[han]
    place = np.arange(han.size)
    place[1:] += np.cumsum(run[1:] != run[:-1])
    runs = np.full(int(place[-1]) + 1, ord("\n"), dtype="<u4")
    runs[place] = code_points[han]
    words = cut(runs.tobytes().decode("utf-32-le"))
    ends = np.cumsum(np.fromiter(map(len, words), dtype=np.int64, count=len(words)))
    begins = np.zeros(runs.size + 1, dtype=bool)
    begins[0] = True
    begins[ends] = True
    return begins[place]
