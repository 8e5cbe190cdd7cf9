"""Lists of phrases or entities, and where they stand in a text that is already tokens.

Of a list (`entries`) only the entries are used. An entry is found where its ids are, from the start of a word to the
end of a word and inside one sentence; from left to right, the longest first, without overlap. An entry with a token
that the tokenizer does not know is left out, and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maskery.knowledge.entries import read_entries
from maskery.knowledge.lines import Progress
from maskery.knowledge.spelling import Spelt, joined, spellings
from maskery.knowledge.trie import Numbers, Trie
from maskery.text.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class Matches:
    """M places where entries stand, ascending."""

    start: Numbers
    """(M,) the first token."""
    length: Numbers
    """(M,) tokens."""
    entry: Numbers
    """(M,) numbers of the trie."""


class Lexicon:
    """What a list, or several read as one, says to a tokenizer."""

    def __init__(self, spelt: Sequence[Spelt], vocabulary: int) -> None:
        """`spelt` holds all entries once for each way of writing them."""
        given = len(spelt[0].length)
        ways = joined(spelt)
        self.trie = Trie(ways.ids, ways.length, vocabulary)
        number = self.trie.number.reshape(len(spelt), given)
        usable = (number >= 0).any(axis=0)
        too_long = np.logical_and.reduce([way.too_long for way in spelt])
        # The first way that can be written stands for the entry.
        name = np.take_along_axis(number, (number >= 0).argmax(axis=0)[None], axis=0)[0]
        place = np.flatnonzero(usable)
        first = np.full(len(self.trie), -1, dtype=np.int64)
        first[name[place][::-1]] = place[::-1]  # of equal places the last is kept, here the first of the list
        one = first[first >= 0]
        self._ways = number[:, one]
        self.line: NDArray[np.int32] = np.full(given, -1, dtype=np.int32)
        """(E,) which of the different entries each of the given ones is; -1 for one that is left out."""
        self.line[place] = (np.cumsum(first >= 0, dtype=np.int32) - 1)[name[place]]
        self.entries = given
        """Lines with an entry."""
        self.distinct = len(one)
        """Different entries that can be looked for."""
        self.repeated = int(usable.sum()) - self.distinct
        """Entries that were given before, or are spelt like one before (case, width)."""
        self.too_long = int(too_long.sum())
        """Entries of more tokens than `spelling.LONGEST`."""
        self.unknown = given - int(usable.sum()) - self.too_long
        """Entries with a token that the tokenizer does not know."""

    @classmethod
    def read(
        cls, files: str | Path | Sequence[str | Path], tokenizer: Tokenizer, progress: Progress | None = None
    ) -> Lexicon:
        """From one file or several."""
        paths = [files] if isinstance(files, str | Path) else list(files)
        parts = [part for path in paths for part in _spelt(Path(path), tokenizer, progress)]
        ways = range(len(parts[0]))
        return cls([joined([part[way] for part in parts]) for way in ways], tokenizer.vocabulary)

    def matches(self, tokens: NDArray[np.integer], word: NDArray[np.bool_], sentence_start: Numbers) -> Matches:
        """In n tokens, of which `word` (n,) start a word; sentences begin at `sentence_start` (S+1,), from 0 to n."""
        at = np.flatnonzero(word)
        room = sentence_start[np.searchsorted(sentence_start, at, side="right")] - at
        edge = np.append(word, True)
        node, length, entry = (np.zeros(len(at), dtype=np.int64) for _ in range(3))
        on_way = np.arange(len(at))
        for depth in range(self.trie.depth):
            on_way = on_way[room[on_way] > depth]
            reached = self.trie.step(depth, node[on_way], tokens[at[on_way] + depth].astype(np.int64))
            on_way, reached = on_way[reached >= 0], reached[reached >= 0]
            if not len(on_way):
                break
            node[on_way] = reached
            ending = self.trie.entry(depth, reached)
            whole = (ending >= 0) & edge[at[on_way] + depth + 1]
            length[on_way[whole]], entry[on_way[whole]] = depth + 1, ending[whole]
        some = np.flatnonzero(length)
        some = some[_from_left(at[some], at[some] + length[some])]
        return Matches(start=at[some], length=length[some], entry=entry[some])

    def counts(self, found: Numbers) -> Numbers:
        """(distinct,) how often each entry was found; `found` is by numbers of the trie."""
        ways = np.sort(self._ways, axis=0)
        again = np.zeros(ways.shape, dtype=bool)
        again[1:] = ways[1:] == ways[:-1]
        total: Numbers = np.where(again | (ways < 0), 0, found[ways]).sum(axis=0)
        return total

    def distinct_in(self, seen: NDArray[np.bool_]) -> int:
        """How many entries were seen; `seen` is by numbers of the trie."""
        return int((seen[self._ways] & (self._ways >= 0)).any(axis=0).sum())


def _from_left(start: Numbers, end: Numbers) -> NDArray[np.bool_]:
    """Which of the stretches, by ascending start, are taken from left to right so that none overlaps another.

    Those that begin behind the end of all before them are; each lets the next that it leaves free follow. All
    clusters of overlapping stretches go on at the same time.
    """
    reach = np.maximum.accumulate(np.concatenate(([-1], end)))
    taken = start >= reach[:-1]
    last = np.flatnonzero(taken)
    while len(last):
        following = np.searchsorted(start, end[last])
        following = following[following < len(start)]
        last = following[~taken[following]]
        taken[last] = True
    return taken


def _spelt(path: Path, tokenizer: Tokenizer, progress: Progress | None) -> list[list[Spelt]]:
    """The entries of a file, a part for each block of lines; each in all ways of writing them."""
    return [spellings(tokenizer, [entry for entry, _ in block]) for block in read_entries(path, progress)]
