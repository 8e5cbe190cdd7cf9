"""Documents that a Python call is given: rows with a text, or texts that come one by one, beside files.

They are read more than once, and an iterator comes once: all go into a temporary JSON Lines file beside the corpus, so
that rows are read, counted and refused as the lines of such a file are. The file is gone when the corpus is built.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from maskery import arguments, files
from maskery.corpus.sources import FORM, NO_FILES, Progress, Source, by_name, gathered
from maskery.errors import ArgumentError, ArgumentName, TextError
from maskery.records import Row, is_table, rows_of, text_columns

_TEXT = "text"
_LOOKED_AT = 100
"""Rows that are looked at to find the column of the texts."""
_TELL = 1000
_OPTION = re.compile(r"--(\w+) (\w[\w,]*)")


@contextmanager
def documents(
    given: object, format: str | None, field: str, told: Progress, target: str, out: Path
) -> Iterator[tuple[list[Source], list[str]]]:
    """The sources of files, folders or documents, as `gathered` gives them; `out` is what will be built."""
    rows, paths = _parted(given)
    if rows is None:
        _require_names(paths)
        with gathered(paths, format, field, told, target) as found:
            yield found
        return
    if format is not None:
        raise ArgumentError(f"format is {format!r}, and files holds no file", repair="leave format out")
    with files.writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
    place = out.with_name(f"{out.name}-rows")
    files.remove_abandoned(place)
    with files.scratch_folder(place, out) as folder:
        source, notes = _spooled(rows, folder / "rows.jsonl", field, told, target)
        try:
            yield [source], notes
        except TextError as error:
            if not isinstance(error.file, ArgumentName):
                raise
            fix = _OPTION.sub(lambda said: f"{said[1]}={_argument(said[2])}", error.repair or "")
            raise TextError(error.cause, file=error.file, line=error.line, repair=fix) from None


def _argument(said: str) -> str:
    """The value of an option as Python writes it."""
    return repr(tuple(said.split(","))) if "," in said else f'"{said}"'


def _parted(given: Any) -> tuple[Iterator[Row] | None, Any]:
    """Documents as rows; or None and the files, to be checked by whoever reads them. A list of strings names files; a
    string that an iterator or a column holds is a text, unless there is a file that is called so."""
    if is_table(given):
        return rows_of("files", given, FORM), None
    if isinstance(given, str | Path | Mapping | Set | bytes) or not isinstance(given, Iterable):
        return None, given
    listed = isinstance(given, list | tuple)
    begun = iter(given)
    head = list(itertools.islice(begun, 1))
    every = itertools.chain(head, begun)
    if head and isinstance(head[0], Mapping):
        return rows_of("files", every, FORM), None
    if listed or not head or not isinstance(head[0], str) or _names_file(head[0]):
        return None, given if listed else every
    return ({_TEXT: arguments.text(f"files[{number}]", text)} for number, text in enumerate(every)), None


def _require_names(given: object) -> None:
    """Refuse a list of texts: its strings should be names, none of which is a file's or looks like one."""
    if not isinstance(given, list | tuple) or not given or not all(isinstance(each, str) for each in given):
        return
    if any(" " in each for each in given) and not any(by_name(Path(each))[0] or _names_file(each) for each in given):
        raise arguments.wrong("files[0]", given[0], FORM, NO_FILES)


def _names_file(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # longer than a name, or with a zero in it
        return False


def _spooled(rows: Iterator[Row], path: Path, field: str, told: Progress, target: str) -> tuple[Source, list[str]]:
    head = list(itertools.islice(rows, _LOOKED_AT))
    if not head:
        raise ArgumentError("files is empty: there is no document", repair="give at least one text")
    found, notes = (field, []) if target else _column(head, field)
    wanted, written = (found, target) if target else (found,), 0
    with open(path, "wb") as file:
        for number, row in enumerate(itertools.chain(head, rows)):
            written += file.write(_line(row, wanted, number))
            if number % _TELL == 0:
                told(written, None)
    return Source(path=path, name=ArgumentName("files"), format="jsonl", field=found, target=target), notes


def _column(head: list[Row], field: str) -> tuple[str, list[str]]:
    """The column of the texts, and what is to be told of it: the one that is asked for, or the only one with texts."""
    if field != _TEXT or any(field in row for row in head):
        return field, []
    found = text_columns(head)
    if len(found) == 1:
        return found[0], [f"text = {found[0]!r} (the only column with texts)"]
    names = ", ".join(repr(name) for name in dict.fromkeys(name for row in head for name in row))
    if not found:
        raise ArgumentError(f"files has no column with texts; there are {names}", repair='field="NAME" of the texts')
    choices = " or ".join(f'field="{name}"' for name in found)
    raise ArgumentError(f"which column of files is the text? There are {names}", repair=choices)


def _line(row: Row, wanted: tuple[str, ...], number: int) -> bytes:
    """The row as the reader of JSON Lines gets it: the wanted columns; if one is missing, the names of those there."""
    kept = {name: row[name] for name in wanted} if all(name in row for name in wanted) else dict.fromkeys(row)
    for name, cell in kept.items():
        if isinstance(cell, bytes):
            arguments.text(f"files[{number}][{name!r}]", cell)
    try:
        return json.dumps(kept, ensure_ascii=False, default=repr).encode() + b"\n"
    except UnicodeEncodeError:  # half a character, which the reader refuses or replaces, as in any file
        return json.dumps(kept, default=repr).encode() + b"\n"
