"""What the benchmark of learned sentence vectors reads; what is not used whole is chosen by key, always the same.

sentences   of a text, split by the package's own rules, from 8 to 60 characters, each once
judged      pairs with people's scores, of which vectors are asked
partners    pairs that belong together, to learn from and to be found; none of their texts is judged elsewhere
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.finetune_cells import by_key, file_of
from maskery.corpus.lines import Tally, raw_lines
from maskery.errors import InputError
from maskery.text.sentences import split
from maskery.vectors.judge.examples import TextPairs
from maskery.vectors.judge.read import read_vector_examples
from maskery.vectors.texts import source_of

SETS = ("STS-B", "ATEC", "BQ", "LCQMC", "PAWSX")
SHORTEST, LONGEST = 8, 60
"""Characters of a sentence."""
WHOLE = {"STS-B.train.tsv": 4.0, "ATEC.train_small.tsv": 1.0}
"""Files of which no pair is judged, and the lowest score of a pair that belongs together. A file that is not there is
left out, and told."""
REST = ("BQ", "LCQMC")
"""Sets of which no training file is there: pairs of the development set that are not judged take its place."""


def sentences_of(path: Path, many: int) -> list[str]:
    """So many distinct sentences of a text (0: all), in its order."""
    found: dict[str, None] = {}
    with source_of(path) as source:
        for _, line in raw_lines(source, "strict", Tally()):
            for sentence in map(str.strip, split(line)):
                if SHORTEST <= len(sentence) <= LONGEST:
                    found[sentence] = None
    every = list(found)
    if len(every) < 2:
        cause = f"{len(every)} sentences of {SHORTEST} to {LONGEST} characters"
        raise InputError(cause, where=path, repair="--corpus-text FILE, a text of many lines")
    return [every[number] for number in by_key("sentences", len(every), many).tolist()]


def read_pairs(data: Path, file: str) -> TextPairs:
    found = read_vector_examples(file_of(data, file), "sts")
    assert isinstance(found, TextPairs)
    return found


def judged_pairs(data: Path, name: str, most: int) -> TextPairs:
    """Of the development set at most so many."""
    found = read_pairs(data, f"{name}.dev.tsv")
    return _taken(found, by_key(f"judged {name}", len(found), most))


def judged_sets(data: Path, most: int) -> dict[str, TextPairs]:
    return {name: judged_pairs(data, name, most) for name in SETS}


def texts_of(pairs: Iterable[TextPairs]) -> list[str]:
    """Every distinct text."""
    return list(dict.fromkeys(text for each in pairs for text in (*each.first, *each.second)))


def _taken(pairs: TextPairs, numbers: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]]) -> TextPairs:
    first, second = (tuple(side[number] for number in numbers) for side in (pairs.first, pairs.second))
    return replace(pairs, first=first, second=second, score=pairs.score[np.asarray(numbers)])


@dataclass(frozen=True, kw_only=True)
class Partners:
    """Pairs that belong together."""

    train: tuple[tuple[str, str], ...]
    held_out: tuple[tuple[str, str], ...]
    sources: dict[str, int]
    """Pairs that are trained on, by file."""
    judged: int
    """Pairs that were left out because a text of theirs is judged elsewhere."""
    shared: int
    """Pairs that were left out because a text of theirs is held out."""

    @property
    def notes(self) -> list[str]:
        listed = ", ".join(f"{many:,} of {name}" for name, many in self.sources.items())
        missing = [name for name in WHOLE if name not in self.sources]
        return [
            f"{len(self.train):,} pairs to learn from ({listed}), {len(self.held_out):,} held out",
            f"{self.judged:,} pairs left out: a text of theirs stands in a judged pair",
            f"{self.shared:,} pairs left out: a text of theirs is held out",
            *(f"{name} is not there" for name in missing),
        ]


def partners(data: Path, most: int, held_out: int) -> Partners:
    """`most`: judged pairs of each set, from which these stay away; `held_out`: pairs that are not learned from."""
    known = set(texts_of(judged_sets(data, most).values()))
    pool: dict[frozenset[str], tuple[str, str, str]] = {}
    judged = 0
    for file, pairs, least in _sources(data, most):
        for one, other, score in zip(pairs.first, pairs.second, pairs.score.tolist(), strict=True):
            if score < least or one == other or not one.strip() or not other.strip():
                continue
            if one in known or other in known:
                judged += 1
            else:
                pool.setdefault(frozenset((one, other)), (one, other, file))
    every = list(pool.values())
    asked = {every[number][:2] for number in by_key("partners", len(every), held_out).tolist()}
    texts = {text for pair in asked for text in pair}
    train = [each for each in every if not texts & set(each[:2])]
    if not train or not asked:
        raise InputError(
            f"{len(train)} pairs to learn from and {len(asked)} to be held out",
            where=data,
            repair="a smaller --held-out, or files with more pairs that belong together",
        )
    return Partners(
        train=tuple(each[:2] for each in train),
        held_out=tuple(each[:2] for each in every if each[:2] in asked),
        sources=dict(Counter(each[2] for each in train)),
        judged=judged,
        shared=len(every) - len(train) - len(asked),
    )


def _sources(data: Path, most: int) -> list[tuple[str, TextPairs, float]]:
    found = [(name, read_pairs(data, name), least) for name, least in WHOLE.items() if any(data.rglob(name))]
    for name in REST:
        pairs = read_pairs(data, f"{name}.dev.tsv")
        rest = np.setdiff1d(np.arange(len(pairs)), by_key(f"judged {name}", len(pairs), most))
        if len(rest):
            found.append((f"{name}.dev.tsv", _taken(pairs, rest), 1.0))
    return found
