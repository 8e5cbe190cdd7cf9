"""Which characters of its text a token stands for, to the character.

Tokenizers count a space as part of the word behind it, and forget characters that their normaliser takes away or joins:
of `é` written as e and an accent they tell the e. Here a token has no space at its ends (unless it is nothing else),
and ends behind the accents, joiners and vowel signs that belong to its last character and to no other token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

_JOINER = "\u200d"
_PARTS = ((0x1160, 0x11FF), (0xD7B0, 0xD7FB), (0x1F3FB, 0x1F3FF), (0xE0020, 0xE007F))
"""Korean vowels and endings, colours of skin, tags of flags: characters that go with the one before them."""
_CHARACTERS = 0x110000


def goes_with_the_one_before(character: str) -> bool:
    code = ord(character)
    return category(character)[0] == "M" or character == _JOINER or any(a <= code <= b for a, b in _PARTS)


def exact(
    texts: Sequence[str], lengths: NDArray[np.int64], start: NDArray[np.int64], stop: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Where the tokens of texts that stand end to end begin and end in their texts; `lengths`: tokens of each text."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le"), dtype=np.uint32)
    size = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    base = np.repeat(np.cumsum(size) - size, lengths)
    end_of_text = np.repeat(np.cumsum(size), lengths)
    start, stop = _without_space(codes, start + base, stop + base)
    following = np.concatenate((start[1:], [0])) if len(start) else start
    last = np.zeros(len(start), dtype=bool)
    last[np.cumsum(lengths)[lengths > 0] - 1] = True
    room = np.where(last, end_of_text, np.maximum(following, stop))
    stop = np.minimum(_next(~_among(codes, goes_with_the_one_before))[stop], room)
    return (start - base).astype(np.int32), (stop - base).astype(np.int32)


def _without_space(
    codes: NDArray[np.uint32], start: NDArray[np.int64], stop: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    ink = ~_among(codes, str.isspace)
    first, last = _next(ink)[start], _last(ink)[stop]
    holds = first < stop
    return np.where(holds, first, start), np.where(holds, last, stop)


def _among(codes: NDArray[np.uint32], kind: Callable[[str], bool]) -> NDArray[np.bool_]:
    """(N,) whether each character is of a kind; asked once for each that occurs."""
    table = np.zeros(_CHARACTERS, dtype=bool)
    seen = np.flatnonzero(np.bincount(codes, minlength=1))
    table[seen] = [kind(chr(code)) for code in seen]
    return table[codes]


def _next(true: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(N+1,) the first place from each on where it is true; N where there is none."""
    places = np.where(np.append(true, True), np.arange(len(true) + 1), len(true))
    return np.minimum.accumulate(places[::-1])[::-1]


def _last(true: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(N+1,) one behind the last place before each where it is true; 0 where there is none."""
    places = np.where(true, np.arange(1, len(true) + 1), 0)
    return np.maximum.accumulate(np.concatenate(([0], places)))
