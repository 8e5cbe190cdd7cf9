"""Tags of words to spans of characters: BIO, BMES, BIOES, BILOU, and files whose spans begin with I-.

What opens a span without its B- (an I-, M- or E- after O, or after another kind) opens it all the same, as CoNLL's own
scorer reads it; what is not closed by E- or S- is closed where it ends. Both are counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from maskery.tasks.examples import Span

_PREFIXED = re.compile(r"([BIESMLU])[-_](\S+)")
_BARE = re.compile(r"[BIESMLU]")
BARE_KIND = "word"
"""The kind of spans whose tags name none, as those of word segmentation."""
_OPENS, _INSIDE, _CLOSES, _SINGLE = "B", "IM", "EL", "SU"
_UNSPACED = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")


class UnknownTag(Exception):
    """A tag outside all schemes."""


def parted(tag: str) -> tuple[str, str]:
    """Prefix and kind; ("O", "") outside."""
    if tag in ("O", "o"):
        return "O", ""
    found = _PREFIXED.fullmatch(tag)
    if found:
        return found[1], found[2]
    if _BARE.fullmatch(tag):
        return tag, BARE_KIND
    raise UnknownTag(tag)


def scheme_of(prefixes: set[str]) -> str:
    for name, letters in (("BIO", "BIO"), ("BMES", "BMESO"), ("BIOES", "BIOES"), ("BILOU", "BILOU")):
        if prefixes <= set(letters):
            return name
    return "mixed"


def spans_of(tags: Sequence[str], words: Sequence[tuple[int, int]], counts: Counter[str]) -> tuple[Span, ...]:
    """The spans that the tags of one sentence mark."""
    spans: list[Span] = []
    open_kind, start, stop = "", 0, 0
    letters = {parted(tag)[0] for tag in tags}
    closing = bool(letters & set(_CLOSES))
    for tag, (begin, end) in zip(tags, words, strict=True):
        letter, kind = parted(tag)
        continues = letter in _INSIDE + _CLOSES and kind == open_kind
        if open_kind and not continues:
            spans.append(Span(start, stop, open_kind))
            counts["unclosed"] += closing
            open_kind = ""
        if letter == "O":
            continue
        if not continues:
            counts["unopened"] += letter in _INSIDE + _CLOSES
            open_kind, start = kind, begin
        stop = end
        if letter in _CLOSES + _SINGLE:
            spans.append(Span(start, stop, open_kind))
            open_kind = ""
    if open_kind:
        counts["unclosed"] += closing
        spans.append(Span(start, stop, open_kind))
    return tuple(spans)


def is_unspaced(sentences: Sequence[Sequence[str]]) -> bool:
    """Whether the tokens are mostly Chinese or Japanese, which have no spaces between words."""
    tokens = [token for sentence in sentences[:2000] for token in sentence]
    return 2 * sum(_UNSPACED.search(token) is not None for token in tokens) > len(tokens)


def joined(tokens: Sequence[str], unspaced: bool) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The text of a sentence, and where its tokens stand in it. In Chinese only words of letters have spaces."""
    pieces: list[str] = []
    words = []
    place, before = 0, ""
    for token in tokens:
        glued = unspaced and not (max(len(before), len(token)) > 1 and _letters(before[-1:]) and _letters(token[:1]))
        if before and not glued:
            pieces.append(" ")
            place += 1
        pieces.append(token)
        words.append((place, place + len(token)))
        place += len(token)
        before = token
    return "".join(pieces), tuple(words)


def _letters(sign: str) -> bool:
    return sign.isascii() and sign.isalnum()
