"""Finished English sentences into Chinese ones: a pattern with holes in braces finds what was filled in.

`{n}`, `{n1}`, `{n2}` hold a number, `{w}` one word, others any text. What was filled in is translated itself where it
is known, so that sentences may stand in each other.
"""

from __future__ import annotations

import re
from functools import cache

from maskery.language.lines import LINES

_HOLE = re.compile(r"\{(\w+)\}")
_NUMBER = re.compile(r"n\d*")


def translated(english: str) -> str:
    """The Chinese sentence, or the English one where there is none."""
    before = english[: len(english) - len(english.lstrip())]
    text = english[len(before) :]
    return before + (_known(text) or english[len(before) :])


def _known(text: str) -> str | None:
    if text in LINES:
        return LINES[text]
    for pattern, chinese in _patterns():
        found = pattern.fullmatch(text)
        if found:
            return chinese.format(**{name: translated(value) for name, value in found.groupdict().items()})
    return _in_parts(text, "; ", "；")


def _in_parts(text: str, sign: str, instead: str) -> str | None:
    """Sentences in a row; one that is not known stays as it is."""
    own = text.split(sign)
    parts = [_known(part) for part in own] if len(own) > 1 else []
    return instead.join(part or english for part, english in zip(parts, own, strict=True)) if any(parts) else None


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """The most telling first: those with the most text of their own."""
    ordered = sorted((key for key in LINES if "{" in key), key=lambda key: -len(_HOLE.sub("", key)))
    return tuple((_pattern(key), LINES[key]) for key in ordered)


def _pattern(english: str) -> re.Pattern[str]:
    pieces = _HOLE.split(english)
    return re.compile("".join(_hole(each) if at % 2 else re.escape(each) for at, each in enumerate(pieces)), re.DOTALL)


def _hole(name: str) -> str:
    return f"(?P<{name}>{_form(name)})"


def _form(name: str) -> str:
    if _NUMBER.fullmatch(name):
        return r"[+-]?\d[\d,.]*(?:e[+-]?\d+)?"
    return r"\S+" if name == "w" else ".+?"
