"""The file of a lexicon: one entry a line, in UTF-8, read block by block and written whole.

Behind a tab may stand a count or a tag, and more columns behind that. Lines that start with "# " are comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from maskery.errors import TextError
from maskery.files import write_text
from maskery.knowledge.lines import Progress, blocks

Entry = tuple[str, str]
"""What is listed, and what stands behind its tab."""

_REST = re.compile(r"[0-9][0-9.,]*|[A-Za-z][\w-]{0,31}|", re.ASCII)
_TAG = re.compile(r"[A-Za-z][\w-]{0,31}", re.ASCII)
_FORM = "write one entry a line; behind a tab may stand a count or a tag: New York<tab>120"


def read_entries(path: Path, progress: Progress | None = None) -> Iterator[list[Entry]]:
    """The entries of a file, as many at a time as a block of lines holds; a file without any is refused."""
    none = True
    for number, lines in blocks(path, progress):
        if found := [entry for at, line in enumerate(lines, number) if (entry := _entry(line, path, at))]:
            none = False
            yield found
    if none:
        raise TextError("the list has no entry", file=path, repair="write one entry a line, or leave the list out")


def tag_of(rest: str) -> str:
    """The tag behind an entry, alone or behind a count; empty if there is none."""
    return next((field for field in rest.split("\t", 2)[:2] if _TAG.fullmatch(field)), "")


def write_entries(path: Path, notes: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    """Notes as comments, then a line a row, its columns parted by tabs."""
    lines = [*(f"# {note}" for note in notes), *("\t".join(row) for row in rows)]
    write_text(path, "".join(f"{line}\n" for line in lines))


def _entry(line: str, path: Path, number: int) -> Entry | None:
    """None for a blank line or a comment."""
    entry, tab, rest = line.partition("\t")
    entry = entry.strip()
    if entry == "#" or entry.startswith("# ") or not line.strip():
        return None
    if not entry:
        raise TextError("no entry before the tab", file=path, line=number, repair=_FORM)
    if tab and not _REST.fullmatch(told := rest.partition("\t")[0].strip()):
        raise TextError(f"{told!r} behind the tab is no count and no tag", file=path, line=number, repair=_FORM)
    return entry, rest
