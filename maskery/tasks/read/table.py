"""Tables of labelled text as they stand in a file: rows of cells, with a name for each column and a place for each row.

TSV is read raw: a quote in it is a character like any other, and a tab always parts two columns. CSV has quotes as
spreadsheets write them. In JSON Lines and parquet the names of the fields are the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from maskery.corpus import parquet, tables
from maskery.corpus.formats import parse
from maskery.corpus.lines import Errors, Tally, raw_lines
from maskery.corpus.sources import Source
from maskery.errors import EmptyTextError, TextError
from maskery.tasks.read.header import has_header
from maskery.tasks.read.looks import Look
from maskery.tasks.read.sources import cleaned
from maskery.tasks.read.values import counted

_LOOKED_AT = 20
_RARE = 1000
"""Rows among which one of another width is taken for a slip of the publisher's; more are refused."""
_SHOWN_LINES = 5
_OTHER_SIGNS = (
    ("\t", "tabs", "--format tsv"),
    (";", "semicolons", "save the table with commas, or with tabs as .tsv"),
)
Cell = Any
"""Text in TSV and CSV; whatever JSON holds elsewhere."""


class Absent:
    """In the place of a field that a record does not have."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = Absent()


@dataclass(frozen=True)
class Row:
    number: int
    """Of the record, from 0, the header counted."""
    line: int
    """0: the file has no lines."""
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    source: Source
    names: tuple[str, ...]
    """Of the header; without one, the numbers of the columns from 1."""
    header: bool
    rows: tuple[Row, ...]
    notes: list[str] = field(default_factory=list)
    classes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Column -> the names of its classes in an order that the data say."""
    by: tuple[tuple[int, ...], ...] = ()
    """Columns that group the rows in an evaluation; of several together, all of them."""
    _looks: dict[int, Look] = field(default_factory=dict)

    def groups_of(self, row: Row) -> tuple[str, ...]:
        return tuple(", ".join(_group(row.cells[at]) for at in places) for places in self.by)

    def look(self, at: int) -> Look:
        if at not in self._looks:
            self._looks[at] = Look.of(self.column(at))
        return self._looks[at]

    def column(self, at: int) -> list[Cell]:
        return [row.cells[at] for row in self.rows]

    def wrong(self, cause: str, repair: str, row: Row | None = None) -> TextError:
        if row is not None and not row.line:
            cause = f"row {row.number + 1}: {cause}"
        return TextError(cause, file=self.source.name, line=row.line if row and row.line else None, repair=repair)

    def called(self, at: int) -> str:
        """What an error or a note calls a column."""
        return repr(self.names[at]) if self.header else f"column {at + 1}"


def _group(cell: Cell) -> str:
    return "" if cell is None or cell is ABSENT else str(cell).strip()


def load(source: Source, header: str, asked: Iterable[str], labels: Iterable[str], errors: Errors) -> Table:
    """`asked` are names of columns that the user gave, `labels` those of classes that are known: they tell a header."""
    tally = Tally()
    if source.format in ("jsonl", "parquet"):
        table = of_records(source, records(source, errors, tally))
    else:
        table = _of_cells(source, header, asked, labels, errors, tally)
    if tally.replaced:
        table.notes.append(f"{tally.replaced:,} bytes that are no UTF-8 became U+FFFD")
    return table


def records(source: Source, errors: Errors, tally: Tally) -> Iterator[tuple[int, dict[str, Cell]]]:
    """(Line, record) of JSON Lines; parquet has no lines."""
    if source.format == "parquet":
        yield from ((0, record) for record in parquet.rows(source))
        return
    for number, line in raw_lines(source, errors, tally):
        if not line or line.isspace():
            continue
        record = parse(line, source, number)
        if not isinstance(record, dict):
            fix = 'one object on each line: {"text": "...", "label": "..."}'
            raise TextError("the line does not hold an object", file=source.name, line=number, repair=fix)
        yield number, cleaned(record, errors, tally, source, number) if "\\u" in line else record


def of_records(source: Source, found: Iterable[tuple[int, dict[str, Cell]]]) -> Table:
    held = list(found)
    if not held:
        raise EmptyTextError("there is no example in the file", file=source.name, repair="put examples in it")
    names = tuple(dict.fromkeys(name for _, record in held for name in record))
    rows = (
        Row(number, line, tuple(record.get(name, ABSENT) for name in names))
        for number, (line, record) in enumerate(held)
    )
    return Table(source, names, True, tuple(rows))


def _of_cells(
    source: Source, header: str, asked: Iterable[str], labels: Iterable[str], errors: Errors, tally: Tally
) -> Table:
    held = list(_cells(source, errors, tally))
    blank = sum(not cells for _, cells in held)
    if all(len(cells) < 2 for _, cells in held):
        held, blank = [(line, cells or [""]) for line, cells in held], 0  # a blank line there is a text without words
    held = [(line, cells) for line, cells in held if cells]
    _check_commas(source, held)
    if not any(cell.strip() for _, cells in held for cell in cells):
        raise EmptyTextError("there is no example in the file", file=source.name, repair="put examples in it")
    found, why = has_header(source, [cells for _, cells in held], header, asked, labels)
    names = tuple(held[0][1]) if found else tuple(str(at + 1) for at in range(len(held[0][1])))
    rows = tuple(Row(number, line, tuple(cells)) for number, (line, cells) in enumerate(held))
    table = Table(source, names, found, rows[1:] if found else rows)
    table = _checked(table, rows[0])
    table.notes.append(f"the first line is {'a' if found else 'no'} header ({why})")
    if blank:
        table.notes.append(f"{counted(blank, 'blank lines')} passed over")
    return table


def _cells(source: Source, errors: Errors, tally: Tally) -> Iterator[tuple[int, list[str]]]:
    """(Line, cells) of each record; a blank line of a TSV has no cells."""
    if source.format == "csv":
        yield from tables.records(source, errors, tally, ",")
        return
    for number, line in raw_lines(source, errors, tally):
        yield number, line.split("\t") if line else []


def _check_commas(source: Source, held: list[tuple[int, list[str]]]) -> None:
    """A CSV whose lines are all parted by another sign is refused with that sign, not with what it looks like."""
    if source.format != "csv" or len(held) < 2 or len(held[0][1]) > 1:
        return
    for sign, name, fix in _OTHER_SIGNS:
        if len(counts := {",".join(cells).count(sign) for _, cells in held[:_LOOKED_AT]}) == 1 and counts != {0}:
            cause = f"the columns are parted by {name}, not by commas"
            raise TextError(cause, file=source.name, line=held[0][0], repair=fix)


def _checked(table: Table, first: Row) -> Table:
    """Every row as wide as the first, no name twice, no header in the middle, and something under it. A few broken
    rows of a large file, as published sets have them (QQP), are left out and reported with their lines."""
    if table.header:
        for at, name in enumerate(table.names):
            if name in table.names[:at]:
                cause = f"the header has {name!r} more than once" if name else "the header has more than one empty name"
                raise table.wrong(cause, "give the columns names of their own; or --header no", first)
        if not table.rows:
            cause, fix = "there is no example under the header", "put examples in it; or --header no"
            raise EmptyTextError(cause, file=table.source.name, line=first.line or None, repair=fix)
    ragged = [row for row in table.rows if len(row.cells) != len(first.cells)]
    if ragged and _RARE * len(ragged) > len(table.rows):
        raise _ragged(table, ragged[0], first)
    for row in table.rows:
        if table.header and len(first.cells) > 1 and row.cells == first.cells:
            fix = f"the file seems to be joined from several: sed -i '{row.line}d' {table.source.name}"
            raise table.wrong("the header stands here again", fix, row)
    if not ragged:
        return table
    lines = ", ".join(str(row.line) for row in ragged[:_SHOWN_LINES]) + (" ..." if len(ragged) > _SHOWN_LINES else "")
    many = counted(len(ragged), "rows")
    table.notes.append(f"{many} with another number of columns than {len(first.cells)}: left out (lines {lines})")
    whole = tuple(row for row in table.rows if len(row.cells) == len(first.cells))
    return replace(table, rows=whole, _looks={})


def _ragged(table: Table, row: Row, first: Row) -> TextError:
    count, width = len(row.cells), len(first.cells)
    begun = f"the {'header' if table.header else 'first line'} (line {first.line}) has {width}"
    cause = f"the line has {counted(count, 'columns')}, {begun}"
    if table.source.format == "csv":
        return table.wrong(cause, "quote fields that hold a comma, or mend the line", row)
    fix = "mend the line: a tab always parts two columns"
    if any('"' in cell for cell in row.cells):
        fix += ", for quotes are plain characters in TSV; a file with quoted fields is read as .csv, with commas"
    return table.wrong(cause, fix, row)
