"""Word vectors in the text form of word2vec -> for each word the nearest few.

A line is a word and its numbers, parted by spaces; a first line with the number of words and of numbers may stand
before them. Words are compared by the cosine of their vectors, within classes: only a word with as many tokens can
take the place of another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maskery.errors import TextError
from maskery.knowledge.lines import Progress
from maskery.knowledge.synonyms import Group, Line

NEAREST = 10
"""Neighbours of a word that are taken as similar."""
MOST = 100_000
"""Words that are read: files begin with the commonest, and the work grows with the square."""
_BLOCK = 512
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """V words with unit vectors (V,D)."""

    words: list[str]
    table: NDArray[np.float32]
    more: bool
    """The file goes on behind the words that were read."""


def looks_like_vectors(lines: list[Line]) -> bool:
    """By the first two filled lines."""
    parts = [line.split() for _, line in lines[:2]]
    if len(parts) == 2 and _is_header(parts[0]):
        return len(parts[1]) > 1 and all(map(_NUMBER.fullmatch, parts[1][1:]))
    return bool(parts) and len(parts[0]) > 2 and all(map(_NUMBER.fullmatch, parts[0][1:]))


def _is_header(parts: list[str]) -> bool:
    return len(parts) == 2 and all(part.isascii() and part.isdigit() for part in parts)


def read_vectors(lines: Iterable[Line], path: Path, progress: Progress | None = None) -> Vectors:
    """The first `MOST` words."""
    lines = iter(lines)
    number, text = next(lines)
    header = text.split() if _is_header(text.split()) else None
    if header is None:
        lines = chain([(number, text)], lines)
    width = int(header[1]) if header else len(text.split()) - 1
    seen: dict[str, int] = {}
    rows = []
    for number, text in islice(lines, MOST):
        word, row = _vector(text, width, path, number)
        if word in seen:
            raise TextError(
                f"{word!r} is given again: it stands in line {seen[word]}",
                file=path,
                line=number,
                repair="remove one of the lines",
            )
        seen[word] = number
        rows.append(row)
        if progress is not None and len(rows) % 1000 == 0:
            progress(len(rows), min(MOST, int(header[0])) if header else MOST)
    more = next(lines, None) is not None
    if header and not more and int(header[0]) != len(rows):
        raise TextError(
            f"the first line says {header[0]} words, the file has {len(rows)}",
            file=path,
            line=1,
            repair="fetch the file anew if it was cut, or correct the line",
        )
    if len(rows) < 2:
        raise TextError("there is only one word", file=path, repair="give a file with the vectors of many words")
    table: NDArray[np.float32] = np.stack(rows)
    length = np.linalg.norm(table, axis=1, keepdims=True)
    table /= np.where(length > 0, length, 1)
    return Vectors(words=list(seen), table=table, more=more)


def _vector(text: str, width: int, path: Path, number: int) -> tuple[str, NDArray[np.float32]]:
    word, *parts = text.split()
    if len(parts) != width:
        cause = f"{word!r} has {len(parts)} numbers, the file has vectors of {width}"
        raise TextError(cause, file=path, line=number, repair="mend or remove the line")
    try:
        row = np.array(parts, dtype=np.float64)
    except ValueError:
        cause = "a word and its numbers were expected"
        raise TextError(cause, file=path, line=number, repair="mend or remove the line") from None
    if not np.isfinite(row).all():
        cause = f"the vector of {word!r} holds a value that is no number (nan or inf)"
        raise TextError(cause, file=path, line=number, repair="train the vectors anew, or remove the line")
    # Only the direction counts; with no value above one, nothing overflows.
    return word, (row / (np.abs(row).max(initial=0) or 1)).astype(np.float32)


def neighbours(vectors: Vectors, kind: NDArray[np.int64], progress: Progress | None = None) -> Iterator[Group]:
    """For each word the nearest of its class, nearest first; a word alone in its class is a group of one.

    `kind` (V,): the classes; a word of a negative one takes no part."""
    done, whole = 0, int((kind >= 0).sum())
    for each in np.unique(kind[kind >= 0]):
        mine = np.flatnonzero(kind == each)
        many = min(NEAREST, len(mine) - 1)
        for start in range(0, len(mine), _BLOCK):
            block = mine[start : start + _BLOCK]
            for place, near in zip(block, _nearest(vectors.table, block, mine, many), strict=True):
                yield [vectors.words[place], *(vectors.words[other] for other in near)], False
            if progress is not None:
                progress(done + start + len(block), whole)
        done += len(mine)


def _nearest(
    table: NDArray[np.float32], block: NDArray[np.int64], mine: NDArray[np.int64], many: int
) -> NDArray[np.int64]:
    """(len(block), many) words of `mine` by descending cosine, a word itself left out."""
    near = table[block] @ table[mine].T
    near[mine[None] == block[:, None]] = -2
    best = np.argpartition(-near, max(0, many - 1), axis=1)[:, :many]
    order = np.argsort(-np.take_along_axis(near, best, axis=1), axis=1, kind="stable")
    nearest: NDArray[np.int64] = mine[np.take_along_axis(best, order, axis=1)]
    return nearest
