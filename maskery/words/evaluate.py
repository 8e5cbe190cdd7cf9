"""How good vectors are: agreement with people on pairs of words, and right answers to analogies.

A similarity file has two words and a score a line; it is answered by Spearman's correlation of scores and cosines. An
analogy file has four words a line, "a is to b as c is to d", under lines `: section`; right is where d is the word
nearest to b - a + c (unit vectors), a, b and c left out. Words are looked up without regard to case, and the commonest
spelling counts. A line with a word that has no vector is not asked; coverage is the share of those that are. The
numbers are those of gensim's evaluate_word_pairs and evaluate_word_analogies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskery.errors import InputError, TextError
from maskery.knowledge.lines import blocks
from maskery.words.vectors import WordVectors

_BLOCK = 64
_FORM = "write two words and a score a line, or four words a line under lines that begin with a colon"


@dataclass(frozen=True, kw_only=True)
class Similarity:
    file: str
    pairs: int
    known: int
    """Pairs of which both words have vectors."""
    spearman: float | None
    """None where it is not defined: fewer than two pairs, or all alike."""
    pearson: float | None

    @property
    def coverage(self) -> float:
        return self.known / self.pairs


@dataclass(frozen=True, kw_only=True)
class Section:
    name: str
    questions: int
    known: int
    right: int

    @property
    def accuracy(self) -> float | None:
        return self.right / self.known if self.known else None

    @property
    def coverage(self) -> float:
        return self.known / self.questions if self.questions else 0.0


@dataclass(frozen=True, kw_only=True)
class Analogies:
    file: str
    sections: list[Section]

    @cached_property
    def total(self) -> Section:
        counts = {name: sum(getattr(each, name) for each in self.sections) for name in ("questions", "known", "right")}
        return Section(name="all", **counts)


def evaluate(
    vectors: WordVectors, path: str | Path, progress: Callable[[int, int], None] | None = None
) -> Similarity | Analogies:
    """Which of the two a file is, its lines say. A file of which the vectors know nothing is refused."""
    path = Path(path)
    lines = list(_filled(path))
    if not lines:
        raise TextError("the file holds no line", file=path, repair=_FORM)
    folded = _Folded(vectors)
    if any(line.startswith(":") for _, line in lines) or len(lines[0][1].split()) == 4:
        return _analogies(folded, lines, path, progress)
    return _similarity(folded, lines, path)


def _filled(path: Path) -> Iterator[tuple[int, str]]:
    for number, lines in blocks(path):
        for at, line in enumerate(lines, number):
            if line.strip() and not line.startswith("#"):
                yield at, line


class _Folded:
    """Rows by the word in capitals: the first, which is the commonest, stands for all."""

    def __init__(self, vectors: WordVectors) -> None:
        self.vectors = vectors
        self.first: dict[str, int] = {}
        self.alike: dict[int, list[int]] = defaultdict(list)
        for row, word in enumerate(vectors.words):
            self.alike[self.first.setdefault(word.upper(), row)].append(row)

    def rows(self, words: list[str]) -> list[int] | None:
        """One for each word; None if one has no vector."""
        found = [self.first.get(word.upper(), -1) for word in words]
        return None if -1 in found else found


def _nothing_known(many: int, what: str, path: Path, vectors: WordVectors) -> InputError:
    some = ", ".join(vectors.words[:5])
    return InputError(
        f"the vectors know the words of none of the {many:,} {what}: they are of another vocabulary ({some}, ...)",
        where=path,
        repair="give a file in the language and spelling of the vectors",
    )


def _similarity(folded: _Folded, lines: list[tuple[int, str]], path: Path) -> Similarity:
    rows, scores, pairs = [], [], 0
    for place, (number, line) in enumerate(lines):
        parts = line.split("\t") if "\t" in line else line.split()
        score = _score(parts[2]) if len(parts) == 3 else None
        if score is None:
            if place == 0 and len(parts) == 3 and len(lines) > 1:
                continue  # names of the columns
            raise TextError(f"two words and a score were expected, not {line!r}", file=path, line=number, repair=_FORM)
        pairs += 1
        found = folded.rows([part.strip() for part in parts[:2]])
        if found is not None:
            rows.append(found)
            scores.append(score)
    if not rows:
        raise _nothing_known(pairs, "pairs", path, folded.vectors)
    unit, asked = folded.vectors.unit, np.array(rows)
    cosine = np.einsum("nd,nd->n", unit[asked[:, 0]], unit[asked[:, 1]]).astype(np.float64)
    given = np.array(scores)
    return Similarity(
        file=path.name,
        pairs=pairs,
        known=len(rows),
        spearman=correlation(ranks(cosine), ranks(given)),
        pearson=correlation(cosine, given),
    )


def _score(text: str) -> float | None:
    try:
        score = float(text)
    except ValueError:
        return None
    return score if np.isfinite(score) else None


def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 for the smallest; equal values share the mean of their ranks."""
    _, place, many = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(many)
    mean: NDArray[np.float64] = (last - (many - 1) / 2)[place]
    return mean


def correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    """Pearson's."""
    one, other = one - one.mean(), other - other.mean()
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(np.clip(one @ other / size, -1, 1)) if size > 0 else None


class _Question(NamedTuple):
    section: int
    rows: list[int]


def _analogies(
    folded: _Folded, lines: list[tuple[int, str]], path: Path, progress: Callable[[int, int], None] | None
) -> Analogies:
    names, asked, known = [], [], []
    for number, line in lines:
        if line.startswith(":"):
            names.append(line[1:].strip())
            asked.append(0)
            continue
        words = line.split()
        if len(words) != 4:
            raise TextError(f"four words were expected, not {line!r}", file=path, line=number, repair=_FORM)
        if not names:
            names.append(path.stem)
            asked.append(0)
        asked[-1] += 1
        found = folded.rows(words)
        if found is not None:
            known.append(_Question(len(names) - 1, found))
    if not known:
        raise _nothing_known(sum(asked), "questions", path, folded.vectors)
    right = _answered(folded, np.array([question.rows for question in known]), progress)
    section = np.array([question.section for question in known])
    all_known = np.bincount(section, minlength=len(names)).tolist()
    all_right = np.bincount(section, right, minlength=len(names)).astype(int).tolist()
    sections = zip(names, asked, all_known, all_right, strict=True)
    return Analogies(
        file=path.name,
        sections=[Section(name=name, questions=many, known=k, right=r) for name, many, k, r in sections],
    )


def _answered(
    folded: _Folded, rows: NDArray[np.int64], progress: Callable[[int, int], None] | None
) -> NDArray[np.bool_]:
    """(Q,) whether the nearest word to b - a + c is d, in whatever case."""
    unit = folded.vectors.unit
    right = np.zeros(len(rows), dtype=bool)
    for start in range(0, len(rows), _BLOCK):
        a, b, c, d = rows[start : start + _BLOCK].T
        near = (unit[b] - unit[a] + unit[c]) @ unit.T
        for question, given in enumerate(zip(a.tolist(), b.tolist(), c.tolist(), strict=True)):
            for row in given:
                near[question, folded.alike[row]] = -np.inf
        best = near.argmax(axis=1).tolist()
        words = folded.vectors.words
        right[start : start + _BLOCK] = [
            folded.first[words[row].upper()] == wanted for row, wanted in zip(best, d.tolist(), strict=True)
        ]
        if progress is not None:
            progress(min(start + _BLOCK, len(rows)), len(rows))
    return right
