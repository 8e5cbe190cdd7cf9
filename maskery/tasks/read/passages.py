"""A folder of passages, one JSON object in each file, in folders or not (RACE: high/1.txt, middle/2.txt)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from maskery.corpus.lines import Errors, Tally, whole_text
from maskery.corpus.sources import Source
from maskery.errors import TextError
from maskery.tasks.read.sources import cleaned, source_of
from maskery.tasks.read.table import Table, of_records
from maskery.tasks.read.values import counted

LEVEL = "level"
"""The column that holds the name of a passage's folder, where there are several."""
_SUFFIXES = (".txt", ".json")


def holds_passages(folder: Path) -> bool:
    """Whether the first file of a folder is a passage with questions."""
    first = next(_files(folder), None)
    if first is None:
        return False
    try:
        found = json.loads(first.read_text(encoding="utf-8-sig", errors="replace"))
    except ValueError:
        return False
    return isinstance(found, dict) and bool({"question", "questions"} & found.keys())


def table_of(folder: Path, errors: Errors) -> Table:
    """Every passage as a record."""
    tally, held = Tally(), list(_files(folder))
    if not held:
        fix = "a file, or a folder of passages: one JSON object in each .txt or .json"
        raise TextError("is a folder without passages", file=folder, repair=fix)
    levels = {path.parent for path in held}
    records = [
        (0, _record(path, errors, tally) | ({LEVEL: path.parent.name} if len(levels) > 1 else {})) for path in held
    ]
    source = Source(path=folder, name=str(folder), format="json", packing="none")
    table = of_records(source, records)
    table.notes.append(f"{counted(len(held), 'files')}, a passage in each")
    if len(levels) > 1:
        table.notes.append(
            f"the column {LEVEL!r} is the passage's folder: {', '.join(sorted(each.name for each in levels))}"
        )
    if tally.replaced:
        table.notes.append(f"{tally.replaced:,} bytes that are no UTF-8 became U+FFFD")
    return table


def _files(folder: Path) -> Iterator[Path]:
    yield from (path for path in sorted(folder.rglob("*")) if path.suffix.lower() in _SUFFIXES and path.is_file())


def _record(path: Path, errors: Errors, tally: Tally) -> dict[str, Any]:
    source = source_of(path, "json")
    text = whole_text(source, errors, tally)
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        cause = f"the file is not JSON: {error.msg} (column {error.colno})"
        raise TextError(cause, file=path, line=error.lineno, repair="fetch the file anew, or move it away") from None
    if not isinstance(found, dict):
        raise TextError("the file does not hold an object", file=path, repair='{"article": "...", "questions": [...]}')
    return cleaned(found, errors, tally, source, 1) if "\\u" in text else found
