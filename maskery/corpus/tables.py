"""CSV and TSV: each record is a document, its text one column.

`--field NAME` wants a header with that name in the first record. `--field 2`, a number, says that there is no header
and which column it is, counted from 1. Quotes of a CSV work as in spreadsheets: a quoted field may hold separators,
line breaks and doubled quotes. In a TSV a quote is a character like any other, here as in all other readers: the
published sets are written so. Nothing is guessed: a record with another number of fields than the first is refused,
and so is a quote that is never closed or that ends before its field does.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import NoReturn

from maskery.corpus.formats import Lines, Records, documents, listed, wanted
from maskery.corpus.lines import LONGEST_RECORD, TOO_LONG, Errors, Tally, raw_lines
from maskery.corpus.sources import Source
from maskery.errors import TextError

_SPLIT = "quote fields that hold the separator, or mend the line"
_PLAIN_QUOTES = "quotes are plain characters in TSV; a file with quoted fields is read as .csv, with commas"


def csv_records(source: Source, errors: Errors, tally: Tally) -> Lines:
    return _documents(table_texts(source, errors, tally, ","), tally)


def tsv_records(source: Source, errors: Errors, tally: Tally) -> Lines:
    return _documents(table_texts(source, errors, tally, "\t"), tally)


def _documents(records: Records, tally: Tally) -> Lines:
    for number, texts in records:
        yield from documents(number, texts, tally)


def table_texts(source: Source, errors: Errors, tally: Tally, separator: str) -> Records:
    """The wanted columns of each record, as they are."""
    columns: list[int] = []
    width = 0
    for number, record in records(source, errors, tally, separator):
        if not columns:
            columns, width = [_column(record, name, source, number) for name in wanted(source)], len(record)
            if not source.field.isdecimal():
                continue
        if len(record) != width:
            first = "record" if source.field.isdecimal() else "line, the header,"
            fix = _SPLIT if separator == "," else f"mend the line, for {_PLAIN_QUOTES}"
            cause = f"the record has {_fields(len(record))}, the first {first} has {width}"
            raise TextError(cause, file=source.name, line=number, repair=fix)
        yield number, [record[column] for column in columns]


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


def _column(first: list[str], wanted: str, source: Source, number: int) -> int:
    """Which column is the text, by the first record."""
    option = "--pairs" if source.target else "--field"
    if wanted.isdecimal():
        if int(wanted) > len(first):
            cause = f"the record has {_fields(len(first))}, but {option} {wanted} is asked for"
            raise TextError(cause, file=source.name, line=number, repair=f"{option} counts columns from 1")
        return int(wanted) - 1
    if first.count(wanted) > 1:
        cause = f"the header has {wanted!r} more than once"
        raise TextError(cause, file=source.name, line=number, repair="give the columns names of their own")
    if wanted not in first:
        raise TextError(
            f"the header has no column {wanted!r}; it has {listed(each[:40] for each in first)}",
            file=source.name,
            line=number,
            repair=f"{option} with names of columns, or with numbers (from 1) if there is no header",
        )
    return first.index(wanted)


def records(source: Source, errors: Errors, tally: Tally, separator: str) -> Iterator[tuple[int, list[str]]]:
    """(Number of its first line, fields) of each record; blank lines between records are none."""
    # The module's own limit is for a field of all readers in this process; ours is for a record of this one.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_RECORD))
    feed = _Feed(source, errors, tally)
    if separator == ",":
        parser = csv.reader(feed, delimiter=separator, strict=True)
    else:
        parser = csv.reader(feed, delimiter=separator, strict=True, quoting=csv.QUOTE_NONE)
    while True:
        feed.begin()
        try:
            record = next(parser, None)
        except csv.Error as error:
            _refuse(source, feed, str(error))
        if record is None:
            return
        tally.folded_records += feed.lines > 1
        if record:
            yield feed.first, record


class _Feed:
    """Lines for the parser, with their line feeds; a record that grows without end is refused on the way."""

    def __init__(self, source: Source, errors: Errors, tally: Tally) -> None:
        self._source, self._raw = source, raw_lines(source, errors, tally)
        self.first = self.lines = self._size = 0

    def begin(self) -> None:
        self.lines = self._size = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        number, line = next(self._raw)
        if not self.lines:
            self.first = number
        self.lines += 1
        self._size += len(line) + 1
        if self._size > LONGEST_RECORD:
            cause = f"the record that begins here has {TOO_LONG}; a quote in it may never be closed"
            fix = "close the quote, or split the record"
            raise TextError(cause, file=self._source.name, line=self.first, repair=fix)
        return line + "\n"


def _refuse(source: Source, feed: _Feed, cause: str) -> NoReturn:
    fix = 'a quote inside a quoted field is doubled: "He said ""yes"""'
    if "unexpected end of data" in cause:
        cause, fix = "a quote opened in the record that begins here is never closed", "close the quote"
    elif "new-line" in cause:
        cause, fix = "a carriage return stands inside a line", f"tr '\\r' '\\n' < {source.name} > NEW"
    elif "expected after" in cause:
        cause = "a quoted field goes on after its closing quote"
    raise TextError(cause, file=source.name, line=feed.first, repair=fix)
