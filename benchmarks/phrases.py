"""Mined lexicons on real text: phrases to be judged by hand, and entity marks against a list of names.

    python -m benchmarks.phrases top FILE [--many 200]
    python -m benchmarks.phrases agree MARKED TITLES

`top` prints the best entries of a file of `maskery lexicon mine` as a table with an empty column for the judgement.
`agree` takes a corpus whose entities are marked, and a list of names: it looks for the names as `corpus mark` does, and
compares stretch by stretch and token by token. Whether a list is right is not its question: titles hold ordinary words,
and lack people who have no page.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maskery.corpus.mark import pieces
from maskery.corpus.store import Corpus, Flag
from maskery.knowledge.entries import read_entries
from maskery.knowledge.lexicon import Lexicon


@dataclass
class Agreement:
    """Counts of stretches and of tokens: marked, listed, and both."""

    marked: int = 0
    listed: int = 0
    same: int = 0
    marked_tokens: int = 0
    listed_tokens: int = 0
    same_tokens: int = 0

    def lines(self) -> list[str]:
        rows = [
            ("stretches", self.marked, self.listed, self.same),
            ("tokens", self.marked_tokens, self.listed_tokens, self.same_tokens),
        ]
        found = ["| | marked | of the list | both | of the marked | of the list's |", "|---|---|---|---|---|---|"]
        for name, marked, listed, same in rows:
            shares = " | ".join(f"{100 * same / max(1, whole):.1f} %" for whole in (marked, listed))
            found.append(f"| {name} | {marked:,} | {listed:,} | {same:,} | {shares} |")
        return found


def top(file: Path, many: int) -> list[str]:
    """The first entries as a table; a tab ends a column."""
    entries = islice(chain.from_iterable(read_entries(file)), many)
    found = ["| # | entry | columns | right? |", "|---|---|---|---|"]
    for number, (text, rest) in enumerate(entries, 1):
        written = text.replace("|", r"\|")
        found.append(f"| {number} | {written} | {' '.join(rest.split())} | |")
    return found


def agreement(corpus: Corpus, titles: Lexicon) -> Agreement:
    """How the entity flags of a corpus agree with the places of the listed names."""
    total = Agreement()
    for begin, end, sentence_start in pieces(corpus.sentence_start):
        flags = np.asarray(corpus.flags[begin:end])
        start, stop = marked_stretches(flags)
        listed = titles.matches(np.asarray(corpus.tokens[begin:end]), (flags & Flag.WORD) != 0, sentence_start)
        width = len(flags) + 1
        here, there = start * width + stop, listed.start * width + listed.start + listed.length
        inside, inside_list = covered(start, stop, width), covered(listed.start, listed.start + listed.length, width)
        total.marked += len(start)
        total.listed += len(listed.start)
        total.same += len(np.intersect1d(here, there, assume_unique=True))
        total.marked_tokens += int(inside.sum())
        total.listed_tokens += int(inside_list.sum())
        total.same_tokens += int((inside & inside_list).sum())
    return total


def marked_stretches(flags: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the marked entities begin, and the token behind each."""
    start = np.flatnonzero(flags & Flag.ENTITY)
    outside = np.append(np.flatnonzero((flags & Flag.IN_ENTITY) == 0), len(flags))
    return start, outside[np.searchsorted(outside, start + 1)]


def covered(start: NDArray[np.int64], stop: NDArray[np.int64], width: int) -> NDArray[np.bool_]:
    """Which of the tokens lie in one of the stretches, none of which overlaps another."""
    change = np.bincount(start, minlength=width) - np.bincount(stop, minlength=width)
    return np.cumsum(change) > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    asked = parser.add_subparsers(dest="asked", required=True)
    best = asked.add_parser("top")
    best.add_argument("file", type=Path)
    best.add_argument("--many", type=int, default=200)
    both = asked.add_parser("agree")
    both.add_argument("corpus", type=Path)
    both.add_argument("titles", type=Path)
    given = parser.parse_args()
    if given.asked == "top":
        print("\n".join(top(given.file, given.many)))
    else:
        corpus = Corpus.open(given.corpus)
        print("\n".join(agreement(corpus, Lexicon.read(given.titles, corpus.tokenizer)).lines()))


if __name__ == "__main__":
    main()
