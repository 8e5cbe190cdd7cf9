"""Sources to the lines of their documents, whatever the format. The end of a document is told by an empty line.

Very long lines are cut and counted; documents can be skipped by their number, which is how duplicates are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from maskery.corpus.lines import Errors, Tally
from maskery.corpus.sources import FORMATS, Source
from maskery.errors import TextError

LONGEST_LINE = 1 << 20
"""Characters; a longer line is cut, so that no row of work is larger."""


def lines(
    sources: Iterable[Source], *, errors: Errors = "strict", tally: Tally | None = None, skip: bytes = b""
) -> Iterator[str]:
    """Line by line through all sources, with an empty line after every document.

    `skip` has a byte for each document, in order: one that is not zero leaves the document out.
    """
    tally = Tally() if tally is None else tally
    for source in sources:
        before = tally.documents
        yield from _lines(source, errors, tally, skip)
        if tally.documents > before:
            continue
        if source.named:
            raise TextError("there is no text in the file", file=source.name, repair="leave it out")
        tally.empty_files += 1


def _lines(source: Source, errors: Errors, tally: Tally, skip: bytes) -> Iterator[str]:
    begun, skipped = False, _marked(skip, tally.documents)
    for number, line in FORMATS.get(source.format)(source, errors, tally):
        if line and not line.isspace():
            begun = True
            if not skipped:
                tally.lines += 1
                tally.characters += len(line)
                if len(line) > LONGEST_LINE and source.target:
                    cause = f"a text of a pair has {len(line):,} characters, more than {LONGEST_LINE:,}"
                    raise TextError(cause, file=source.name, line=number, repair="leave the pair out, or shorten it")
                if len(line) > LONGEST_LINE:
                    tally.cut_lines += 1
                    yield from _cut(line)
                else:
                    yield line
        elif begun:
            begun = False
            if not skipped:
                yield ""
            tally.documents += 1
            skipped = _marked(skip, tally.documents)
    if begun:
        if not skipped:
            yield ""
        tally.documents += 1


def _marked(skip: bytes, document: int) -> bool:
    return document < len(skip) and skip[document] != 0


def _cut(line: str) -> Iterator[str]:
    """The parts of a line that is too long: cut after a space or a full stop in the second half."""
    start = 0
    while len(line) - start > LONGEST_LINE:
        limit = start + LONGEST_LINE
        end = max(line.rfind(sign, start + LONGEST_LINE // 2, limit) for sign in (" ", "。", "\t")) + 1 or limit
        yield line[start:end]
        start = end
    yield line[start:]
