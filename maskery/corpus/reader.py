"""Text files to lines: plain or gzip, UTF-8. A blank line ends a document, and so does the end of a file.

Nothing broken passes: a missing, empty or binary file, bytes that are no UTF-8 and a cut archive are errors with file,
line and repair. With errors="replace" bad bytes become U+FFFD and are counted.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from maskery.errors import TextError, UnknownName
from maskery.registry import Registry

Errors = Literal["strict", "replace"]
ERRORS = ("strict", "replace")
Opener = Callable[[BinaryIO], BinaryIO]

FORMATS: Registry[Opener] = Registry(
    "text format", {"text": "maskery.corpus.reader:open_text", "gzip": "maskery.corpus.reader:open_gzip"}
)
_SUFFIXES = {".gz": "gzip"}
"""Formats by the end of a file's name; every other name is plain text."""

_BLOCK = 1 << 20
LONGEST_LINE = 1 << 20
"""Characters; a longer line is cut, so that no row of work is larger. (One line at a time is held in memory.)"""


@dataclass
class Tally:
    """What reading did to the text, and how far it is."""

    lines: int = 0
    """Lines with text in them."""
    characters: int = 0
    replaced: int = 0
    """Replacement characters put in the place of bad bytes."""
    cut_lines: int = 0
    """Lines above `LONGEST_LINE` that were cut."""
    bytes_done: int = 0
    """Bytes of the files read so far, as they lie on the disk."""


def open_text(file: BinaryIO) -> BinaryIO:
    return file


def open_gzip(file: BinaryIO) -> BinaryIO:
    return gzip.GzipFile(fileobj=file, mode="rb")  # type: ignore[return-value]


def check_errors(errors: str) -> Errors:
    if errors not in ERRORS:
        raise UnknownName("way with bad bytes", errors, ERRORS)
    return "strict" if errors == "strict" else "replace"


def check(paths: Iterable[str | Path]) -> list[Path]:
    """The files as paths; a file that cannot be read is refused before any work is done."""
    found = [Path(path) for path in paths]
    if not found:
        raise TextError("no text file was given", file="FILES", repair="maskery corpus build FILE ... --out DIR")
    for path in found:
        if path.is_dir():
            raise TextError("is a folder", file=path, repair=f"name the files in it: {path}/*")
        if not path.exists():
            raise TextError("no such file", file=path, repair="check the name")
        if not path.is_file():
            raise TextError("is no ordinary file", file=path, repair="write the text to a file: it is read twice")
        if path.stat().st_size == 0:
            raise TextError("the file is empty", file=path, repair="leave it out")
        if not os.access(path, os.R_OK):
            raise TextError("may not be read", file=path, repair=f"chmod +r {path}")
    return found


def documents(path: str | Path, *, errors: Errors = "strict") -> Iterator[list[tuple[int, str]]]:
    """The documents of one file: lists of (line number, line)."""
    document: list[tuple[int, str]] = []
    for number, line in lines(path, errors=errors):
        if line:
            document.append((number, line))
        elif document:
            yield document
            document = []
    if document:
        yield document


def lines(path: str | Path, *, errors: Errors = "strict", tally: Tally | None = None) -> Iterator[tuple[int, str]]:
    """(Line number, line) through one file, with an empty line after every document."""
    path, tally = Path(path), Tally() if tally is None else tally
    open_document = found = False
    for number, line in _raw_lines(path, errors, tally):
        if line and not line.isspace():
            tally.lines += 1
            tally.characters += len(line)
            open_document = found = True
            for part in _cut(line, tally):
                yield number, part
        elif open_document:
            open_document = False
            yield number, ""
    if not found:
        raise TextError("there is no text in the file", file=path, repair="leave it out")
    if open_document:
        yield 0, ""


def _raw_lines(path: Path, errors: Errors, tally: Tally) -> Iterator[tuple[int, str]]:
    """Lines as they stand in the file, decoded by blocks of whole lines."""
    number, before = 1, tally.bytes_done
    try:
        with open(path, "rb") as file:
            for block, place in _line_blocks(FORMATS.get(_SUFFIXES.get(path.suffix.lower(), "text"))(file)):
                text = _decode(block, errors, tally, path, number, place)
                tally.bytes_done = before + file.tell()
                for line in text.split("\n"):
                    yield number, line[:-1] if line.endswith("\r") else line
                    number += 1
            tally.bytes_done = before + file.tell()
    except EOFError:
        raise TextError(
            "the archive ends in its middle", file=path, line=number, repair="fetch or compress the file anew"
        ) from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise TextError(
            f"the archive is damaged ({error})", file=path, line=number, repair="fetch or compress the file anew"
        ) from None
    except OSError as error:
        raise TextError(f"cannot be read ({error.strerror or error})", file=path, repair="check the file") from None


def _line_blocks(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Blocks of whole lines without their last line feed, each with its place in the (unpacked) file."""
    rest: list[bytes] = []
    place = 0
    while data := file.read(_BLOCK):
        head, feed, tail = data.rpartition(b"\n")
        if not feed:
            rest.append(data)
            continue
        block = b"".join([*rest, head])
        yield block, place
        place += len(block) + 1
        rest = [tail] if tail else []
    if rest:
        yield b"".join(rest), place


def _decode(block: bytes, errors: Errors, tally: Tally, path: Path, number: int, place: int) -> str:
    if place == 0:
        if block.startswith((b"\xff\xfe", b"\xfe\xff")):
            fix = f"iconv -f UTF-16 -t UTF-8 {path} > NEW"
            raise TextError("the text is in UTF-16", file=path, line=1, repair=fix)
        block = block.removeprefix(b"\xef\xbb\xbf")
    nothing = block.find(b"\0")
    if nothing >= 0:
        line = number + block.count(b"\n", 0, nothing)
        raise TextError("a zero byte: this is no text file", file=path, line=line, repair="give a file of plain text")
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        if errors == "strict":
            line = number + block.count(b"\n", 0, error.start)
            raise TextError(
                f"byte {place + error.start} (0x{block[error.start]:02x}) is not UTF-8",
                file=path,
                line=line,
                repair="--errors replace, or convert the file: iconv -f ENCODING -t UTF-8",
            ) from None
    text = block.decode("utf-8", "replace")
    tally.replaced += text.count("\ufffd") - block.count(b"\xef\xbf\xbd")
    return text


def _cut(line: str, tally: Tally) -> Iterator[str]:
    """The line, or its parts where it is too long: cut after a space or a full stop in the second half."""
    if len(line) <= LONGEST_LINE:
        yield line
        return
    tally.cut_lines += 1
    start = 0
    while len(line) - start > LONGEST_LINE:
        limit = start + LONGEST_LINE
        end = max(line.rfind(sign, start + LONGEST_LINE // 2, limit) for sign in (" ", "。", "\t")) + 1 or limit
        yield line[start:end]
        start = end
    yield line[start:]
