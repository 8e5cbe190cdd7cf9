"""Texts of a file, one after the other, whatever its size: a line or a record is a text, and none is left out.

    text                one a line, empty lines too
    jsonl, parquet      the field of each record, null as an empty text
    csv, tsv            a column by name (with a header) or by number (without); in tsv a quote is a character like any
                        other, as in all files that vectors are trained and judged with

A file may be packed (.gz, .zst). Stdin is plain text unless a format is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from maskery.corpus.formats import Records, jsonl_texts
from maskery.corpus.lines import Errors, Tally, raw_lines
from maskery.corpus.parquet import parquet_texts
from maskery.corpus.sources import FORMATS, STDIN, Progress, Source, by_name, spooled
from maskery.corpus.tables import table_texts
from maskery.errors import InputError, TextError

CHUNK = 4096
"""Texts that are worked on at once: enough to put those of one length together."""
_CHARACTERS = 1 << 23
"""Of a chunk, at most, beyond its first text: long texts must not pile up."""
_COMMAND = "maskery embed MODEL - --out V.npy"


def _lines(source: Source, errors: Errors, tally: Tally) -> Records:
    return ((number, [line]) for number, line in raw_lines(source, errors, tally))


_READERS: dict[str, Callable[[Source, Errors, Tally], Records]] = {
    "text": _lines,
    "jsonl": jsonl_texts,
    "csv": partial(table_texts, separator=","),
    "tsv": partial(table_texts, separator="\t"),
    "parquet": parquet_texts,
}


@dataclass(frozen=True)
class Chunk:
    texts: list[str]
    first: int
    """The number of its first text, from 0."""
    bytes_done: int
    """How much of the file was read to its end."""


@contextmanager
def source_of(
    file: str | Path, format: str | None = None, field: str = "text", told: Progress = lambda done, total: None
) -> Iterator[Source]:
    """The file, checked to be one that can be read; - is stdin, which lies in a file as long as this is open."""
    if format is not None:
        FORMATS.check(format)
    if str(file) == STDIN:
        with spooled(told, _COMMAND) as path:
            yield _checked(Source(path=path, name="stdin", format=format or "text", field=field))
        return
    yield _checked(_named(Path(file), format, field))


def _named(path: Path, format: str | None, field: str) -> Source:
    if not path.exists():
        raise TextError("no such file", file=path, repair="check the name")
    if not path.is_file():
        raise TextError("is no ordinary file", file=path, repair=f"give a file, or pipe it in: {_COMMAND} < FILE")
    if path.stat().st_size == 0:
        raise TextError("the file is empty", file=path, repair="give a file with texts")
    known, packing = by_name(path)
    if known is None and format is None and Path(path.name.removesuffix(".gz").removesuffix(".zst")).suffix == ".json":
        fix = f"write one object on each line: jq -c '.[]' {path} > NEW.jsonl; or --format jsonl if it is so"
        raise TextError("a JSON file is one value, not one text after the other", file=path, repair=fix)
    found = format or known or "text"
    if found == "parquet" and packing != "none":
        raise TextError("a parquet file is compressed inside, not outside", file=path, repair="unpack the file first")
    return Source(path=path, name=str(path), format=found, packing=packing, field=field)


def _checked(source: Source) -> Source:
    if source.format == "text" and source.field != "text":
        repair = "leave it out, or say what the file holds: --format jsonl (or csv, tsv, parquet)"
        raise InputError(f"--field {source.field}: plain text has no fields", repair=repair)
    if not source.field or (source.format in ("csv", "tsv") and source.field == "0"):
        raise InputError(f"--field {source.field!r} names no column", repair="a name, or a number from 1 on")
    return source


def chunks(source: Source, errors: Errors, tally: Tally) -> Iterator[Chunk]:
    """All texts in their order. The same file is cut into the same chunks, however it is worked on."""
    found = _READERS[source.format](source, errors, tally)
    first = 0
    while texts := _some(found):
        tally.lines += len(texts)
        yield Chunk(texts, first, tally.bytes_done)
        first += len(texts)


def _some(found: Records) -> list[str]:
    texts, room = list[str](), _CHARACTERS
    for _, (text,) in islice(found, CHUNK):
        texts.append(text)
        room -= len(text)
        if room <= 0:
            break
    return texts
