"""What each character is, by one table over code points: a whole chunk of text is classified by one numpy lookup."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from functools import cache

import numpy as np
from numpy.typing import NDArray

from maskery.errors import InputError

_HALF = re.compile("[\ud800-\udfff]")


class Kind(IntEnum):
    SPACE = 0
    WORD = 1
    """Letters and digits that join into runs."""
    HAN = 2
    SINGLE = 3
    """Scripts without spaces for which there is no dictionary here: every character is a word."""
    MARK = 4
    """Belongs to the character before it: combining marks, skin tones, joiners, control characters."""
    APOSTROPHE = 5
    OTHER = 6
    """Punctuation and symbols: every one is a word."""


_CAPITAL = 128
_APOSTROPHES = "'’ʼ＇"
JOINER = 0x200D
"""Zero width: what stands before and behind it is one sign."""
FLAG_LETTERS = (0x1_F1E6, 0x1_F1FF)
"""Two of these make a flag."""
_LISTED = 0x3_2400
"""Above this code point there are only tags, private use and unassigned ones."""
HAN = (
    (0x3005, 0x3007),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x2_0000, 0x2_FA1F),
    (0x3_0000, 0x3_23AF),
)
"""Where Han characters stand: ideographs, and the signs 々〆〇 that are written like them."""
_SKIN_TONES = (0x1_F3FB, 0x1_F3FF)
_SINGLE = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x309F),  # Hiragana
)


_BY_CATEGORY = {"L": Kind.WORD, "N": Kind.WORD, "M": Kind.MARK, "Z": Kind.SPACE, "C": Kind.MARK}
"""By the first letter of the Unicode category; all others are `OTHER`."""


def _entry(category: str) -> int:
    if category in ("Co", "Cn"):
        return Kind.OTHER
    kind = _BY_CATEGORY.get(category[0], Kind.OTHER)
    return kind | _CAPITAL if category in ("Lu", "Lt") else kind


@cache
def _table() -> NDArray[np.uint8]:
    table = np.full(0x11_0000, Kind.OTHER, dtype=np.uint8)
    categories = [unicodedata.category(chr(code)) for code in range(_LISTED)]
    entries = {category: _entry(category) for category in set(categories)}
    table[:_LISTED] = [entries[category] for category in categories]
    table[0xE_0000:0xE_0200] = Kind.MARK
    table[_SKIN_TONES[0] : _SKIN_TONES[1] + 1] = Kind.MARK
    for ranges, kind in ((HAN, Kind.HAN), (_SINGLE, Kind.SINGLE)):
        for low, high in ranges:
            part = table[low : high + 1]
            part[part == Kind.WORD] = kind
    table[[*range(9, 14), *range(28, 32), 0x85]] = Kind.SPACE
    table[[ord(sign) for sign in _APOSTROPHES]] = Kind.APOSTROPHE
    return table


def character_class(*more: tuple[int, int]) -> str:
    """A regular expression for one Han character, or one in the further ranges."""
    return "[" + "".join(f"{chr(low)}-{chr(high)}" for low, high in (*HAN, *more)) + "]"


def codes(text: str) -> NDArray[np.uint32]:
    """The code point of every character."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def kinds(code_points: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """The `Kind` of every character."""
    kind: NDArray[np.uint8] = _table()[code_points] & np.uint8(_CAPITAL - 1)
    return kind


def capitals(code_points: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Whether each character is an upper-case (or title-case) letter."""
    return _table()[code_points] >= _CAPITAL


@contextmanager
def readable_texts(texts: Sequence[str]) -> Iterator[None]:
    """What the library in Rust refuses, with the text to blame: half a character (bytes of an argument that are no
    UTF-8), and a regular expression of the tokenizer that gives up, which is a panic and no Exception."""
    try:
        yield
    except TypeError:
        for text in texts:
            if isinstance(text, str) and (half := _HALF.search(text)):
                cause = f"character {half.start() + 1} of a text is half a character, {half[0]!a}"
                raise InputError(cause, where=ascii(text[:40]), repair="give the text in UTF-8") from None
        raise
    except BaseException as error:
        if type(error).__module__ != "pyo3_runtime" and type(error) is not Exception:
            raise
        longest = max((text for text in texts if isinstance(text, str)), key=len, default="")
        raise InputError(
            f"the tokenizer cannot read a text: {error}",
            where=ascii(longest[:40])
            if len(texts) < 3
            else f"{len(texts):,} texts; the longest begins {longest[:40]!a}",
            repair="mend the tokenizer (a regular expression of its own, a piece that it lacks), or shorten the text",
        ) from None
