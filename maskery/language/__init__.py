"""The language of results, pages and pictures: English, or Chinese. Help and errors are English.

A text is written in English where it is used, `words.phrase("{n} rows").format(n=3)`; the English sentence is the key
of the Chinese one in `chinese`. Pages with many sentences have a catalogue of their own, one object a language, and
`catalogue` finds the right one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from maskery.errors import UnknownName
from maskery.language.chinese import CHINESE

T = TypeVar("T")
LANGUAGES = ("en", "zh")
_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
"""As POSIX orders them: the first that is set counts."""


def chosen(lang: str | None = None) -> str:
    """The language that is asked for (a region plays no part: zh-Hans), or else that of the environment."""
    if lang is None:
        setting = next(filter(None, map(os.environ.get, _VARIABLES)), "")
        return "zh" if setting.lower().startswith("zh") else "en"
    name = lang.partition("-")[0].partition("_")[0].lower()
    if name not in LANGUAGES:
        raise UnknownName("language", lang, LANGUAGES)
    return name


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


def phrases(lang: str | None = None) -> Phrases:
    return Phrases(chosen(lang))


ENGLISH = Phrases("en")
