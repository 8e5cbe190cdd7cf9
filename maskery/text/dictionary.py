"""A user's dictionary: words that the segmenter keeps together.

One word a line, in UTF-8. Behind it may stand a frequency and a tag, as in jieba's files; the tag is not used. Behind
a tab everything belongs to these two; without a tab the last number of the line is the frequency, so that a word may
hold spaces: `New York`, `New York 100`. Lines that start with "# " are comments.

Words of Han characters compete with jieba's own, by frequency: 京大 does not tear 北京大学 apart. All others are found
as they are written, the longest first, where they do not cut a run of letters and digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np
import rjieba
from numpy.typing import NDArray

from maskery.errors import InputError, TextError
from maskery.text.characters import Kind, codes, kinds

Entry = tuple[str, int | None]
"""A word and its frequency; None = as much as jieba thinks it needs."""

HIGHEST_FREQUENCY = 10**9
_NOT_JIEBAS = frozenset("々〆〇")
"""Jieba cuts at these whatever its dictionary holds."""
_TAIL = re.compile(r"(?P<word>.*\S) +(?P<rest>[+-]?\d\S*(?: +[a-z]+)?)")
_TAG = re.compile("[a-z]{1,4}")
"""Jieba's files also give a tag without a frequency."""
_FORM = "write WORD, or WORD FREQUENCY, or WORD FREQUENCY TAG; a word that ends in a number needs a tab behind it"


@dataclass(frozen=True)
class Dictionary:
    entries: tuple[Entry, ...]
    repeated: int = 0
    """Words that were given more than once; the last frequency holds."""

    @classmethod
    def read(cls, source: str | Path | Sequence[str | Path]) -> Dictionary:
        """From a file; or from a list, in which a `Path` is a file and a string is a line such as a file holds."""
        items = [Path(source)] if isinstance(source, str | Path) else list(source)
        entries: dict[str, int | None] = {}
        given = 0
        for number, item in enumerate(items, 1):
            found = _read_file(item) if isinstance(item, Path) else _line_entry(item, f"dictionary, word {number}")
            for word, frequency in found:
                given += 1
                entries[word] = frequency
        if not entries:
            raise InputError("the dictionary is an empty list", repair="give words, or leave the dictionary out")
        return cls(tuple(entries.items()), given - len(entries))

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def fingerprint(self) -> str:
        """Of words and frequencies in their order: jieba weighs a word by those before it."""
        return sha256("".join(f"{word}\t{frequency}\n" for word, frequency in self.entries).encode()).hexdigest()

    @property
    def text(self) -> str:
        """A file that gives the same entries when it is read."""
        lines = (f"{word}\t{'' if frequency is None else frequency}\n" for word, frequency in self.entries)
        return "# word, tab, frequency\n" + "".join(lines)

    @cached_property
    def _jieba(self) -> rjieba.Jieba | None:
        """A segmenter with the Han words; None if there are none, and the common one will do."""
        mine = [(word, frequency) for word, frequency in self.entries if _for_jieba(word)]
        if not mine:
            return None
        jieba = rjieba.Jieba()
        for word, frequency in mine:
            jieba.add_word(word, frequency, None)
        return jieba

    @cached_property
    def _written(self) -> frozenset[str]:
        """Words that are looked for as they are written."""
        return frozenset(word for word, _ in self.entries if len(word) > 1 and not _for_jieba(word))

    @cached_property
    def _lengths(self) -> dict[str, list[int]]:
        """The lengths of written words by their first two characters, longest first."""
        lengths: dict[str, set[int]] = {}
        for word in self._written:
            lengths.setdefault(word[:2], set()).add(len(word))
        return {begin: sorted(found, reverse=True) for begin, found in lengths.items()}

    @cached_property
    def _first(self) -> NDArray[np.uint32]:
        return np.unique(codes("".join(word[0] for word in self._written)))

    def cut(self, text: str) -> list[str]:
        """Jieba's words, with those of this dictionary."""
        return rjieba.cut(text, True) if self._jieba is None else self._jieba.cut(text, True)

    def find(self, text: str, edges: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
        """The written words in `text`, as spans from left to right; `edges` says where a word may begin or end."""
        if not self._written:
            return
        free = 0
        for at in np.flatnonzero(edges & np.isin(codes(text), self._first)).tolist():
            if at < free:
                continue
            for length in self._lengths.get(text[at : at + 2], ()):
                end = at + length
                ends_well = end == len(text) or (end < len(text) and edges[end])
                if ends_well and text[at:end] in self._written:
                    yield at, end
                    free = end
                    break


def _for_jieba(word: str) -> bool:
    return _NOT_JIEBAS.isdisjoint(word) and bool((kinds(codes(word)) == Kind.HAN).all())


def _read_file(path: Path) -> Iterable[Entry]:
    if not path.is_file():
        cause = "is a folder" if path.is_dir() else "no such file"
        raise TextError(cause, file=path, repair="give a dictionary file: UTF-8, one word a line")
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextError(
            f"byte 0x{data[error.start]:02x} is not UTF-8",
            file=path,
            line=data.count(b"\n", 0, error.start) + 1,
            repair=f"convert the dictionary: iconv -f GBK -t UTF-8 {path} > NEW (or what its encoding is)",
        ) from None
    entries = [
        entry for number, line in enumerate(text.split("\n"), 1) for entry in _line_entry(line, f"{path}:{number}")
    ]
    if not entries:
        raise TextError("the dictionary has no word", file=path, repair="write one word a line, or leave it out")
    return entries


def _line_entry(line: str, where: str) -> Iterator[Entry]:
    """The word of a line; none for a blank one or a comment."""
    line = line.removesuffix("\r")
    if not line.strip() or line.strip() == "#" or line.startswith("# "):
        return
    if re.search(r"[\x00-\x08\x0a-\x1f]", line):
        raise InputError("a control character in a word", where=where, repair="one word a line, plain text")
    word, fields = _fields(line)
    if not word:
        raise InputError("no word before the tab", where=where, repair=_FORM)
    if not fields:
        yield word, None
        return
    frequency = fields[0]
    if len(fields) > 2 or not re.fullmatch("[0-9]+", frequency) or not 1 <= int(frequency) <= HIGHEST_FREQUENCY:
        told = " ".join(fields)
        raise InputError(f"{told!r} is no frequency (1 to {HIGHEST_FREQUENCY:,}) and tag", where=where, repair=_FORM)
    yield word, int(frequency)


def _fields(line: str) -> tuple[str, list[str]]:
    """The word, and what stands behind it."""
    word, tab, rest = line.partition("\t")
    if tab:
        return word.strip(), rest.split()
    line = line.strip()
    begin, _, rest = line.partition(" ")
    if rest and (kinds(codes(begin)) == Kind.HAN).all():
        return begin, [] if _TAG.fullmatch(rest.strip()) else rest.split()
    found = _TAIL.fullmatch(line)
    return (found["word"], found["rest"].split()) if found else (line, [])
