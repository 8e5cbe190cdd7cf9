"""The marks of a corpus put into a text of the user's: its phrases and entities are those that the corpus marks.

The lists that a corpus was marked with are not kept, but what was found of them stands in its flags. So the entries are
read from there: the marked stretches whose first token is one of the text's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskery.corpus.encode import Piece
from maskery.corpus.mark import KINDS, Kind, Layer, pieces
from maskery.corpus.mixture import Corpora, Mixture
from maskery.corpus.store import Corpus
from maskery.knowledge.lexicon import Lexicon
from maskery.knowledge.spelling import Spelt


@dataclass(frozen=True)
class Marked:
    flags: NDArray[np.uint8]
    """(n,) of the text's tokens, with `Flag.PHRASE` and the like where the corpus would have them."""
    kinds: frozenset[str]
    """phrases, entities: which of them the corpus marks."""


def marked_like(corpora: Corpora, text: Piece) -> Marked:
    """The text as the corpus would have marked it."""
    parts = corpora.parts if isinstance(corpora, Mixture) else (corpora,)
    sentence_start = np.concatenate(([0], np.cumsum(text.sentences, dtype=np.int64)))
    flags = text.flags.copy()
    kinds = {name for part in parts for name in part.manifest["options"].get("marks", {})}
    for name in sorted(kinds & set(KINDS)):
        kind = KINDS[name]
        found = {entry for part in parts for entry in _entries(part, kind, text.tokens)}
        if found:
            Layer(kind, _lexicon(sorted(found), corpora.tokenizer.vocabulary)).put(text.tokens, flags, sentence_start)
    return Marked(flags, frozenset(kinds))


def _entries(corpus: Corpus, kind: Kind, wanted: NDArray[np.uint32]) -> set[tuple[int, ...]]:
    """The different marked stretches that begin with one of the wanted tokens."""
    found: set[tuple[int, ...]] = set()
    for begin, end, _ in pieces(corpus.sentence_start):
        flags, tokens = np.asarray(corpus.flags[begin:end]), np.asarray(corpus.tokens[begin:end])
        start = np.flatnonzero((flags & kind.first) != 0)
        start = start[np.isin(tokens[start], wanted)]
        # A stretch goes on as long as its tokens are inside of one; whole sentences are read, so none is cut.
        outside = np.append(np.flatnonzero((flags & kind.inside) == 0), len(flags))
        stop = outside[np.searchsorted(outside, start + 1)]
        found.update(tuple(tokens[a:b].tolist()) for a, b in zip(start.tolist(), stop.tolist(), strict=True))
    return found


def _lexicon(entries: list[tuple[int, ...]], vocabulary: int) -> Lexicon:
    ids = np.array([each for entry in entries for each in entry], dtype=np.int32)
    length = np.array([len(entry) for entry in entries], dtype=np.int32)
    return Lexicon([Spelt(ids, length, np.zeros(len(entries), dtype=bool))], vocabulary)
