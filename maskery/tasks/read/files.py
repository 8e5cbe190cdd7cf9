"""A file of labelled text to examples, whatever its format.

    train = read_examples(Path("train.tsv"), "classify", "train", ColumnsConfig())

`Examples.notes` tells what was found by itself: header, columns, labels, what was repaired and what was left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from maskery.corpus.lines import Tally
from maskery.corpus.sources import Source
from maskery.errors import ArgumentName, EmptyTextError, TextError, UnknownName
from maskery.records import Records
from maskery.tasks.examples import TASKS, Examples
from maskery.tasks.read import choices, passages, questions, rows, tagged
from maskery.tasks.read.columns import Seen, column_of
from maskery.tasks.read.given import table_of
from maskery.tasks.read.mapping import mapped
from maskery.tasks.read.names import plain
from maskery.tasks.read.shapes import in_plain_form
from maskery.tasks.read.sources import (
    FORMATS,
    TAG,
    format_of,
    holds_json,
    holds_tokens,
    is_parted_by_tabs,
    json_value,
    source_of,
)
from maskery.tasks.read.table import Table, load, of_records
from maskery.tasks.read.values import counted
from maskery.tasks.settings import ColumnsConfig

LABELLED = ("train", "dev")
"""Splits whose examples must have labels; those of others may."""
_NOTHING_SEEN = Seen()
MOST_GROUPS = 200
"""Values of a column that groups an evaluation: more are names of rows, or numbers."""


def read_examples(
    path: Path | Records,
    task: str | None,
    split: str,
    columns: ColumnsConfig,
    *,
    labelled: bool | None = None,
    seen: Seen = _NOTHING_SEEN,
) -> Examples:
    """The examples of one file, or of rows. Without a task, it is found and told.

    `labelled`: True, every example has to have a label; False, none is read; None, as the split wants it.
    `seen` is what the model learned from: which fields, which labels.
    """
    if task is not None and task not in TASKS:
        raise UnknownName("task", task, TASKS)
    needed = True if labelled is None and split in LABELLED else labelled
    columns = columns if split == "dev" else columns.model_copy(update={"by": ()})  # only what is evaluated has groups
    if seen.labels:  # the file has labels as they are before the map
        seen = replace(seen, labels=(*seen.labels, *columns.map))
    if isinstance(path, Records):
        found = _of_table(table_of(path, columns), task, split, columns, needed, seen)
    elif path.is_dir() and passages.holds_passages(path):
        found = _of_table(passages.table_of(path, columns.errors), task, split, columns, needed, seen)
    else:
        found = _of_file(path, task, split, columns, needed, seen)
    place = path.place if isinstance(path, Records) else path
    if task is not None and found.task != task:
        cause = f"the file is one for the task {found.task}, not for {task}"
        raise TextError(cause, file=place, repair=f"--task {found.task}, or another file")
    _require_groups(found, columns.by, place)
    found = replace(mapped(found, columns.map, seen.labels), by=columns.by)
    told = [counted(len(found), "examples"), *found.notes]
    if task is None and not any(note.startswith("task = ") for note in told):
        told.insert(1, f"task = {found.task} (by the form of the data; --task says another)")
    return replace(found, notes=tuple(f"{path.name}: {note}" for note in told))


def _require_groups(found: Examples, by: Sequence[str], place: Path | ArgumentName) -> None:
    """What cannot group an evaluation is refused before anything is trained or predicted."""
    if by and not all(each.by for each in found):
        fix = "a table with such a column (tsv, csv, jsonl, parquet), or leave out --by"
        raise TextError(f"--by {by[0]}: the file has no columns", file=place, repair=fix)
    for at, name in enumerate(by):
        many = len({each.by[at] for each in found})
        if many > MOST_GROUPS:
            cause = f"--by {name}: {many:,} groups in {len(found):,} examples"
            raise TextError(cause, file=place, repair=f"a column of at most {MOST_GROUPS} values")


def _of_file(
    path: Path, task: str | None, split: str, columns: ColumnsConfig, labelled: bool | None, seen: Seen
) -> Examples:
    source, notes = source_of(path, columns.format), []
    if not columns.format and holds_json(source):
        source = replace(source, format="json")
        notes.append("JSON under the name of plain text")
    elif not columns.format and is_parted_by_tabs(source):
        source = replace(source, format="tsv")
        notes.append("columns parted by tabs under the name of CSV: read as TSV, quotes are plain characters")
    elif not columns.format and format_of(path) is None:
        notes.append(f"read as plain text: the name tells no format; --format would ({', '.join(FORMATS)})")
    found = _read(source, task, split, columns, labelled, seen, notes)
    return replace(found, notes=(*notes, *found.notes))


def _read(
    source: Source, task: str | None, split: str, columns: ColumnsConfig, labelled: bool | None, seen: Seen,
    notes: list[str],
) -> Examples:  # fmt: skip
    if holds_tokens(source, task):
        return tagged.of_lines(source, split, columns, labelled, columns.errors)
    if source.format == "json":
        value = json_value(source, columns.errors, Tally())
        if value is not None:
            return _of_value(value, source, task, split, columns, labelled, seen)
        notes.append("JSON with one object on each line")
        source = replace(source, format="jsonl")
    if source.format == "text":
        source = replace(source, format="tsv")
    asked = (*columns.text, columns.label, *columns.meta, *columns.by, *seen.fields)
    table = load(source, columns.header, [name for name in asked if name], seen.labels, columns.errors)
    return _of_table(table, task, split, columns, labelled, seen)


def _of_value(
    value: Any, source: Source, task: str | None, split: str, columns: ColumnsConfig, labelled: bool | None, seen: Seen
) -> Examples:
    """A file that is one JSON value: SQuAD, C3, or a list of records."""
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        held = value["data"]
        if not (held and isinstance(held[0], dict) and "paragraphs" not in held[0]):
            return questions.of_squad(value, source, split, labelled)
        value = held
    if isinstance(value, dict) and {"question", "questions"} & value.keys():
        value = [value]
    if questions.is_cmrc(value):
        return questions.of_cmrc(value, source, split, labelled)
    if choices.is_c3(value):
        return choices.of_c3(value, source.name, split, labelled)
    if isinstance(value, list) and not value:
        raise EmptyTextError("there is no example in the file", file=source.name, repair="put examples in it")
    if not isinstance(value, list) or not all(isinstance(record, dict) for record in value):
        cause = "the JSON is of no form that is known: SQuAD's, C3's, or a list of objects"
        raise TextError(cause, file=source.name, repair="write one object on each line and call the file .jsonl")
    return _of_table(of_records(source, ((0, record) for record in value)), task, split, columns, labelled, seen)


def _of_table(
    table: Table, task: str | None, split: str, columns: ColumnsConfig, labelled: bool | None, seen: Seen
) -> Examples:
    table, task_of_shape = in_plain_form(table, task, columns)
    if columns.by:
        places = tuple(tuple(column_of(table, name.strip(), "--by") for name in each.split(",")) for each in columns.by)
        table = replace(table, by=places)
    kind = task_of_shape or _kind(table)
    if kind == "qa":
        return questions.of_table(table, split, labelled)
    if kind == "choice":
        return choices.of_table(table, split, labelled)
    if kind == "tag":
        return tagged.of_table(table, split, columns, labelled)
    return rows.of_table(table, task_of_shape, split, columns, labelled, seen)


def _kind(table: Table) -> str | None:
    """The task that only one form of table is for; None for those of texts and a label."""
    first = dict(zip(map(plain, table.names), table.rows[0].cells, strict=True)) if table.header else {}
    if {"context", "question", "answers"} <= set(first):
        return "qa"
    if "question" in first and any(isinstance(first.get(name), list) for name in choices.CHOICES):
        return "choice"
    spans = any(isinstance(first.get(name), dict) for name in ("label", "labels"))
    marks = any(isinstance(first.get(name), list) for name in ("entities", "spans", "annotations"))
    tokens = any(name in first for name in ("tokens", "words")) and any(name in first for name in ("tags", "ner_tags"))
    return "tag" if spans or marks or tokens or any(map(_tags, zip(*_cells(table), strict=True))) else None


def _cells(table: Table) -> list[tuple[Any, ...]]:
    return [row.cells for row in table.rows[:200]]


def _tags(cells: Sequence[Any]) -> bool:
    """Whether every cell of a column is the tags of a sentence."""
    parts = [part for cell in cells if isinstance(cell, str) for part in cell.split(" ")]
    several = len(parts) > 2 * len(cells)
    return several and any(part.startswith("B-") for part in parts) and all(TAG.fullmatch(part) for part in parts)
