"""A source to lines of documents: plain text, and one JSON object on each line.

Every format answers with (number, line), where an empty line ends a document. In plain text a blank line does; where
the file is made of records, each record is one document, and the line breaks inside its text are line breaks of the
document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from maskery.corpus.lines import Errors, Tally, raw_lines
from maskery.corpus.sources import Source
from maskery.errors import TextError

Lines = Iterator[tuple[int, str]]
Records = Iterator[tuple[int, list[str]]]
"""The number of each record and its texts, those without text among them."""
Format = Callable[[Source, Errors, Tally], Lines]

_SURROGATES = re.compile("[\ud800-\udfff]")
_LISTED = 12
_KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}


def text(source: Source, errors: Errors, tally: Tally) -> Lines:
    return raw_lines(source, errors, tally)


def jsonl(source: Source, errors: Errors, tally: Tally) -> Lines:
    for number, texts in jsonl_texts(source, errors, tally):
        yield from documents(number, texts, tally)


def jsonl_texts(source: Source, errors: Errors, tally: Tally) -> Records:
    """The wanted texts of each object, as they are."""
    for number, line in raw_lines(source, errors, tally):
        if line and not line.isspace():
            record = parse(line, source, number)
            texts = [_field(record, name, source, number) for name in wanted(source)]
            if "\\u" in line:
                texts = [without_surrogates(each, errors, tally, source, number) for each in texts]
            yield number, texts


def wanted(source: Source) -> tuple[str, ...]:
    """The fields that are read: one, or the two of a pair."""
    return (source.field, source.target) if source.target else (source.field,)


def documents(number: int, texts: Sequence[str], tally: Tally) -> Lines:
    """The lines of one record. A pair is a document of two lines, whatever line breaks its texts have; one that lacks a
    text is counted and gives nothing."""
    if len(texts) == 1:
        yield from document(number, texts[0], tally)
        return
    pair = [" ".join(each.split()) for each in texts]
    if not all(pair):
        tally.empty_records += 1
        return
    yield from ((number, each) for each in pair)
    yield number, ""


def document(number: int, text: str, tally: Tally) -> Lines:
    """The lines of one record's text, then an empty one; a record without text is counted and gives nothing."""
    begun = False
    for line in text.split("\n"):
        if line and not line.isspace():
            begun = True
            yield number, line[:-1] if line.endswith("\r") else line
    if begun:
        yield number, ""
    else:
        tally.empty_records += 1


def listed(names: Iterable[str]) -> str:
    """Names for an error: not more than fit on a screen."""
    found = [str(name) for name in names]
    more = len(found) - _LISTED
    return ", ".join(found[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def without_surrogates(text: str, errors: Errors, tally: Tally, source: Source, number: int) -> str:
    """Half a surrogate pair, which only an escape can bring, is no character."""
    cleaned, count = _SURROGATES.subn("\ufffd", text)
    if count and errors == "strict":
        raise TextError(
            "half a character: an escape from \\ud800 to \\udfff stands alone",
            file=source.name,
            line=number,
            repair="write the character whole; or --errors replace",
        )
    tally.replaced += count
    return cleaned


def parse(line: str, source: Source, number: int) -> Any:
    """The JSON value on one line."""
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        cause = f"the line is not JSON: {error.msg} (column {error.colno})"
    except (ValueError, RecursionError) as error:
        cause = f"the line is not JSON that can be read: {error}"
    fix = 'one object on each line: {"text": "..."}'
    if number == 1 and line.lstrip()[0] in "[{":
        fix += f"; a file that is one JSON value becomes that by: jq -c '.[]' {source.name} > NEW.jsonl"
    raise TextError(cause, file=source.name, line=number, repair=fix)


def _field(record: Any, name: str, source: Source, number: int) -> str:
    """The text of a record; null is a record without text."""
    if not isinstance(record, dict):
        cause, fix = f"the line holds {_kind(record)}, not an object", 'one object on each line: {"text": "..."}'
    elif name not in record:
        there = f"it has {listed(record)}" if record else "it has none"
        cause, fix = f"the object has no field {name!r}; {there}", "--field NAME says which field is the text"
    elif record[name] is None:
        return ""
    elif isinstance(record[name], str):
        return str(record[name])
    else:
        cause = f"the field {name!r} holds {_kind(record[name])}, not text"
        fix = "--field NAME of a field that holds text"
    if source.target:
        fix = "--pairs SOURCE,TARGET says which fields are the two texts"
    raise TextError(cause, file=source.name, line=number, repair=fix)


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "null")
