"""One file of labelled text: its format and compression, what it may be besides its name, and how it is opened.

The format goes by the end of the name, as for a corpus; `.json` (one value, or really one object on each line) and
`.conll`, `.bio`, `.bmes` come on top. `.txt` and `.tsv` are looked into: they often hold one token and tag on a line.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

from maskery.corpus.formats import without_surrogates
from maskery.corpus.lines import Errors, Tally, raw_lines, whole_text
from maskery.corpus.sources import Source, by_name
from maskery.errors import EmptyTextError, TextError, UnknownName

FORMATS = ("text", "tsv", "csv", "jsonl", "json", "parquet", "conll")
_SUFFIXES = {".json": "json"} | dict.fromkeys((".conll", ".bio", ".bmes", ".bioes", ".iob", ".iob2"), "conll")
TAG = re.compile(r"O|[BIESMLU][-_]\S+|[BMES]")
_SURE_TAG = re.compile(r"O|[BIESMLU]-\S+")
_LOOKED_AT = 400
"""Lines that are looked at to tell what a file holds."""


def format_of(path: Path) -> str | None:
    """The format that the name of a file tells."""
    known, packing = by_name(path)
    inner = path if packing == "none" else path.with_suffix("")
    return _SUFFIXES.get(inner.suffix.lower(), known)


def source_of(path: Path, format: str) -> Source:
    """The file, checked to be one that can be read."""
    if format and format not in FORMATS:
        raise UnknownName("format of labelled text", format, FORMATS)
    if not path.exists():
        raise TextError("no such file", file=path, repair="check the name")
    if not path.is_file():
        raise TextError("is no file", file=path, repair="give a file, or a folder with train.tsv and dev.tsv")
    if path.stat().st_size == 0:
        raise EmptyTextError("the file is empty", file=path, repair="put examples in it, or leave it out")
    packing = by_name(path)[1]
    found = format or format_of(path) or "text"
    if found == "parquet" and packing != "none":
        raise TextError("a parquet file is compressed inside, not outside", file=path, repair="unpack the file first")
    return Source(path=path, name=str(path), format=found, packing=packing)


def holds_tokens(source: Source, task: str | None) -> bool:
    """Whether a text file has one token and its tag on a line, and blank lines between sentences."""
    if source.format not in ("text", "tsv"):
        return source.format == "conll"
    if task not in (None, "tag"):
        return False
    head = [line for _, line in islice(raw_lines(source, "replace", Tally()), _LOOKED_AT)]
    lines = [line for line in head if line.strip(" \t")]
    if task == "tag":
        return bool(lines) and not any(" " in line.rpartition("\t")[2] for line in lines if "\t" in line)
    tags = [re.split(r"[ \t]+", line.rstrip(" \t")) for line in lines]
    sure = [cells[-1] for cells in tags if len(cells) > 1 and _SURE_TAG.fullmatch(cells[-1])]
    single = all(" " not in line.partition("\t")[0] for line in lines if "\t" in line)
    # A file of which a line in a hundred is no token line is still one of tokens: the line is refused when it is read.
    return single and "O" in sure and len(set(sure)) > 1 and len(sure) > 0.95 * len(lines) and "" in head


def holds_json(source: Source) -> bool:
    """Whether a file whose name says plain text begins with a JSON object, as RACE's and ChID's do."""
    if source.format != "text":
        return False
    first = next((line for _, line in raw_lines(source, "replace", Tally()) if line.strip()), "")
    try:
        return isinstance(json.loads(first), dict)
    except ValueError:
        return False


def is_parted_by_tabs(source: Source) -> bool:
    """Whether a .csv has no comma in its first line and the same number of tabs in all that are looked at."""
    if source.format != "csv":
        return False
    head = [line for _, line in islice(raw_lines(source, "replace", Tally()), _LOOKED_AT) if line]
    return len(head) > 1 and "," not in head[0] and "\t" in head[0] and len({line.count("\t") for line in head}) == 1


def json_value(source: Source, errors: Errors, tally: Tally) -> Any:
    """The value of a JSON file; None if it is JSON Lines under another name."""
    text = whole_text(source, errors, tally)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        if _is_lines(text):
            return None
        cause = f"the file is not JSON: {error.msg} (column {error.colno})"
        fix = "fetch the file anew, or write one JSON object on each line and call it .jsonl"
        raise TextError(cause, file=source.name, line=error.lineno, repair=fix) from None
    except (ValueError, RecursionError) as error:
        cause = f"the file is not JSON that can be read: {error}"
        raise TextError(cause, file=source.name, repair="write one JSON object on each line") from None
    if isinstance(value, dict) and not {"data", "version"} & set(value):
        return None if "\n" not in text.strip() else value
    return cleaned(value, errors, tally, source, 1) if "\\u" in text else value


def cleaned(value: Any, errors: Errors, tally: Tally, source: Source, number: int) -> Any:
    """The same value, its texts without halves of characters."""
    if isinstance(value, str):
        return without_surrogates(value, errors, tally, source, number)
    if isinstance(value, list):
        return [cleaned(each, errors, tally, source, number) for each in value]
    if isinstance(value, dict):
        return {key: cleaned(each, errors, tally, source, number) for key, each in value.items()}
    return value


def _is_lines(text: str) -> bool:
    lines = [line for line in text.split("\n", 20)[:20] if line.strip()]
    try:
        return len(lines) > 1 and isinstance(json.loads(lines[0]), dict)
    except ValueError:
        return False
