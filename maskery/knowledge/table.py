"""A table of similar words for one tokenizer, as a text file: what `maskery words similar` writes and a recipe names.

The first line is a comment with JSON: the tokenizer's fingerprint, the counts, and what the table was made of. Behind
it stands one word a line, with its similar words and their scores, best first, all parted by tabs. The counts show a
file that was cut; the fingerprint, one that was made for another vocabulary, where words have other lengths.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

from maskery.errors import InputError, TextError
from maskery.files import write_text
from maskery.knowledge.lines import Progress, blocks
from maskery.knowledge.synonyms import Group
from maskery.text.tokenizer import Tokenizer

FORMAT = 1
_KIND = "similar words"
_START = f'# {{"maskery": "{_KIND}"'
_ANEW = "make it anew: maskery words similar SOURCE --corpus DIR --out FILE"
_FORM = f"a line is a word, then similar words, each with its score, parted by tabs; or {_ANEW}"

Scored = Sequence[tuple[str, float]]
"""Similar words and their scores, best first."""


@dataclass(frozen=True, kw_only=True)
class SimilarTable:
    entries: Mapping[str, Scored]
    tokenizer: str
    """Fingerprint of the tokenizer for which the words have as many tokens as their similar ones."""
    made: Mapping[str, Any]
    """What it was made of, for people: source, nearest, floor, ..."""

    @property
    def pairs(self) -> int:
        return sum(map(len, self.entries.values()))

    def similar(self, word: str) -> Scored:
        """The similar words of a word, best first; one that the table lacks is refused with those spelt like it."""
        if word not in self.entries:
            alike = [other for other in self.entries if set(other) & set(word) and abs(len(other) - len(word)) < 3]
            near = get_close_matches(word, alike, n=5, cutoff=0.5)
            hint = f"did you mean {', '.join(near)}?" if near else "a word that the source lacks, or that has no like"
            raise InputError(f"the table has no {word!r}", repair=hint)
        return self.entries[word]

    def groups(self) -> Iterator[Group]:
        for word, scored in self.entries.items():
            yield [word, *(other for other, _ in scored)], False

    def save(self, path: str | Path) -> None:
        head = {
            "maskery": _KIND,
            "format": FORMAT,
            "tokenizer": self.tokenizer,
            "words": len(self.entries),
            "pairs": self.pairs,
            "made": dict(self.made),
        }
        lines = [f"# {json.dumps(head, ensure_ascii=False)}"]
        for word, scored in self.entries.items():
            lines.append("\t".join([word, *(f"{other}\t{score:.4f}" for other, score in scored)]))
        write_text(Path(path), "\n".join(lines) + "\n")

    @classmethod
    def read(cls, path: str | Path, progress: Progress | None = None) -> SimilarTable:
        path = Path(path)
        head: dict[str, Any] = {}
        entries: dict[str, Scored] = {}
        seen: dict[str, int] = {}
        for first, lines in blocks(path, progress):
            if first == 1:
                head = _head(lines[0], path)
            for number, line in enumerate(lines, first):
                if number > 1 and line.strip():
                    word, scored = _entry(line, path, number)
                    if word in seen:
                        cause = f"{word!r} is given again: it stands in line {seen[word]}"
                        raise TextError(cause, file=path, line=number, repair="remove one of the lines")
                    entries[word], seen[word] = scored, number
        table = cls(entries=entries, tokenizer=head["tokenizer"], made=head["made"])
        for name, found in (("words", len(entries)), ("pairs", table.pairs)):
            if head[name] != found:
                cause = f"the first line says {head[name]} {name}, the file has {found}"
                repair = f"if you changed the table, correct the line; if it was cut, {_ANEW}"
                raise TextError(cause, file=path, line=1, repair=repair)
        return table

    def require(self, tokenizer: Tokenizer, path: str | Path) -> None:
        """Refuse a table that was made for another tokenizer."""
        if self.tokenizer != tokenizer.fingerprint:
            raise InputError(
                f"the table was made for the tokenizer {self.tokenizer[:12]}, this one is {tokenizer.fingerprint[:12]}",
                where=path,
                repair=f"make one for this corpus: maskery words similar {self.made.get('source', 'SOURCE')} "
                "--corpus DIR --out FILE",
            )


def is_table(path: str | Path) -> bool:
    """Whether a file says in its first line that it is one."""
    with Path(path).open("rb") as file:
        return file.read(len(_START)).decode(errors="replace") == _START


def _head(line: str, path: Path) -> dict[str, Any]:
    try:
        head = json.loads(line.removeprefix("# "))
    except (ValueError, RecursionError) as error:
        raise TextError(f"the first line cannot be read ({error})", file=path, line=1, repair=_ANEW) from None
    forms = {"format": int, "tokenizer": str, "words": int, "pairs": int, "made": dict}
    wrong = [key for key, form in forms.items() if not isinstance(head, dict) or not isinstance(head.get(key), form)]
    if wrong:
        raise TextError(f"the first line lacks {', '.join(wrong)}", file=path, line=1, repair=_ANEW)
    if head["format"] != FORMAT:
        cause = f"the table has format {head['format']}, this version reads {FORMAT}"
        raise TextError(cause, file=path, line=1, repair=_ANEW)
    found: dict[str, Any] = head
    return found


def _entry(line: str, path: Path, number: int) -> tuple[str, Scored]:
    word, *rest = line.split("\t")
    if len(rest) % 2 or not rest or not all((word, *islice(rest, 0, None, 2))):
        raise TextError("no word with similar ones and their scores", file=path, line=number, repair=_FORM)
    try:
        scores = [float(each) for each in rest[1::2]]
    except ValueError as error:
        raise TextError(f"a score is no number ({error})", file=path, line=number, repair=_FORM) from None
    if not all(map(math.isfinite, scores)):
        raise TextError("a score is no number (nan or inf)", file=path, line=number, repair=_FORM)
    return word, list(zip(rest[::2], scores, strict=True))
