"""The metrics of runs as columns: what curves, summaries and comparisons read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskery import arguments
from maskery.errors import InputError
from maskery.train.folder import STATE, RunFolder

Source = str | os.PathLike[str]
"""A run: its folder's path, or what `maskery.pretrain` gave."""
Column = NDArray[np.float64]


@dataclass(frozen=True)
class History:
    name: str
    """The folder's name, with as much of its path as parts it from the others."""
    folder: RunFolder
    lines: list[dict[str, Any]]

    @property
    def metrics(self) -> set[str]:
        return {name for line in self.lines for name in line}

    def places(self, metric: str) -> NDArray[np.int64]:
        """The lines that have the metric."""
        return np.array(
            [place for place, line in enumerate(self.lines) if _is_number(line.get(metric))], dtype=np.int64
        )

    def values(self, metric: str) -> Column:
        """Its values there; not-a-number where the run wrote it."""
        return np.array([self.lines[place][metric] for place in self.places(metric)], dtype=np.float64)

    @cached_property
    def steps(self) -> Column:
        return np.array([line["step"] for line in self.lines], dtype=np.float64)

    @cached_property
    def tokens(self) -> Column:
        return np.array([line["tokens"] for line in self.lines], dtype=np.float64)

    @cached_property
    def seconds(self) -> Column:
        """Time spent in updates: evaluation, saving and pauses between two parts of a run are not in it."""
        speed = np.array([line.get("tokens_per_second") or np.nan for line in self.lines], dtype=np.float64)
        return np.nancumsum(np.diff(self.tokens, prepend=0.0) / speed)


X_AXES: dict[str, Callable[[History], Column]] = {
    "steps": lambda run: run.steps,
    "tokens": lambda run: run.tokens,
    "seconds": lambda run: run.seconds,
}


def histories(runs: Source | Sequence[Source]) -> list[History]:
    """One or several runs; what is no run folder is refused."""
    form = "a Run, the path of a run folder, or a list of them"
    given: list[Any] = [runs] if isinstance(runs, str | os.PathLike) else arguments.items("runs", runs, form)
    if not given:
        raise InputError("no run is given", repair="give the folder of a run")
    paths = [arguments.path(f"runs[{number}]", each, form) for number, each in enumerate(given)]
    names = distinct_names(paths)
    return [_history(name, path) for name, path in zip(names, paths, strict=True)]


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """Folder names, longer by parents where two are alike, numbered where a folder is given twice."""
    parts = [path.resolve().parts[1:] or ("/",) for path in paths]
    names = []
    for number, mine in enumerate(parts):
        others = [other for place, other in enumerate(parts) if place != number and other != mine]
        length = next(n for n in range(1, len(mine) + 1) if n == len(mine) or all(o[-n:] != mine[-n:] for o in others))
        again = parts[:number].count(mine)
        names.append("/".join(mine[-length:]) + f" ({again + 1})" * bool(again))
    return names


def _history(name: str, path: Path) -> History:
    folder = RunFolder(path)
    if not folder.begun and not is_trained(path):
        told = "is no run folder: recipe.toml or state.json is missing" if path.exists() else "no such folder"
        raise InputError(told, where=path, repair="give the folder that maskery pretrain wrote with --out")
    return History(name, folder, [line for line in folder.metrics() if {"step", "tokens"} <= line.keys()])


def is_trained(path: Path) -> bool:
    """Whether it is a run of `finetune` or `vectors train`: logged as any run, without a recipe."""
    return (path / STATE).is_file() and RunFolder(path).metrics_file.is_file() and not (path / "recipe.toml").is_file()


def require_updates(runs: Sequence[History]) -> Sequence[History]:
    """The runs, if each has something to draw."""
    for run in runs:
        if not run.lines:
            raise InputError(
                "this run has made no update yet",
                where=run.folder.path,
                repair="let it go on: maskery pretrain ... --resume",
            )
    return runs


def sums_differ(runs: Sequence[History]) -> bool:
    """Whether the loss of one run is another sum than that of another: not the same questions, or other weights."""
    if not all(run.folder.begun for run in runs):
        return False  # runs without a recipe have one objective each
    asked = [{name: each.weight for name, each in run.folder.recipe.objectives.items()} for run in runs]
    return any(other != asked[0] for other in asked)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
