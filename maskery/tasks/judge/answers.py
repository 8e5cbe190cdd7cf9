"""Answers to questions about a text (qa): exact match and F1, as SQuAD and CMRC count them.

    en   SQuAD: small letters, no punctuation, no articles; F1 of the bags of words
    zh   CMRC 2018: small letters, without the signs that it names; F1 by the longest run of neighbours in both, where
         Chinese signs stand for themselves and other writing goes word by word

An example counts with the best of its right answers. One without any is right only if nothing is predicted (SQuAD 2);
where both sorts occur they are told apart as well: has_answer_f1, has_answer_em, and no_answer_accuracy (there F1 and
exact match are the same).
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from maskery.errors import UnknownName
from maskery.tasks.examples import Answer
from maskery.tasks.judge.common import common_run, f1, is_chinese, overlap_f1
from maskery.tasks.judge.tally import Numbers, Values, mean, ratio, require_as_many

Language = Literal["auto", "en", "zh"]
_LANGUAGES = ("auto", "en", "zh")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_CMRC_SIGNS = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SEGMENT = re.compile("[\u4e00-\u9fa5]|[^\\s\u4e00-\u9fa5]+")
_PLAIN_WORD = re.compile(r"\w+(?:[.,']\w+)*|[^\w\s]")


@dataclass(frozen=True)
class AnswerTally:
    exact: Numbers
    overlap: Numbers
    empty: Numbers
    """1 where the text has no answer."""
    language: str
    chosen: bool
    """Whether the language was found by itself."""

    @property
    def size(self) -> int:
        return len(self.exact)

    def values(self, weights: Numbers) -> Values:
        found = {"f1": mean(weights, self.overlap), "em": mean(weights, self.exact)}
        if self.empty.any() and not self.empty.all():
            there = weights @ (1 - self.empty)
            found["has_answer_f1"] = ratio(weights @ (self.overlap * (1 - self.empty)), there)
            found["has_answer_em"] = ratio(weights @ (self.exact * (1 - self.empty)), there)
            found["no_answer_accuracy"] = ratio(weights @ (self.exact * self.empty), weights @ self.empty)
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        rule = {"en": "as SQuAD does", "zh": "as CMRC does"}[self.language]
        told = [f"answers are compared {rule}" + (", by the writing of the right ones" if self.chosen else "")]
        if self.empty.any():
            none = int(self.empty.sum())
            have = "has" if none == 1 else "have"
            told.append(f"{none:,} of {self.size:,} {have} no answer: right if nothing is predicted")
        return tuple(told)


def answer_tally(
    gold: Sequence[Sequence[Answer | str]], predicted: Sequence[str], language: Language = "auto"
) -> AnswerTally:
    """Right answers of each example, none for a text without an answer; of a prediction "" says that there is none."""
    require_as_many(gold, predicted)
    if language not in _LANGUAGES:
        raise UnknownName("language of answers", language, _LANGUAGES)
    texts = [[each.text if isinstance(each, Answer) else each for each in answers] for answers in gold]
    used = found_language(texts) if language == "auto" else language
    pairs = [answer_scores(right, given, used) for right, given in zip(texts, predicted, strict=True)]
    exact, overlap = np.array(pairs, dtype=np.float64).T
    empty = np.array([not _said(right, used) for right in texts], dtype=np.float64)
    return AnswerTally(exact, overlap, empty, used, language == "auto")


def found_language(gold: Sequence[Sequence[str]]) -> str:
    """zh if most of the right answers have Chinese signs in them."""
    every = [text for answers in gold for text in answers]
    return "zh" if 2 * sum(map(is_chinese, every)) > len(every) else "en"


def answer_scores(gold: Sequence[str], predicted: str, language: str) -> tuple[float, float]:
    """Exact match and F1 with the best of the right answers."""
    right = _said(gold, language) or [""]
    given = normal_answer(predicted, language)
    return max(float(given == each) for each in right), max(_overlap(given, each, language) for each in right)


def _said(gold: Sequence[str], language: str) -> list[str]:
    return [normal for text in gold if (normal := normal_answer(text, language))]


def normal_answer(text: str, language: str) -> str:
    """What two answers have to share to be the same."""
    if language == "zh":
        return text.lower().strip().translate(_CMRC_SIGNS)
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def _overlap(one: str, other: str, language: str) -> float:
    if language == "en":
        return overlap_f1(one.split(), other.split())
    if not one or not other:
        return float(one == other)
    a, b = segments(one), segments(other)
    return f1(common_run(a, b), len(a), len(b))


def segments(text: str) -> list[str]:
    """Chinese signs one by one, the rest in words."""
    return [part for run in _SEGMENT.findall(text) for part in ([run] if len(run) == 1 else _PLAIN_WORD.findall(run))]
