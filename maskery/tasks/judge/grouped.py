"""The figures of every group of examples: those with the same value in a column, such as the heuristic of HANS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maskery.tasks.examples import Examples
from maskery.tasks.judge.measure import HEADLINES, Judgement, judge
from maskery.tasks.questions import Predicted


def grouped(
    examples: Examples, gold: Sequence[Any], found: Predicted, labels: Sequence[str]
) -> dict[str, dict[str, Judgement]]:
    """Column -> its value, in the order of values -> the figures of its examples."""
    made: dict[str, dict[str, Judgement]] = {}
    for at, name in enumerate(examples.by):
        places: dict[str, list[int]] = {}
        for number, example in enumerate(examples):
            places.setdefault(example.by[at], []).append(number)
        made[name] = {value: _of(examples.task, places[value], gold, found, labels) for value in sorted(places)}
    return made


def _of(task: str, places: list[int], gold: Sequence[Any], found: Predicted, labels: Sequence[str]) -> Judgement:
    return judge(
        task,
        [gold[at] for at in places],
        [found.answers[at] for at in places],
        labels=labels,
        probabilities=None if found.probabilities is None else np.asarray(found.probabilities)[places],
        groups=None if found.groups is None else [found.groups[at] for at in places],
    )


def group_lines(judgement: Judgement, by: str) -> tuple[list[str], list[list[float | str]]]:
    """Headings and lines for a table: the group, n, and each headline metric with the bounds of its interval."""
    names = HEADLINES[judgement.task]
    heads = [by, "n", *(head for name in names for head in (name, "95 % from", "to"))]
    lines: list[list[float | str]] = []
    for value, each in judgement.groups[by].items():
        figures = [figure for name in names for figure in (each.metrics[name], *each.intervals[name])]
        lines.append([value or "(empty)", f"{each.n:,}", *figures])
    return heads, lines
