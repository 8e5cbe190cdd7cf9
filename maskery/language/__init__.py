"""The language of results, pages and pictures: English, or Chinese. Help and errors are English.

A text is written in English where it is used, `words.phrase("{n} rows").format(n=3)`; the English sentence is the key
of the Chinese one in `chinese`. Pages with many sentences have a catalogue of their own, one object a language, and
`catalogue` finds the right one. Notes and remarks are made in English, logged and stored so (`result.json`), and turned
into Chinese where they are printed or drawn: `words.line("12 rows left out")`, by the patterns in `lines`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from maskery.errors import UnknownName
from maskery.language.chinese import CHINESE
from maskery.language.patterns import translated

T = TypeVar("T")
LANGUAGES = ("en", "zh")
_VARIABLES = ("MASKERY_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
"""The first that is set counts: our own, then as POSIX orders them."""
_spoken: str | None = None
"""Of this process, if somebody has settled it."""


def chosen(lang: str | None = None) -> str:
    """The language that is named (a region plays no part: zh-Hans), or else that of `speak`, or of the environment."""
    if lang is None:
        setting = next(filter(None, map(os.environ.get, _VARIABLES)), "")
        return _spoken or ("zh" if setting.lower().startswith("zh") else "en")
    name = lang.partition("-")[0].partition("_")[0].lower()
    if name not in LANGUAGES:
        raise UnknownName("language", lang, LANGUAGES)
    return name


def speak(lang: str | None) -> str | None:
    """From now on results are in this language where none is named; None: in that of the environment. Returned is the
    name as it is known."""
    global _spoken
    _spoken = None if lang is None else chosen(lang)
    return _spoken


def catalogue(lang: str, each: Mapping[str, T]) -> T:
    """The words of a language."""
    return each[chosen(lang)]


@dataclass(frozen=True)
class Phrases:
    """Sentences in one language."""

    lang: str

    def phrase(self, english: str) -> str:
        """The sentence, to be filled with `str.format`. Every one has its Chinese: a test looks for all."""
        return english if self.lang == "en" else CHINESE.get(english, english)

    def name(self, english: str) -> str:
        """A short name from a table of the code, such as a heading; one that has no Chinese stays as it is."""
        return english if self.lang == "en" else CHINESE.get(english, english)

    def line(self, english: str) -> str:
        """A finished English sentence, such as a note that is stored; one that is not known stays as it is."""
        return english if self.lang == "en" else translated(english)


def phrases(lang: str | None = None) -> Phrases:
    return Phrases(chosen(lang))


ENGLISH = Phrases("en")
