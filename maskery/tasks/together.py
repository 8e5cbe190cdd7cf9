"""Several models of one task as one: their probabilities, or their scores, are averaged. Families may differ.

A folder may be several models: its task.toml names them (`fused`), and they lie in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maskery import hub
from maskery.errors import CheckpointError, InputError
from maskery.tasks.base import AnyTaskModel
from maskery.tasks.examples import Examples
from maskery.tasks.model import TASK_FILE, TaskModel, read_task
from maskery.tasks.questions import SURE, Predicted
from maskery.tasks.settings import TaskConfig

CLASSES, SCORES = ("classify", "pair", "multilabel", "choice"), ("regress", "rank")
"""Tasks whose probabilities, and whose scores, can be averaged."""


@dataclass(frozen=True)
class Together:
    """Models that answer as one; the first one's labels are theirs."""

    config: TaskConfig
    models: tuple[AnyTaskModel, ...]

    def predict(self, examples: Examples, say: Callable[[str], None]) -> Predicted:
        return averaged([(each.config, each.predict(examples, say)) for each in self.models])


Answering = AnyTaskModel | Together


def models_of(answering: Answering) -> tuple[AnyTaskModel, ...]:
    return answering.models if isinstance(answering, Together) else (answering,)


def first_of(answering: Answering) -> AnyTaskModel:
    """The one that tells how examples are read and which answers are right."""
    return models_of(answering)[0]


def opened(folder: str | Path) -> Answering:
    """What a fine-tuning wrote, one model or several; or a folder of Hugging Face's with a task's head."""
    folder = Path(folder)
    if not folder.exists():
        folder = hub.in_cache(str(folder)) or folder
    config = read_task(folder) if (folder / TASK_FILE).is_file() else None
    if config is None or not config.fused:
        return TaskModel.load(folder)
    for name in config.fused:
        if not (folder / name / TASK_FILE).is_file():
            raise CheckpointError(
                f"{TASK_FILE} names {name}, which is not there",
                where=folder,
                repair="put back all that the fine-tuning wrote; one of the others answers alone, too",
            )
    return Together(config, tuple(TaskModel.load(folder / name) for name in config.fused))


def require_average(task: str, where: str | Path | None = None) -> None:
    if task not in (*CLASSES, *SCORES):
        raise InputError(f"answers of {task} cannot be averaged", where=where, repair="give one run after the other")


def require_alike(runs: Sequence[tuple[str | Path, TaskConfig]]) -> None:
    """Refuse runs that do not answer the same question; what differs is told."""
    (first, config), *others = runs
    if others:
        require_average(config.task, first)
    for path, other in others:
        if other.task != config.task:
            cause = f"its task is {other.task}, that of {first} is {config.task}"
            raise InputError(cause, where=path, repair="runs of one task are averaged")
        if len(other.columns.text) != len(config.columns.text) or other.columns.meta != config.columns.meta:
            cause = f"it reads {_reads(other)}, while {first} reads {_reads(config)}"
            raise InputError(cause, where=path, repair="runs that read the same columns are averaged")
        if config.task != "choice" and set(other.labels) != set(config.labels):
            raise InputError(
                f"its labels are others than those of {first}: {_difference(config.labels, other.labels)}",
                where=path,
                repair="runs that learned the same labels are averaged",
            )


def _reads(config: TaskConfig) -> str:
    return ", ".join((*config.columns.text, *config.columns.meta))


def _difference(one: Sequence[str], other: Sequence[str], most: int = 6) -> str:
    parts = [
        f"{what} {', '.join(found[:most])}{' ...' if len(found) > most else ''}"
        for what, found in (
            ("it lacks", [name for name in one if name not in other]),
            ("it has besides", [name for name in other if name not in one]),
        )
        if found
    ]
    return "; ".join(parts)


def averaged(runs: Sequence[tuple[TaskConfig, Predicted]]) -> Predicted:
    """The answers of all runs as those of one, in the first one's order of labels."""
    (config, first), *others = runs
    if not others:
        return first
    if config.task in SCORES:
        scores = np.mean([each.answers for _, each in runs], axis=0)
        return Predicted(answers=scores.tolist(), groups=first.groups, notes=_notes(runs))
    chances = np.mean([_in_order(config, own, each) for own, each in runs], axis=0)
    if config.task == "multilabel":
        sets = [frozenset(config.labels[at] for at in np.flatnonzero(line >= SURE)) for line in chances]
        return Predicted(answers=sets, probabilities=chances, notes=_notes(runs))
    best = chances.argmax(axis=1).tolist()
    answers = [str(at) if config.task == "choice" else config.labels[at] for at in best]
    return Predicted(answers=answers, probabilities=chances, notes=_notes(runs))


def _in_order(config: TaskConfig, own: TaskConfig, predicted: Predicted) -> NDArray[np.float64]:
    assert predicted.of_classes is not None
    chances: NDArray[np.float64] = np.asarray(predicted.of_classes, dtype=np.float64)
    return chances if config.task == "choice" else chances[:, [own.labels.index(name) for name in config.labels]]


def _notes(runs: Sequence[tuple[TaskConfig, Predicted]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for _, each in runs for note in each.notes))
