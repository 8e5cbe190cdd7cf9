"""The lines of a file as they stand in it: unpacked, decoded, numbered. What every line-based format is read through.

Only a line feed ends a line; a carriage return before it belongs to the end. Nothing broken passes: a cut archive, a
zero byte, bytes that are no UTF-8 and a line without end are errors with file, line and repair. With errors="replace"
bad bytes become U+FFFD and are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NoReturn

from maskery.corpus import encodings
from maskery.corpus.packing import PACKINGS, Damaged
from maskery.corpus.sources import Source
from maskery.errors import TextError, UnknownName

Errors = Literal["strict", "replace"]
ERRORS = ("strict", "replace")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")

LONGEST_RECORD = 1 << 25
"""Bytes of one line or record; more is refused as soon as so many were read, so no file can fill the memory."""
_SPLIT_LINE = r"put line breaks between its sentences: sed -E 's/([.!?]|。|！|？) */&\n/g' {name} > NEW"
_SPLIT_RECORD = "split the document over several records"
LARGEST_VALUE = 1 << 30
"""Bytes of a file that has to be held as a whole."""
TOO_LONG = f"more than {LONGEST_RECORD >> 20} MiB without an end"


@dataclass
class Tally:
    """What reading did to the text, and how far it is. Lines and characters are those of the documents kept."""

    documents: int = 0
    """Documents seen, also those that are skipped."""
    lines: int = 0
    """Lines with text in them."""
    characters: int = 0
    replaced: int = 0
    """Replacement characters put in the place of bad bytes."""
    cut_lines: int = 0
    """Lines that were cut in pieces, being too long for one row of work."""
    empty_records: int = 0
    """Records whose text is missing or blank."""
    folded_records: int = 0
    """Records of a table that go over several lines."""
    empty_files: int = 0
    """Files of a folder without text."""
    bytes_done: int = 0
    """Bytes of the files read so far, as they lie on the disk."""


def check_errors(errors: str) -> Errors:
    if errors not in ERRORS:
        raise UnknownName("way with bad bytes", errors, ERRORS)
    return "strict" if errors == "strict" else "replace"


def raw_lines(source: Source, errors: Errors, tally: Tally) -> Iterator[tuple[int, str]]:
    """(Line number, line) through one file, decoded by blocks of whole lines."""
    number, place, before = 1, 0, tally.bytes_done
    beyond_ascii = False
    try:
        with open(source.path, "rb") as file:
            for block in _whole_lines(PACKINGS.get(source.packing)(file)):
                text = _decode(block, errors, tally, _Place(source, number, place, beyond_ascii))
                tally.bytes_done = before + file.tell()
                for line in (text if place else text.removeprefix("\ufeff")).split("\n"):
                    yield number, line[:-1] if line.endswith("\r") else line
                    number += 1
                place += len(block) + 1
                beyond_ascii |= not text.isascii()
            tally.bytes_done = before + file.tell()
    except Damaged as error:
        fix = "fetch or compress the file anew"
        raise TextError(str(error), file=source.name, line=number, repair=fix) from None
    except _TooLong:
        raise TextError(
            f"the line has {TOO_LONG}",
            file=source.name,
            line=number,
            repair=_SPLIT_LINE.format(name=source.name) if source.format == "text" else _SPLIT_RECORD,
        ) from None
    except OSError as error:
        fix = "check the file"
        raise TextError(f"cannot be read ({error.strerror or error})", file=source.name, repair=fix) from None


def whole_text(source: Source, errors: Errors, tally: Tally) -> str:
    """A file that is one value and not lines, such as JSON over many lines."""
    held, size = [], 0
    try:
        with open(source.path, "rb") as file:
            for block in PACKINGS.get(source.packing)(file):
                held.append(block)
                size += len(block)
                if size > LARGEST_VALUE:
                    cause = f"the file is one value of more than {LARGEST_VALUE >> 30} GiB"
                    raise TextError(cause, file=source.name, repair="write it as one JSON object on each line")
    except Damaged as error:
        raise TextError(str(error), file=source.name, repair="fetch or compress the file anew") from None
    except OSError as error:
        cause = f"cannot be read ({error.strerror or error})"
        raise TextError(cause, file=source.name, repair="check the file") from None
    tally.bytes_done += source.size
    return _decode(b"".join(held), errors, tally, _Place(source, 1, 0, False)).removeprefix("\ufeff")


class _TooLong(Exception):
    """The line that is being read has passed the limit."""


def _whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in blocks that end with a line, without its line feed."""
    rest: list[bytes] = []
    held = 0
    for data in blocks:
        head, feed, tail = data.rpartition(b"\n")
        first = data.find(b"\n") if feed else len(data)
        if held + first > LONGEST_RECORD:
            raise _TooLong
        if feed:
            yield b"".join([*rest, head])
            rest, held = [], 0
        if tail:
            rest.append(tail)
            held += len(tail)
    if rest:
        yield b"".join(rest)


@dataclass(frozen=True)
class _Place:
    source: Source
    line: int
    """Of the first byte of the block."""
    byte: int
    beyond_ascii: bool
    """There was UTF-8 beyond ASCII before the block."""


def _decode(block: bytes, errors: Errors, tally: Tally, where: _Place) -> str:
    zero = block.find(b"\0")
    if zero >= 0:
        _refuse_kind(block, where)
        _refuse_zero(block, zero, where)
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        if errors == "strict" or (where.byte == 0 and block.startswith(_UTF16)):
            _refuse_kind(block, where)
            _refuse_byte(block, error.start, where)
    text = block.decode("utf-8", "replace")
    tally.replaced += text.count("\ufffd") - block.count(b"\xef\xbf\xbd")
    return text


def _refuse_kind(block: bytes, where: _Place) -> None:
    """A file whose first bytes say what it is, once it is known not to be UTF-8."""
    if where.byte:
        return
    name = where.source.name
    if block.startswith(_UTF16):
        raise TextError("the text is in UTF-16", file=name, line=1, repair=f"iconv -f UTF-16 -t UTF-8 {name} > NEW")
    kind = encodings.other_kind(block)
    if kind is not None:
        what, _, fix = kind.partition(": ")
        raise TextError(f"this is no text but {what}", file=name, line=1, repair=fix)


def _refuse_zero(block: bytes, at: int, where: _Place) -> NoReturn:
    line, name = where.line + block.count(b"\n", 0, at), where.source.name
    guess = encodings.of_zeros(block) if where.byte == 0 else None
    if guess is not None:
        fix = f"iconv -f {guess} -t UTF-8 {name} > NEW"
        raise TextError(f"a zero byte: the text seems to be in {guess}", file=name, line=line, repair=fix)
    raise TextError("a zero byte: this is no text file", file=name, line=line, repair="give a file of plain text")


def _refuse_byte(block: bytes, at: int, where: _Place) -> NoReturn:
    begin, end = block.rfind(b"\n", 0, at) + 1, block.find(b"\n", at)
    guess = encodings.of_bytes(block[begin : end if end >= 0 else None], at - begin)
    cause = f"byte {where.byte + at} (0x{block[at]:02x}) is not UTF-8"
    fix = f"convert the file: iconv -f {guess or 'ENCODING'} -t UTF-8 {where.source.name} > NEW"
    if guess not in encodings.CHINESE:  # of Chinese text in another encoding, replacing would leave nothing
        fix += "; or --errors replace"
    if guess is not None:
        cause += f"; the line looks like {guess}"
    if where.beyond_ascii or not block[:begin].isascii():
        cause += ", while lines before it are UTF-8"
        fix = "the file mixes encodings: convert its parts before they are joined; or --errors replace"
    line = where.line + block.count(b"\n", 0, at)
    raise TextError(cause, file=where.source.name, line=line, repair=fix)
