"""Files that a fine-tuned model is asked about, read with what was found in its training file: the fields, the labels,
which columns are numbers, and the label map of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from maskery.records import Records
from maskery.tasks.examples import Examples
from maskery.tasks.native import UNNAMED
from maskery.tasks.read.columns import Seen
from maskery.tasks.read.files import read_examples
from maskery.tasks.read.sources import format_of
from maskery.tasks.settings import ColumnsConfig, TaskConfig


def kept_columns(config: TaskConfig, path: Path | Records, labelled: bool) -> dict[str, Any]:
    """The keys of `columns` that hold for another file, too."""
    own = config.columns
    kept: dict[str, Any] = {"meta": list(own.meta), "errors": own.errors, "map": dict(own.map)}
    if labelled or not own.label.isdecimal():  # files without labels may have fewer columns: a number means nothing
        kept["label"] = own.label
    if isinstance(path, Path) and format_of(path) is None:
        kept["format"] = own.format
    return kept


def read_with(config: TaskConfig, path: Path | Records, columns: ColumnsConfig, labelled: bool) -> Examples:
    """The examples of a file, or of rows, for the model of `config`."""
    own = config.columns
    numbers = tuple(column.name for column in config.meta.columns if column.categories is None)
    labels = config.labels if config.task != "tag" else ()
    seen = Seen(fields=own.text, labels=labels, numbers=numbers, places=own.places)
    return read_examples(path, config.task, "dev" if labelled else "test", columns, labelled=labelled, seen=seen)


def by_number(examples: Examples, labels: Sequence[str]) -> Examples:
    """Classes that nobody named are known by their numbers; where all labels are such numbers, they are taken so."""
    named = {name.removeprefix(UNNAMED): name for name in labels if name.startswith(UNNAMED)}
    if len(named) < len(labels) or not all(each.label in named for each in examples):
        return examples
    items = tuple(replace(each, label=named[str(each.label)]) for each in examples)
    said = ", ".join(f"{number} as {name}" for number, name in list(named.items())[:3])
    more = " ..." if len(named) > 3 else ""
    return replace(examples, items=items, notes=(*examples.notes, f"labels are numbers: {said}{more} of the model"))
