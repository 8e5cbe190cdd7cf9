"""Labelled text as a Python call is given it: the path of a file, rows, or examples that were read before.

Rows are read as the lines of a JSON Lines file are: the same columns are found, the same things are refused. A place is
told as `train[17]`, and a repair as an argument, not as an option of the command.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from maskery import arguments
from maskery.corpus.lines import Tally
from maskery.corpus.sources import Source
from maskery.errors import ArgumentError, ArgumentName, ArgumentTypeError, TextError
from maskery.records import FORM, Records, records_of
from maskery.tasks.examples import Examples
from maskery.tasks.read.sources import cleaned
from maskery.tasks.read.table import Table, of_records
from maskery.tasks.settings import ColumnsConfig

LABELLED = f"the path of a file, {FORM}, or Examples"
SETTINGS = 'settings={"columns": {"text": ["A"], "label": "B"}}'
RENAME = 'call the columns as the training data did: frame.rename(columns={"A": "text"})'
_OPTION = re.compile(r"--(text|label|meta|header|format|errors|map|by)\b")
_BOTH = re.compile(r"(--text \S+) (--label)")
_TASK = re.compile(r"--task (\w+)")


def of_argument(name: str, value: object, form: str = LABELLED) -> Path | Records | Examples | None:
    """What an argument holds; rows that come one by one are taken in."""
    if value is None or isinstance(value, Examples | Records):
        return value
    if isinstance(value, str | os.PathLike):
        return arguments.path(name, value, form)
    if isinstance(value, Mapping):
        fix = f'give {name} as {form}; of a dict by split one of them, its ["train"] or ["test"]'
        raise arguments.wrong(name, value, form, fix)
    return records_of(name, value, form)


def given_splits(data: Mapping[str, object], splits: Mapping[str, str]) -> tuple[dict[str, Path | Records], list[str]]:
    """Split -> its rows or its file, of a dict by split, such as a DatasetDict; and the names that are no split.

    `splits`: what a name means.
    """
    found: dict[str, Path | Records] = {}
    others = []
    for key, value in data.items():
        split, place = splits.get(str(key).lower()), f"data[{key!r}]"
        if split is None:
            others.append(str(key))
            continue
        if split in found:
            raise ArgumentError(f"two of data could be {split}, and {place} is one of them", repair="leave one out")
        one = of_argument(place, value)
        if one is None or isinstance(one, Examples):
            raise arguments.wrong(place, value, f"the path of a file, or {FORM}")
        found[split] = one
    if "train" not in found:
        cause = f"data has no 'train'; it has {', '.join(map(str, data)) or 'nothing'}"
        raise ArgumentTypeError(cause, repair='data={"train": ..., "dev": ...}; rows of one split are given as train=')
    return found, others


def table_of(records: Records, columns: ColumnsConfig) -> Table:
    """The table of rows, as that of a JSON Lines file."""
    place, tally = records.place, Tally()
    source = Source(path=Path(place), name=place, format="rows")
    rows = ((at, cleaned(row, columns.errors, tally, source, at)) for at, row in enumerate(records.rows, 1))
    table = of_records(source, rows)
    table.classes.update(records.classes)
    if tally.replaced:
        table.notes.append(f"{tally.replaced:,} halves of characters became U+FFFD")
    if columns.format:
        table.notes.append(f"columns.format = {columns.format} is not needed: rows have no format")
    return table


@contextmanager
def in_python(columns: str) -> Iterator[None]:
    """Inside it, what is wrong with rows of a call is told in the words of Python. `columns`: how columns are named."""
    try:
        yield
    except TextError as error:
        if not isinstance(error.file, ArgumentName):
            raise
        cause, repair = (_TASK.sub(r'task="\1"', each) for each in (error.cause, error.repair or ""))
        if _OPTION.search(cause + repair):
            repair = f"{repair}; {columns}"
        cause, repair = (_OPTION.sub(r"columns.\1", _BOTH.sub(r"\1, \2", each)) for each in (cause, repair))
        raise TextError(cause, file=error.file, line=error.line, repair=repair) from None
