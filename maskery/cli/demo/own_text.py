"""The user's own text as documents: whatever `maskery corpus build` reads, in the size of a demo.

Held-out text is whole documents, so a file that is one long document is cut into pieces first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from maskery.corpus.reader import lines
from maskery.corpus.sources import gathered
from maskery.errors import TextError

LONGEST = 20_000_000
"""Characters that are read; a demo is to end soon."""
FEWEST_DOCUMENTS = 20
_PIECE = 1000
"""Characters of a piece of a long document, in whole lines."""


@dataclass(frozen=True)
class OwnText:
    documents: list[str]
    cut_short: bool
    """Only the first `LONGEST` characters were taken."""
    pieces: bool
    """There were few documents, so they were cut at line ends."""


def own_documents(path: Path) -> OwnText:
    found: list[str] = []
    size, cut_short = 0, False
    try:
        with gathered([path]) as (sources, _):
            for document in _documents(lines(sources)):
                found.append(document)
                size += len(document)
                if size >= LONGEST:
                    cut_short = True
                    break
    except TextError as error:  # without the repair that only `corpus build` knows
        repair = (error.repair or "").removesuffix("; or --errors replace")
        raise TextError(error.cause, file=error.file, line=error.line, repair=repair) from None
    if len(found) >= FEWEST_DOCUMENTS:
        return OwnText(found, cut_short, pieces=False)
    return OwnText([piece for document in found for piece in pieces_of(document)], cut_short, pieces=True)


def _documents(walk: Iterable[str]) -> Iterator[str]:
    held: list[str] = []
    for line in walk:
        if line:
            held.append(line)
        elif held:
            yield "\n".join(held)
            held = []


def pieces_of(document: str) -> Iterator[str]:
    """Whole lines, or sentences of a line that is long by itself, up to about `_PIECE` characters."""
    held: list[str] = []
    size = 0
    for part in _parts(document):
        held.append(part)
        size += len(part)
        if size >= _PIECE:
            yield "\n".join(held)
            held, size = [], 0
    if held:
        yield "\n".join(held)


def _parts(document: str) -> Iterator[str]:
    from maskery.text.sentences import split

    for line in document.split("\n"):
        yield from filter(None, map(str.strip, split(line))) if len(line) > _PIECE else [line]
