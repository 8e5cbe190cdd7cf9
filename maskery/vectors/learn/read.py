"""Files and rows of texts to learn from. Those with a label go through the reader of fine-tuning; all found is told."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from maskery import arguments
from maskery.corpus.lines import Tally, raw_lines
from maskery.corpus.sources import Source
from maskery.errors import TextError
from maskery.records import FORM, Records, records_of, records_or_items
from maskery.tasks.examples import Examples
from maskery.tasks.read.files import read_examples
from maskery.tasks.read.given import SETTINGS, in_python, table_of
from maskery.tasks.read.looks import is_missing
from maskery.tasks.read.names import PAIRS, label_rank, plain
from maskery.tasks.read.sources import format_of, json_value, source_of
from maskery.tasks.read.table import Table, load, of_records
from maskery.tasks.settings import ColumnsConfig
from maskery.vectors.learn.data import WANTED, TextSet, text_set

ANCHORS = ("anchor", *dict.fromkeys(first for first, _ in PAIRS))
RIGHT = ("positive", "pos", *dict.fromkeys(second for _, second in PAIRS))
WRONG = ("negative", "neg", "hard_neg", "hard_negative")
_LINES = ("text", "txt")
_FORM = f"the path of a file, {FORM}, a list of texts, or a TextSet"


def texts_given(name: str, value: object, loss: str, columns: ColumnsConfig) -> TextSet:
    """The units of an argument: of a file, of rows, or of texts that have no column."""
    if isinstance(value, TextSet):
        return value
    if isinstance(value, str | os.PathLike):
        return read_texts(arguments.path(name, value, _FORM), loss, columns)
    found = records_or_items(name, value, _FORM)
    if not isinstance(found, Records):
        found = records_of(name, [{"text": text} if isinstance(text, str) else text for text in found], _FORM)
    with in_python(SETTINGS):
        return read_texts(found, loss, columns)


def read_texts(path: str | Path | Records, loss: str, columns: ColumnsConfig | None = None) -> TextSet:
    """The units of a file or of rows; the columns tell what they are, and the loss where they leave a choice."""
    columns = columns or ColumnsConfig()
    path = path if isinstance(path, Records) else Path(path)
    if isinstance(path, Path) and _holds_lines(path, loss, columns):
        source, tally = source_of(path, columns.format), Tally()
        lines = [(line,) for _, line in raw_lines(source, columns.errors, tally) if line and not line.isspace()]
        notes = [f"{path.name}: {len(lines):,} lines"]
        if tally.replaced:
            notes.append(f"{path.name}: {tally.replaced:,} bytes that are no UTF-8 became U+FFFD")
        return text_set("lines", lines, notes=notes, place=str(path))
    if columns.label or set(WANTED.get(loss, ())) & {"scored", "labelled"}:
        return _labelled(path, columns, loss)
    table = table_of(path, columns) if isinstance(path, Records) else _table(source_of(path, columns.format), columns)
    if not columns.text and _has_label(table):
        return _labelled(path, columns, loss)
    return _of_table(table, columns, loss)


def _holds_lines(path: Path, loss: str, columns: ColumnsConfig) -> bool:
    return loss == "simcse" and (columns.format or format_of(path) or "text") in _LINES and not columns.text


def _table(source: Source, columns: ColumnsConfig) -> Table:
    if source.format == "text":
        source = replace(source, format="tsv")
    if source.format == "json":
        value = json_value(source, columns.errors, Tally())
        if isinstance(value, list) and value and all(isinstance(record, dict) for record in value):
            return of_records(source, ((0, record) for record in value))
        if value is not None:
            cause = "the JSON is no list of objects"
            raise TextError(cause, file=source.name, repair="one object on each line, and call the file .jsonl")
        source = replace(source, format="jsonl")
    table = load(source, columns.header, [name for name in columns.text if name], (), columns.errors)
    return _with_own_header(table, columns.header)


def _with_own_header(table: Table, asked: str) -> Table:
    """Names that only tables of anchors and positives have tell a header, too."""
    first = [plain(str(cell)) for cell in table.rows[0].cells]
    if table.header or asked == "no" or not first[0] or len(table.rows) < 2:
        return table
    if not (first[0] in ANCHORS and all(_role(name) for name in first)):
        return table
    names = tuple(str(cell) for cell in table.rows[0].cells)
    notes = [f"the first line is a header (it has {names[0]!r})"]
    return Table(table.source, names, True, table.rows[1:], notes)


def _role(name: str) -> bool:
    return name in ANCHORS or name in RIGHT or _is_wrong(name)


def _is_wrong(name: str) -> bool:
    return name.rstrip("0123456789").rstrip("_") in WRONG


def _has_label(table: Table) -> bool:
    """A column that is called so; or, where nothing is called anything, one of numbers or of few short names."""
    if table.header:
        return any(label_rank(name) is not None for name in table.names)
    looks = [table.look(at) for at in range(len(table.names))]
    return any(look.scores for look in looks) or (
        len(looks) > 2 and any(look.classes and not look.texts for look in looks)
    )


def _labelled(path: Path | Records, columns: ColumnsConfig, loss: str) -> TextSet:
    if loss != "softmax":
        try:
            found = read_examples(path, "rank", "train", columns, labelled=True)
            return _of_examples(found, "scored", path)
        except TextError:
            if loss in ("cosine", "cosent"):
                raise
    return _of_examples(read_examples(path, "pair", "train", columns, labelled=True), "labelled", path)


def _of_examples(found: Examples, kind: str, path: Path | Records) -> TextSet:
    label = [str(item.label) if kind == "labelled" else float(str(item.label)) for item in found]
    units = (item.texts for item in found)
    return text_set(kind, units, label, labels=found.labels, notes=found.notes, place=str(path))  # type: ignore[arg-type]


def _of_table(table: Table, columns: ColumnsConfig, loss: str) -> TextSet:
    at, why = _columns(table, columns)
    name = table.source.path.name
    chosen = ", ".join(table.called(each) for each in at)
    notes = [f"{len(table.rows):,} rows", *table.notes, f"text = {chosen} ({why})"]
    left = [table.called(each) for each in range(len(table.names)) if each not in at]
    if left:
        notes.append(f"not read: {', '.join(left)}")
    rows = []
    for row in table.rows:
        cells = [row.cells[each] for each in at]
        wrong = next((cell for cell in cells if not isinstance(cell, str) and not is_missing(cell)), None)
        if wrong is not None:
            raise table.wrong(f"{str(wrong)[:40]!r} is no text", "--text NAMES of the columns with texts", row)
        rows.append(tuple(cell if isinstance(cell, str) else "" for cell in cells))
    kind = {1: "lines", 2: "pairs"}.get(len(at), "triplets")
    told = [f"{name}: {note}" for note in notes]
    return text_set(kind, rows, notes=told, place=table.source.name)


def _columns(table: Table, columns: ColumnsConfig) -> tuple[list[int], str]:
    if columns.text:
        return [_named(table, name) for name in columns.text], "as asked"
    names = [plain(name) for name in table.names]
    if table.header:
        first = next((names.index(name) for name in ANCHORS if name in names), None)
        second = next((names.index(name) for name in RIGHT if name in names and names.index(name) != first), None)
        if first is not None and second is not None:
            return [first, second, *(at for at, name in enumerate(names) if _is_wrong(name))], "by their names"
    texts = [at for at in range(len(names)) if table.look(at).strings and not table.look(at).codes]
    if not texts:
        raise table.wrong("no column holds texts", "--text NAMES of the columns with texts")
    return texts, "all columns with texts, in their order"


def _named(table: Table, name: str) -> int:
    if name in table.names:
        return table.names.index(name)
    if name.isdecimal() and 1 <= int(name) <= len(table.names):
        return int(name) - 1
    raise table.wrong(f"there is no column {name!r}", f"one of {', '.join(table.names)}, or a number from 1")
