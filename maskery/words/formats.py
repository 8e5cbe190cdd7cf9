"""Vectors as one file of word2vec: text (a word and its numbers a line) or binary (the numbers as float32).

Text may lack the first line with the numbers of words and of values (GloVe's files do). A word may hold spaces in text,
never in binary; wider spaces (U+3000, U+00A0) are signs as others. A word that is given again is left out, counted and
told. W words, D numbers a vector.
"""

from __future__ import annotations

import mmap
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskery.errors import InputError, TextError
from maskery.files import checksum, new_file, require_new_file
from maskery.knowledge.lines import blocks

if TYPE_CHECKING:
    from maskery.words.vectors import Told, WordVectors

_MEND = "mend or remove the line"
_FETCH = "fetch the file anew if it was cut, or correct the line"
_LOOKED_AT = 1 << 22
_WRITTEN = 1024
_LONGEST_WORD = 1 << 16


class _Header(NamedTuple):
    words: int
    width: int


class _Found(NamedTuple):
    words: list[str]
    matrix: NDArray[np.float32]
    again: int


def read(path: Path, progress: Told | None = None) -> WordVectors:
    from maskery.words.vectors import WordVectors

    header, binary = _form(path)
    found = _read_binary(path, header, progress) if header and binary else _read_text(path, header, progress)
    if not found.words:
        raise TextError("there is no vector in the file", file=path, repair="give a file of word vectors")
    notes = [f"{path}: {found.again:,} words are given again: the first vector of each counts"] if found.again else []
    form = "word2vec binary" if binary else "word2vec text"
    facts = {"file": path.name, "form": form, "sha256": checksum(path), "given_again": found.again}
    return WordVectors(found.words, np.zeros(len(found.words), dtype=np.int64), found.matrix, facts, notes=notes)


def _form(path: Path) -> tuple[_Header | None, bool]:
    """What the first line says, if it is a header; whether numbers as bytes come behind it."""
    with path.open("rb") as file:
        first, second = file.readline(_LOOKED_AT), file.readline(_LOOKED_AT)
    if first.startswith((b"\x1f\x8b", b"BZh", b"PK", b"(\xb5/\xfd", b"\xfd7zXZ")):
        raise TextError("is compressed", file=path, repair="unpack it first: gunzip, bunzip2, unzip or unzstd")
    parts = first.removeprefix(BOM_UTF8).split()
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        return None, False
    header = _Header(int(parts[0]), int(parts[1]))
    if not header.words or not header.width:
        raise TextError("the first line says that there is nothing", file=path, line=1, repair=_FETCH)
    try:
        numbers = [float(part) for part in second.decode().split()[-header.width :]]
    except ValueError:
        return header, True
    return header, b"\0" in second or not numbers


def _read_text(path: Path, header: _Header | None, progress: Told | None) -> _Found:
    rows: dict[str, int] = {}
    parts: list[NDArray[np.float32]] = []
    again = lines = 0
    width = header.width if header else 0
    for number, text in blocks(path, progress):
        filled = [(number + at, line.encode().strip()) for at, line in enumerate(text) if line.strip()]
        if number == 1 and header:
            filled = filled[1:]
        if not filled:
            continue
        width = width or _width(*filled[0], path)
        lines += len(filled)
        words, matrix = _block(filled, width, path)
        fresh = []
        for at, word in enumerate(words):
            if word not in rows:
                rows[word] = len(rows)
                fresh.append(at)
        again += len(words) - len(fresh)
        parts.append(matrix[fresh])
    if header and header.words != lines:
        cause = f"the first line says {header.words:,} words, the file has {lines:,}"
        raise TextError(cause, file=path, line=1, repair=_FETCH)
    return _Found(list(rows), np.concatenate(parts) if parts else np.zeros((0, width), dtype=np.float32), again)


def _width(number: int, line: bytes, path: Path) -> int:
    """How many numbers the vectors have, by the first line of a file that does not say it."""
    _, *values = line.split()
    if not values or not _is_number(values[-1]):
        cause = "a word and its numbers were expected: these are no word vectors"
        repair = "give a folder made by maskery words train, or a file of word2vec"
        raise TextError(cause, file=path, line=number, repair=repair)
    return len(values)


def _block(lines: list[tuple[int, bytes]], width: int, path: Path) -> tuple[list[str], NDArray[np.float32]]:
    """Words and vectors (n,D) of some lines. As bytes they are parted at plain spaces and tabs alone."""
    words, numbers = [], []
    for number, line in lines:
        front, *values = line.rsplit(None, width)
        word = front.decode()
        if len(values) != width or _ends_in_number(word):
            many = len(line.split()) - 1
            cause = f"{line.split()[0].decode()!r} has {many} numbers, the file has vectors of {width}"
            raise TextError(cause, file=path, line=number, repair=_MEND)
        words.append(word)
        numbers.append(values)
    try:
        flat = np.fromiter((float(value) for row in numbers for value in row), np.float64, len(words) * width)
    except ValueError:
        raise _no_number(lines, numbers, path) from None
    with np.errstate(over="ignore"):
        matrix = flat.astype(np.float32).reshape(len(words), width)
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if bad.size:
        cause = f"the vector of {words[int(bad[0])]!r} holds a value that is no number (nan or inf)"
        raise TextError(
            cause, file=path, line=lines[int(bad[0])][0], repair="train the vectors anew, or remove the line"
        )
    return words, matrix


def _ends_in_number(word: str) -> bool:
    """Whether a number too many stands behind the word."""
    return " " in word and _is_number(word.rpartition(" ")[2])


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _no_number(lines: list[tuple[int, bytes]], numbers: list[list[bytes]], path: Path) -> TextError:
    for (number, _), values in zip(lines, numbers, strict=True):
        for value in values:
            if not _is_number(value):
                return TextError(f"{value.decode()!r} is no number", file=path, line=number, repair=_MEND)
    raise AssertionError("called without a cause")


def _read_binary(path: Path, header: _Header, progress: Told | None) -> _Found:
    size = 4 * header.width
    needed = header.words * (size + 1)
    if path.stat().st_size < needed:
        cause = f"the first line says {header.words:,} words of {header.width} numbers, the file is too short for them"
        raise TextError(cause, file=path, line=1, repair=_FETCH)
    rows: dict[str, int] = {}
    matrix = np.empty((header.words, header.width), dtype=np.float32)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(b"\n") + 1
        for number in range(1, header.words + 1):
            space = data.find(b" ", at, at + _LONGEST_WORD)
            if space < 0 or space + 1 + size > len(data):
                cause = f"ends or goes wrong at word {number:,} of {header.words:,}"
                raise InputError(cause, where=path, repair="fetch the file anew")
            word = _word(data[at:space], number, path)
            at = space + 1 + size
            if word not in rows:
                vector = np.frombuffer(data[space + 1 : at], dtype="<f4")
                if not np.isfinite(vector).all():
                    cause = f"the vector of word {number:,}, {word!r}, holds a value that is no number (nan or inf)"
                    raise InputError(cause, where=path, repair="train the vectors anew")
                matrix[len(rows)] = vector
                rows[word] = len(rows)
            if progress is not None and number % 1000 == 0:
                progress(number, header.words)
        if rest := data[at:].strip():
            cause = f"goes on behind its {header.words:,} words: {len(rest):,} bytes"
            raise InputError(cause, where=path, repair="fetch the file anew")
    return _Found(list(rows), matrix[: len(rows)], header.words - len(rows))


def _word(data: bytes, number: int, path: Path) -> str:
    try:
        return data.lstrip(b"\n").decode()
    except UnicodeDecodeError:
        cause = f"word {number:,} is not UTF-8: {data[:20]!r}"
        raise InputError(cause, where=path, repair="fetch the file anew, or convert its words to UTF-8") from None


def write(vectors: WordVectors, path: Path, *, binary: bool, progress: Told | None = None) -> Path:
    require_new_file(path)
    spaced = next((word for word in vectors.words if len(word.split()) != 1), None)
    if spaced is not None:
        cause = f"the word {spaced!r} holds a space, which word2vec's files cannot hold"
        raise InputError(cause, where=path, repair="leave this word out")
    with new_file(path) as file:
        file.write(f"{len(vectors)} {vectors.width}\n".encode())
        for start in range(0, len(vectors), _WRITTEN):
            file.writelines(_lines(vectors, start, binary))
            if progress is not None:
                progress(min(start + _WRITTEN, len(vectors)), len(vectors))
    return path


def _lines(vectors: WordVectors, start: int, binary: bool) -> Iterator[bytes]:
    """Nine digits tell every float32 from every other, so that text loses nothing."""
    words, rows = vectors.words[start : start + _WRITTEN], vectors.matrix[start : start + _WRITTEN]
    form = "%s" + " %.9g" * vectors.width + "\n"
    for word, row in zip(words, rows, strict=True):
        if binary:
            yield word.encode() + b" " + row.astype("<f4").tobytes() + b"\n"
        else:
            yield (form % (word, *row.tolist())).encode()
