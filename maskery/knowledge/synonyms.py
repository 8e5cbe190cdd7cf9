"""Files of words of like meaning -> groups of words: a thesaurus, or plain lists.

A thesaurus in the form of Cilin has a code at the start of each line, `Aa01A01= 人 士 人物`, where `=` means the same,
`#` alike and `@` alone (such a line says nothing of its words). In a plain list each line is a group, parted by tabs or
commas, or by spaces where there are neither, so that words may hold spaces. A line that starts with "# " is a comment.
A first line with a code makes the file a thesaurus.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from pathlib import Path

from maskery.errors import TextError
from maskery.knowledge.lines import Progress, blocks

Group = tuple[list[str], bool]
"""Two words or more, and whether each is similar to every other; otherwise only the first is similar to the rest."""
Line = tuple[int, str]
"""Its number, and what stands in it."""
_CODE = re.compile(r"[A-Z][a-z]\d\d[A-Z]\d\d[=#@]")
_SIGNS = re.compile(r"[\t,，、;；]+")
_SIZES = re.compile(rb"\d+ \d+\s*")
_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_FRONT = 1 << 16


def looks_like_vectors(path: Path) -> bool:
    """Whether a file begins as word vectors do: words with numbers, perhaps behind how many and how wide."""
    with path.open("rb") as file:
        front = file.read(_FRONT).removeprefix(BOM_UTF8)
    lines = [line for line in front.split(b"\n") if line.strip()][:2]
    if len(lines) == 2 and _SIZES.fullmatch(lines[0]):
        return b"\0" in front or _is_vector(lines[1], 1)
    return bool(lines) and _is_vector(lines[0], 2)


def _is_vector(line: bytes, least: int) -> bool:
    numbers = line.split()[1:]
    return len(numbers) >= least and all(map(_NUMBER.fullmatch, numbers))


def filled_lines(path: Path, progress: Progress | None = None) -> Iterator[Line]:
    """The lines that hold something."""
    for first, lines in blocks(path, progress):
        for number, line in enumerate(lines, first):
            if text := line.strip():
                yield number, text


def groups(lines: Iterable[Line], path: Path) -> list[Group]:
    """The groups of a thesaurus or a plain list."""
    given = [line for line in lines if line[1] != "#" and not line[1].startswith("# ")]
    parted = _thesaurus(given, path) if given and _CODE.match(given[0][1]) else map(_plain, given)
    found = [list(dict.fromkeys(words)) for words in parted]
    return [(words, True) for words in found if len(words) > 1]


def _thesaurus(lines: Iterable[Line], path: Path) -> Iterator[list[str]]:
    for number, line in lines:
        if not (code := _CODE.match(line)):
            raise TextError(
                "no code such as Aa01A01=, though the first line has one",
                file=path,
                line=number,
                repair="write a code before the words, or remove the line",
            )
        yield [] if code[0].endswith("@") else line[code.end() :].split()


def _plain(line: Line) -> list[str]:
    words = _SIGNS.split(line[1]) if _SIGNS.search(line[1]) else line[1].split()
    return [stripped for word in words if (stripped := word.strip())]
