"""The lines of a word list, block by block; what cannot be read is named by file and line."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from maskery.errors import TextError

Progress = Callable[[int, int], None]
"""Bytes done, bytes in all."""
_BLOCK = 1 << 22
_LONGEST = 1 << 24
"""Bytes of a line; what is longer is no list of words, and would fill the memory."""


def blocks(path: Path, progress: Progress | None = None) -> Iterator[tuple[int, list[str]]]:
    """(number of the first line, lines without their ends), as many at a time as 4 MiB hold."""
    if not path.is_file():
        cause = "is a folder" if path.is_dir() else "no such file"
        raise TextError(cause, file=path, repair="check the name: a text file in UTF-8 is wanted")
    number, done, total = 1, 0, path.stat().st_size
    try:
        with path.open("rb") as file:
            for data in _whole_lines(file):
                if data.count(b"\n", 0, -1) == 0 and len(data) > _LONGEST:
                    cause = f"a line of more than {_LONGEST >> 20} MiB: this is no list of words"
                    raise TextError(cause, file=path, line=number, repair="break the line, or give a list of words")
                lines = _decoded(data, path, number)
                yield number, lines
                number += len(lines)
                done += len(data)
                if progress is not None:
                    progress(done, max(done, total))
    except OSError as error:
        raise TextError(f"cannot be read ({error.strerror})", file=path, repair="check its permissions") from None


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """About `_BLOCK` bytes at a time, up to the end of a line; of a line beyond `_LONGEST` the front, and no more."""
    rest = b""
    while data := file.read(_BLOCK):
        cut = data.rfind(b"\n") + 1
        if cut:
            yield rest + data[:cut]
        rest = data[cut:] if cut else rest + data
        if len(rest) > _LONGEST:
            break
    if rest:
        yield rest


def _decoded(data: bytes, path: Path, number: int) -> list[str]:
    data = data.removeprefix(BOM_UTF8) if number == 1 else data
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise TextError(
            f"byte 0x{data[error.start]:02x} is not UTF-8",
            file=path,
            line=number + data.count(b"\n", 0, error.start),
            repair=f"convert it: iconv -f GB18030 -t UTF-8 {path} > NEW (or what its encoding is)",
        ) from None
    if "\0" in text:
        line = number + text.count("\n", 0, text.index("\0"))
        raise TextError("a zero byte: this is no text file", file=path, line=line, repair="give a list of words")
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if not lines[-1] else lines)]
