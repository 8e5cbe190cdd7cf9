"""The worst errors: what a model was surest of and had wrong, with its text and its place in the file.

Without chances the order is by how wrong an answer is: the distance of scores, the spans missed or invented, what is
missing to F1, the score of a wrong candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maskery.errors import place
from maskery.tasks.examples import Answer, Example, Span
from maskery.tasks.judge.answers import answer_scores, found_language
from maskery.tasks.judge.marked import Marks, marks_of
from maskery.tasks.judge.tally import require_as_many
from maskery.tasks.judge.written import text_scores

_MARKED = ("tag", "qa")
"""Tasks whose answers are places in the first text."""


@dataclass(frozen=True)
class Mistake:
    example: Example
    gold: str
    predicted: str
    badness: float
    """How wrong, by the measure of the task; of classes 1."""
    chance: float | None
    """How sure the model was, if it said so."""
    marks: Marks = ()
    """Places of right and predicted spans in the first text."""

    @property
    def place(self) -> str:
        """file:line, or the example's own name where it has none."""
        found = self.example
        return place(found.file, found.line) if found.file else found.guid

    def plain(self) -> dict[str, Any]:
        return {
            "guid": self.example.guid,
            "place": self.place,
            "texts": list(self.example.texts),
            "gold": self.gold,
            "predicted": self.predicted,
            "probability": self.chance,
        }


def worst_mistakes(
    task: str,
    examples: Sequence[Example],
    gold: Sequence[Any],
    predicted: Sequence[Any],
    chances: ArrayLike | None = None,
    most: int = 20,
) -> list[Mistake]:
    """Wrong answers, the surest first; `chances` are those of what was predicted."""
    require_as_many(gold, predicted)
    require_as_many(gold, examples)
    badness = np.array(_BADNESS.get(task, _differs)(gold, predicted), dtype=np.float64)
    sure = None if chances is None else np.asarray(chances, dtype=np.float64)
    wrong = np.flatnonzero(badness > 0)
    keys = badness if sure is None else sure
    order = wrong[np.argsort(-keys[wrong], kind="stable")][:most]
    return [
        Mistake(
            examples[at],
            answer_text(gold[at], examples[at]),
            answer_text(predicted[at], examples[at]),
            float(badness[at]),
            None if sure is None else float(sure[at]),
            marks_of(examples[at].texts[0], gold[at], predicted[at]) if task in _MARKED else (),
        )
        for at in order.tolist()
    ]


def _differs(gold: Sequence[Any], predicted: Sequence[Any]) -> list[float]:
    return [float(one != other) for one, other in zip(gold, predicted, strict=True)]


def _distance(gold: Sequence[float], predicted: Sequence[float]) -> list[float]:
    return [abs(one - other) for one, other in zip(gold, predicted, strict=True)]


def _wrongly_high(gold: Sequence[float], predicted: Sequence[float]) -> list[float]:
    """Wrong candidates by their score."""
    least = min(predicted)
    return [1 + score - least if relevance <= 0 else 0.0 for relevance, score in zip(gold, predicted, strict=True)]


def _apart(gold: Sequence[Any], predicted: Sequence[Any]) -> list[float]:
    return [float(len(set(one) ^ set(other))) for one, other in zip(gold, predicted, strict=True)]


def _answers(gold: Sequence[Any], predicted: Sequence[str]) -> list[float]:
    texts = [[each.text if isinstance(each, Answer) else each for each in answers] for answers in gold]
    language = found_language(texts)
    return [1 - answer_scores(right, given, language)[1] for right, given in zip(texts, predicted, strict=True)]


def _written(gold: Sequence[Any], predicted: Sequence[str]) -> list[float]:
    texts = [[each] if isinstance(each, str) else list(each) for each in gold]
    return [1 - text_scores(right, given)[1] for right, given in zip(texts, predicted, strict=True)]


_BADNESS: Mapping[str, Callable[[Sequence[Any], Sequence[Any]], list[float]]] = {
    "regress": _distance,
    "rank": _wrongly_high,
    "multilabel": _apart,
    "tag": _apart,
    "qa": _answers,
    "seq2seq": _written,
}


def answer_text(answer: Any, example: Example) -> str:
    """Any kind of answer in a line. The names of choices are followed by what they stand for."""
    if example.choices and isinstance(answer, int | np.integer):
        answer = str(answer)
    if isinstance(answer, str):
        number = int(answer) if answer.isascii() and answer.isdigit() else -1
        return f"{answer}: {example.choices[number]}" if 0 <= number < len(example.choices) else answer or "–"
    if isinstance(answer, float | int | np.number):
        return f"{answer:.4g}"
    if isinstance(answer, Span):
        return f"{example.texts[0][answer.start : answer.stop]} [{answer.kind}]"
    if isinstance(answer, Answer):
        return answer.text
    parts = sorted(answer, key=_order)
    return " · ".join(dict.fromkeys(answer_text(each, example) for each in parts)) or "–"


def _order(part: Any) -> tuple[int, str]:
    return (part.start, "") if isinstance(part, Span | Answer) else (0, str(part))
