"""What the benchmarks of fine-tuning and of sentence vectors share: files by name, examples by key, and cells.

A cell is one measured thing, a side of a comparison on a task: a process of its own, and one JSON file. A stopped
benchmark goes on with the cells that are missing; cells of other settings are refused, never mixed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import peak
from maskery import randomness
from maskery.checkpoint.tensors import read_json
from maskery.errors import InputError, MaskeryError
from maskery.tasks.examples import Example, Examples
from maskery.tasks.read.files import read_examples
from maskery.tasks.read.folder import seen_in
from maskery.tasks.read.labels import labels_of
from maskery.tasks.resolve import Splits
from maskery.tasks.settings import ColumnsConfig

SOURCE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Data:
    """A task's files by name, and how much of them is used."""

    task: str
    train: tuple[str, ...]
    dev: tuple[str, ...] = ()
    """None: a share of train."""
    text: tuple[str, ...] = ()
    label: str = ""
    together: Callable[[Example], str] | None = None
    """What must not be parted between train and dev; None: nothing."""


def file_of(data: Path, name: str) -> Path:
    """The one file of that name in a folder or the folders in it."""
    found = sorted(data.rglob(name)) if data.is_dir() else []
    if len(found) != 1:
        cause = f"{name} is there {len(found)} times" if found else f"there is no {name}"
        raise InputError(cause, where=data, repair="--data FOLDER, with the files of the tasks anywhere in it")
    return found[0]


def splits_of(data: Data, folder: Path, name: str, most: tuple[int, int], share: float = 0.2) -> Splits:
    """Train and dev; `most`: of each at most so many (0: all), `share`: what dev has where it has no file."""
    columns = ColumnsConfig(text=data.text, label=data.label)
    read = [read_examples(file_of(folder, each), data.task, "train", columns) for each in data.train]
    train = joined(read)
    if data.dev:
        seen = seen_in(train, labels_of(train, data.task))
        dev = joined([read_examples(file_of(folder, each), data.task, "dev", columns, seen=seen) for each in data.dev])
    else:
        train, dev = parted(train, share, name, data.together)
    return Splits(fewer(train, most[0], name), fewer(dev, most[1], name))


def joined(parts: Sequence[Examples]) -> Examples:
    """Files of one split as one."""
    return replace(parts[0], items=tuple(item for part in parts for item in part))


def fewer(examples: Examples, most: int, name: str) -> Examples:
    """Those with the smallest keys, in the order of the file: always the same ones."""
    return _taken(examples, by_key(name, len(examples), most)) if most and len(examples) > most else examples


def by_key(name: str, many: int, most: int) -> NDArray[np.int64]:
    """The numbers with the smallest keys, ascending; `most` 0: all."""
    drawn = np.argsort(_keys(name, many), kind="stable")
    return np.sort(drawn[: most or many])


def parted(
    examples: Examples, share: float, name: str, together: Callable[[Example], str] | None = None
) -> tuple[Examples, Examples]:
    """Train and dev of one file; what belongs together (the questions about a text) is on one side."""
    numbers: dict[str, int] = {}
    groups = [
        numbers.setdefault(together(each) if together else str(number), len(numbers))
        for number, each in enumerate(examples)
    ]
    drawn = np.argsort(_keys(name, len(numbers)), kind="stable")
    mine = np.zeros(len(numbers), dtype=bool)
    mine[drawn[: max(1, round(share * len(numbers)))]] = True
    asked = mine[np.array(groups)]
    return _taken(examples, np.flatnonzero(~asked)), _taken(examples, np.flatnonzero(asked))


def _keys(name: str, many: int) -> NDArray[np.uint64]:
    return randomness.keys(0, f"benchmark {name}", np.arange(many))


def _taken(examples: Examples, numbers: NDArray[np.int64]) -> Examples:
    return replace(examples, items=tuple(examples[number] for number in numbers.tolist()))


def kept(path: Path, settings: Mapping[str, Any], flag: str = "--out") -> dict[str, Any] | None:
    """A cell that was measured before; None: there is none. One of other settings is refused; `flag` says where."""
    if not path.is_file():
        return None
    cell = read_json(path)
    require_settings(cell, settings, path, flag)
    return cell


def require_settings(found: Mapping[str, Any], settings: Mapping[str, Any], path: Path, flag: str) -> None:
    """Refuse what was measured in another way."""
    other = sorted(key for key, value in settings.items() if found["settings"].get(key) != value)
    if other:
        cause = f"was measured with {other[0]} {found['settings'].get(other[0])}, not {settings[other[0]]}"
        raise InputError(cause, where=path, repair=f"choose another {flag}, or remove the file")


def in_own_process(module: str, arguments: Sequence[str], threads: int) -> None:
    """Measure a cell with clean memory and as many threads as asked."""
    environment = peak.environment(threads) | {"MKL_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
    found = subprocess.run([sys.executable, "-m", module, *arguments], env=environment, check=False)
    if found.returncode:
        cause = f"a cell ended with code {found.returncode}: {' '.join(arguments)}"
        raise InputError(cause, repair="see its message above; the same command goes on with what is missing")


def ended(run: Callable[[argparse.Namespace], None], options: argparse.Namespace) -> int:
    """The exit code of a benchmark; an error for the user is told."""
    try:
        run(options)
    except MaskeryError as error:
        print(error.text(), file=sys.stderr)
        return error.exit_code
    return 0
