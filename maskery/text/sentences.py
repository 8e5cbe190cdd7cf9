"""Sentences of one line: slices that tile it, so no character is lost.

Full-width enders (。！？；) end a sentence wherever they stand; half-width ! ? and … do so beside Han characters. In
spaced text an ender must be followed by white space and something that can open a sentence (not a small letter), and a
full stop must not belong to an abbreviation, an initial or a list number. Closing quotes and brackets, and the white
space after them, stay with the sentence that they end.
"""

from __future__ import annotations

import re
from itertools import pairwise

from maskery.text.characters import character_class

_WIDE = "。！？；｡"
_SPACED = "।॥؟۔"
_CLOSERS = "”’\"'」』）)】》〉］\\]｝}»›〗〕＂＇"
_OPENERS = frozenset("“‘\"'「『（(【《〈［[｛{«‹〖〔¿¡＂＇")
_CANDIDATE = re.compile(rf"([{_WIDE}{_SPACED}…!?.]+)[{_CLOSERS}]*(\s*)")
_HAS_WIDE = re.compile(f"[{_WIDE}]")
_HAN = re.compile(character_class((0x3040, 0x30FF)))
"""Han characters and kana."""
_LAST_WORD = re.compile(r"[^\W\d_]+(?:\.[^\W\d_]+)*\Z")
_REACH = 16
"""How far before a full stop its word is looked for."""

_TITLES = re.compile(
    "mr|mrs|ms|mx|messrs|dr|prof|st|rev|hon|gen|col|capt|lt|sgt|cpl|maj|adm|cmdr|gov|sen|rep|pres|mt|ft|fr|"
    "vs|cf|ca|approx|al|eds|viz|ibid|mme|mlle"
)
_BEFORE_NUMBERS = re.compile(
    "no|nos|p|pp|vol|vols|fig|figs|eq|ch|sec|art|op|v|c|n|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec"
)


def boundaries(text: str) -> list[int]:
    """Where each sentence starts; the first is 0, the last one ends with the text."""
    if not text:
        return []
    found = [0]
    for match in _CANDIDATE.finditer(text):
        end = match.end()
        if end < len(text) and _ends(text, match, found[-1], end):
            found.append(end)
    return found


def split(text: str) -> list[str]:
    """The sentences themselves; joined, they are the text."""
    found = [*boundaries(text), len(text)]
    return [text[start:end] for start, end in pairwise(found)]


def _ends(text: str, match: re.Match[str], begin: int, end: int) -> bool:
    marks, gap = match[1], match[2]
    if _HAS_WIDE.search(marks):
        return True
    after = text[end]
    if not gap:
        before = text[match.start() - 1] if match.start() else ""
        return marks.strip(".") != "" and bool(_HAN.match(before) or _HAN.match(after))
    if after not in _OPENERS and (not after.isalnum() or after.islower()):
        return False
    return marks != "." or not _abbreviated(text, match.start(), begin, after)


def _abbreviated(text: str, stop: int, begin: int, after: str) -> bool:
    """Whether the full stop at `stop` belongs to the word before it."""
    found = _LAST_WORD.search(text[max(begin, stop - _REACH) : stop])
    if found is None:
        return text[begin:stop].strip().isdigit()
    word = found[0]
    if "." in word or (len(word) == 1 and word.isupper()):
        return True
    word = word.lower()
    return bool(_TITLES.fullmatch(word) or (after.isdigit() and _BEFORE_NUMBERS.fullmatch(word)))
