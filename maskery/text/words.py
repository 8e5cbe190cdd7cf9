"""Words of raw text, as a word number for every character: facts about the text, made before any token.

`auto` works on mixed text: runs of letters and digits with inner apostrophes (don't), one word for each punctuation
sign or symbol, jieba's words inside runs of Han characters (rjieba, with its model for unknown words). Combining marks
stay with their base. Thai, Lao, Burmese, Khmer and Hiragana have no spaces and no dictionary here: a character is a
word. A run of white space has a number too, which no token with visible text ever takes.

A line feed separates everything, so the numbers inside a line do not depend on the lines around it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import rjieba
from numpy.typing import NDArray

from maskery.registry import Registry
from maskery.text.characters import Kind, codes, kinds

Segmenter = Callable[[str], "NDArray[np.int32] | None"]
"""Text -> the word number of every character, or None where nothing is known about words."""

SEGMENTERS: Registry[Segmenter] = Registry(
    "word segmenter", {"auto": "maskery.text.words:auto", "none": "maskery.text.words:none"}
)


def none(text: str) -> None:
    """No word facts: every token will count as a word."""


def auto(text: str) -> NDArray[np.int32]:
    code_points = codes(text)
    if not code_points.size:
        return np.zeros(0, dtype=np.int32)
    kind = kinds(code_points)
    kind, attached = _attach_marks(kind)
    _join_apostrophes(kind)
    fresh = np.ones(kind.size, dtype=bool)
    fresh[1:] = (kind[1:] != kind[:-1]) | (kind[1:] == Kind.OTHER) | (kind[1:] == Kind.SINGLE)
    fresh &= ~attached
    han = np.flatnonzero((kind == Kind.HAN) & ~attached)
    if han.size:
        fresh[han[_han_starts(code_points, kind, han)]] = True
    return np.cumsum(fresh, dtype=np.int32) - np.int32(1)


starts = auto


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


def _han_starts(code_points: NDArray[np.uint32], kind: NDArray[np.uint8], han: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each Han character whether jieba starts a word there: one call for all runs, parted by line feeds."""
    run = np.cumsum(kind[1:] != kind[:-1])
    run = np.concatenate(([0], run))[han]
    place = np.arange(han.size)
    place[1:] += np.cumsum(run[1:] != run[:-1])
    runs = np.full(int(place[-1]) + 1, ord("\n"), dtype="<u4")
    runs[place] = code_points[han]
    words = rjieba.cut(runs.tobytes().decode("utf-32-le"), True)
    ends = np.cumsum(np.fromiter(map(len, words), dtype=np.int64, count=len(words)))
    begins = np.zeros(runs.size + 1, dtype=bool)
    begins[0] = True
    begins[ends] = True
    return begins[place]
