"""Lines of text for a fine-tuned model: one example a line; where the task reads several texts, a tab parts them.

The first line may name the columns: by the rule for files (maskery/tasks/read/header.py), with the run's own names.
Then columns are found by their names and may stand in any order; without it their order is that of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from maskery.corpus.sources import Source
from maskery.errors import InputError
from maskery.tasks.examples import Example, Examples
from maskery.tasks.read.header import has_header
from maskery.tasks.read.names import plain
from maskery.tasks.read.turned import check_order
from maskery.tasks.read.values import counted
from maskery.tasks.settings import TaskConfig

_NAME = "stdin"


def examples_of_lines(config: TaskConfig, lines: Sequence[str], header: str = "auto") -> Examples:
    """The examples of lines from stdin, read with the fields of the run. `header`: auto, yes or no."""
    if config.task == "choice" or config.columns.meta:
        why = "questions with choices" if config.task == "choice" else f"columns ({', '.join(config.columns.meta)})"
        raise InputError(f"the run reads {why}, which a line of text cannot hold", repair="maskery predict RUN FILE")
    fields, notes = config.columns.text, []
    filled = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if len(filled) < len(lines):
        notes.append(f"{counted(len(lines) - len(filled), 'empty lines')} left out")
    head = _header(config, [line for _, line in filled], header)
    if head is not None:
        filled = filled[1:]
        notes.append(f"{_NAME}: the first line is a header ({head.note}")
    if not filled:
        raise InputError("there is no text", where=_NAME, repair="write one a line")
    items = tuple(_example(number, line, fields, head) for number, line in filled)
    examples = Examples(task=config.task, fields=fields, items=items, notes=tuple(notes))
    return examples if head is not None and head.named else check_order(examples, _NAME)


class _Header(NamedTuple):
    places: Sequence[int]
    """Columns of the run's fields."""
    columns: int
    named: bool
    """Whether it has the names of all fields."""
    note: str


def _header(config: TaskConfig, lines: Sequence[str], header: str) -> _Header | None:
    """The first line, if it is a header; one that is alone is a text."""
    fields = config.columns.text
    if header == "no" or len(lines) < (2 if header == "auto" else 1):
        return None
    cells = lines[0].split("\t")
    names = [plain(cell) for cell in cells]
    if all(plain(field) in names for field in fields):
        places = [names.index(plain(field)) for field in fields]
        left = [cell for at, cell in enumerate(cells) if at not in places]
        note = f"{', '.join(cells[at] for at in places)})" + (f"; not read: {', '.join(left)}" if left else "")
        return _Header(places, len(cells), True, note)
    records = [line.split("\t") if len(fields) > 1 else [line] for line in lines]
    source = Source(path=Path(_NAME), name=_NAME, format="tsv", packing="none")
    found, why = has_header(source, records, header, fields, config.labels if config.task != "tag" else ())
    if not found:
        return None
    order = f"; the columns are read as {', '.join(fields)}" if len(fields) > 1 else ""
    return _Header(range(len(fields)), len(fields), False, f"{why}){order}")


def _example(number: int, line: str, fields: Sequence[str], head: _Header | None) -> Example:
    columns = len(fields) if head is None else head.columns
    cells = line.split("\t") if columns > 1 else [line]
    made = Example(guid=f"line-{number}", texts=tuple(cells), file=_NAME, line=number)
    if len(cells) != columns:
        if head is not None and head.named:
            raise made.wrong(f"{len(cells)} columns, and the header has {columns}", "part the columns by tabs")
        cause = f"{len(cells)} texts, and the run reads {', '.join(fields)}"
        raise made.wrong(cause, "part the texts of a line by a tab, in this order")
    return made if head is None else replace(made, texts=tuple(cells[at] for at in head.places))
