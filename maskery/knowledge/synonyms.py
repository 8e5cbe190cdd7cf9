"""Files of words of like meaning -> groups of words.

Three formats, told apart by their first line: a thesaurus in the form of Cilin (`Aa01A01= 人 士 人物`, where `=` means
the same, `#` alike and `@` alone), plain groups (one a line, parted by spaces, tabs or commas), and vectors in the text
form of word2vec (a word and its numbers, perhaps after a line with the number of words and their width), where the
nearest few by cosine are taken as similar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from maskery.errors import TextError

NEAREST = 10
"""Neighbours of a word that a file of vectors gives."""
_CILIN = re.compile(r"[A-Z][a-z]\d\d[A-Z]\d\d[=#@]")
_PARTS = re.compile(r"[\s,，、;；]+")
_BLOCK = 1024


def read(path: str | Path) -> list[list[str]]:
    """Groups of two words and more; the first word's others are the rest, and so on for each, except that a group of
    vectors speaks for its first word alone (see `Group`)."""
    return [group for group, _ in groups(path)]


def groups(path: str | Path) -> Iterator[tuple[list[str], bool]]:
    """(words, whether each is similar to every other; otherwise only the first is similar to the rest)."""
    path = Path(path)
    lines = _lines(path)
    first = next((line for _, line in lines if line), "")
    if not first:
        raise TextError("holds no word", file=path, repair="give a thesaurus, a list of synonyms or word vectors")
    if _CILIN.match(first):
        found = _cilin(lines, path)
    elif _looks_like_vectors(lines):
        found = _vectors(lines, path)
    else:
        found = ((_PARTS.split(line), True) for _, line in lines if line)
    some = False
    for words, mutual in found:
        words = list(dict.fromkeys(word for word in words if word))
        if len(words) > 1:
            some = True
            yield words, mutual
    if not some:
        raise TextError("no line holds two words of like meaning", file=path, repair="one group of synonyms a line")


def _lines(path: Path) -> list[tuple[int, str]]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TextError(f"cannot be read ({error.strerror})", file=path, repair="check the name") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TextError(
            f"byte {error.start} is not UTF-8", file=path, line=line, repair=f"iconv -f GB18030 -t UTF-8 {path} > NEW"
        ) from None
    return [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1)]


def _cilin(lines: list[tuple[int, str]], path: Path) -> Iterator[tuple[list[str], bool]]:
    for number, line in lines:
        if not line:
            continue
        if not _CILIN.match(line):
            raise TextError("no code such as Aa01A01=", file=path, line=number, repair="mend or remove the line")
        if line[7] != "@":
            yield line[8:].split(), True


def _looks_like_vectors(lines: list[tuple[int, str]]) -> bool:
    filled = [line.split() for _, line in lines[:3] if line]
    if len(filled[0]) == 2 and all(part.isdigit() for part in filled[0]):
        return True
    return len(filled[0]) > 2 and all(_is_number(part) for part in filled[0][1:])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _vectors(lines: list[tuple[int, str]], path: Path) -> Iterator[tuple[list[str], bool]]:
    words: list[str] = []
    rows: list[np.ndarray] = []
    for number, line in lines:
        parts = line.split()
        if not parts or (number == 1 and len(parts) == 2):
            continue
        try:
            row = np.array(parts[1:], dtype=np.float32)
        except ValueError:
            raise TextError("a word and its numbers were expected", file=path, line=number) from None
        if rows and len(row) != len(rows[0]):
            raise TextError(f"{len(row)} numbers, {len(rows[0])} before", file=path, line=number) from None
        words.append(parts[0])
        rows.append(row)
    table = np.stack(rows)
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    many = min(NEAREST, len(words) - 1)
    for start in range(0, len(words), _BLOCK):
        near = table[start : start + _BLOCK] @ table.T
        near[np.arange(len(near)), np.arange(start, start + len(near))] = -2
        best = np.argpartition(-near, many - 1, axis=1)[:, :many] if many else near[:, :0].astype(np.int64)
        for line_of, places in enumerate(best):
            ordered = sorted(places.tolist(), key=lambda place, scores=near[line_of]: -scores[place])  # type: ignore[misc]
            yield [words[start + line_of], *(words[place] for place in ordered)], False
