"""Parquet: each row is a document, its text one column. Read by batches of rows, only that column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from maskery.corpus.formats import Lines, Records, documents, listed, wanted
from maskery.corpus.lines import LONGEST_RECORD, Errors, Tally
from maskery.corpus.sources import Source
from maskery.errors import MaskeryError, TextError
from maskery.extras import optional

_ROWS = 256
"""Rows of a batch."""


def parquet(source: Source, errors: Errors, tally: Tally) -> Lines:
    for number, texts in parquet_texts(source, errors, tally):
        yield from documents(number, texts, tally)


def parquet_texts(source: Source, errors: Errors, tally: Tally) -> Records:
    """The wanted columns of each row, as they are; null is a text without letters."""
    number, before = 0, tally.bytes_done
    for records, share in _batches(source):
        for record in records:
            number += 1
            yield number, [_text(value, errors, tally, source, number) for value in record]
        tally.bytes_done = before + int(share * source.size)
    tally.bytes_done = before + source.size


def rows(source: Source) -> Iterator[dict[str, Any]]:
    """Whole rows, whatever their columns hold."""
    files, done = optional("pyarrow.parquet", "reading parquet files"), 0
    try:
        with files.ParquetFile(source.path) as opened:
            for batch in opened.iter_batches(_ROWS, use_threads=False):
                yield from batch.to_pylist()
                done += batch.num_rows
    except MaskeryError:
        raise
    except Exception as error:  # the library raises many kinds for bytes it refuses
        raise _damaged(source, error, done) from None


def _text(value: bytes | None, errors: Errors, tally: Tally, source: Source, number: int) -> str:
    if value is None:
        return ""
    if len(value) > LONGEST_RECORD:
        cause = f"row {number}: the text has {len(value):,} bytes, more than {LONGEST_RECORD >> 20} MiB"
        raise TextError(cause, file=source.name, repair="split the text over several rows")
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        if errors == "strict":
            cause = f"row {number}: byte {error.start} of the text (0x{value[error.start]:02x}) is not UTF-8"
            raise TextError(cause, file=source.name, repair="write the file anew; or --errors replace") from None
    text = value.decode("utf-8", "replace")
    tally.replaced += text.count("\ufffd") - value.count(b"\xef\xbf\xbd")
    return text


def _batches(source: Source) -> Iterator[tuple[list[tuple[bytes | None, ...]], float]]:
    """The columns as bytes, row by row, by batches, each with the share of the rows that is done after it."""
    library, files = optional("pyarrow", "reading parquet files"), optional("pyarrow.parquet", "reading parquet files")
    done = 0
    try:
        with files.ParquetFile(source.path) as opened:
            for name in wanted(source):
                _check_column(library, opened.schema_arrow, name, source)
            for batch in opened.iter_batches(_ROWS, columns=list(wanted(source)), use_threads=False):
                done += batch.num_rows
                columns = [_as_bytes(library, batch.column(name)) for name in wanted(source)]
                yield list(zip(*columns, strict=True)), done / opened.metadata.num_rows
    except MaskeryError:
        raise
    except Exception as error:  # the library raises many kinds for bytes it refuses
        raise _damaged(source, error, done) from None


def _damaged(source: Source, error: Exception, done: int) -> TextError:
    said = str(error).partition("\n")[0]
    after = f" after row {done}" if done else ""
    cause = f"this is no parquet file, or a damaged one{after} ({said})"
    return TextError(cause, file=source.name, repair="fetch or write the file anew")


def _check_column(library: Any, schema: Any, name: str, source: Source) -> None:
    found = schema.names.count(name)
    if found != 1:
        cause = f"there is no column {name!r}; there are {listed(schema.names)}"
        if found:
            cause = f"there is more than one column {name!r}"
        raise TextError(cause, file=source.name, repair="--field NAME says which column is the text")
    kind = schema.field(name).type
    held = kind.value_type if library.types.is_dictionary(kind) else kind
    if str(held) not in ("string", "large_string", "string_view", "null"):
        cause = f"the column {name!r} holds {kind}, not text"
        raise TextError(cause, file=source.name, repair="--field NAME of a column that holds text")


def _as_bytes(library: Any, column: Any) -> list[bytes | None]:
    if library.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    found: list[bytes | None] = column.cast(library.large_binary()).to_pylist()
    return found
