"""Which characters of a text get a piece: counted before training, chosen by frequency, numbered by code point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from maskery.text.characters import Kind, codes, kinds

Counts = NDArray[np.int64]
_CODE_POINTS = 0x11_0000


def blocks(lines: Iterable[str], rust: RustTokenizer) -> Iterator[str]:
    """Normalised lines, joined by the thousand: few calls, bounded memory."""
    walk = iter(lines)
    while block := list(islice(walk, 1000)):
        text = "\n".join(block)
        yield text if rust.normalizer is None else rust.normalizer.normalize_str(text)


def count(texts: Iterable[str]) -> Counts:
    """How often each code point stands in the texts; white space is not counted."""
    total = np.zeros(_CODE_POINTS, dtype=np.int64)
    for text in texts:
        points = codes(text)
        total += np.bincount(points[kinds(points) != Kind.SPACE], minlength=_CODE_POINTS)
    return total


def count_in_words(texts: Iterable[str]) -> tuple[Counts, Counts]:
    """How often each code point begins one of BERT's words, and how often it continues one."""
    first, later = np.zeros(_CODE_POINTS, dtype=np.int64), np.zeros(_CODE_POINTS, dtype=np.int64)
    for text in texts:
        points = codes(text)
        if not points.size:
            continue
        alone, visible = _punctuation()[points], kinds(points) != Kind.SPACE
        begins = np.ones(points.size, dtype=bool)
        begins[1:] = alone[1:] | alone[:-1] | ~visible[:-1]
        first += np.bincount(points[begins & visible], minlength=_CODE_POINTS)
        later += np.bincount(points[~begins & visible], minlength=_CODE_POINTS)
    return first, later


def choose(total: Counts, cost: Counts, room: int) -> tuple[list[str], int]:
    """The commonest characters until the room is full, by code point; and how many had no room."""
    ranked = np.argsort(-total, kind="stable")[: int(np.count_nonzero(total))]
    fits = int(np.searchsorted(np.cumsum(cost[ranked]), room, side="right"))
    return [chr(point) for point in np.sort(ranked[:fits]).tolist()], len(ranked) - fits


@cache
def _punctuation() -> NDArray[np.bool_]:
    """What the pre-tokenizer sets apart, asked of itself: its Unicode tables may be older or newer than Python's."""
    table = np.zeros(_CODE_POINTS, dtype=bool)
    asked = "a".join(chr(code) for code in range(0x2_0000) if not 0xD800 <= code < 0xE000)
    for piece, _ in BertPreTokenizer().pre_tokenize_str(asked):
        if len(piece) == 1 and piece != "a":
            table[ord(piece)] = True
    return table
