"""A store made of plain arrays, for tests of rows and corruption."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class FakeSpecials:
    pad: int = 0
    unk: int = 1
    cls: int = 2
    sep: int = 3
    mask: int | None = 4


@dataclass(frozen=True)
class FakeFacts:
    vocabulary: int
    specials: FakeSpecials = field(default_factory=FakeSpecials)

    @property
    def ordinary(self):
        return np.arange(5, self.vocabulary, dtype=np.int64)

    @property
    def frequency(self):
        """Token n stands n times."""
        return np.arange(self.vocabulary, dtype=np.int64)


class FakeStore:
    """`documents`: lists of sentence lengths. Token t of the store has id 5 + t % (vocabulary - 5)."""

    def __init__(self, documents, heldout=(), vocabulary=30_000):
        sentences = [length for document in documents for length in document]
        self.sentence_start = np.concatenate(([0], np.cumsum(sentences, dtype=np.int64))).astype(np.int64)
        self.document_start = np.concatenate(([0], np.cumsum([len(d) for d in documents]))).astype(np.int64)
        self.vocabulary, self.target_vocabulary = vocabulary, 0
        self.tokens = (5 + np.arange(self.sentence_start[-1]) % (vocabulary - 5)).astype(np.uint16)
        self.flags = (np.arange(len(self.tokens)) % 7 + 1).astype(np.uint8)
        self.heldout = np.isin(np.arange(len(documents)), list(heldout))
        self.specials = FakeSpecials()
        self.facts = FakeFacts(vocabulary)
        self.manifest = {"options": {"words": "auto"}}
        self.fingerprint = hashlib.sha256(repr((documents, sorted(heldout), vocabulary)).encode()).hexdigest()

    def documents(self, split):
        return np.flatnonzero(self.heldout if split == "heldout" else ~self.heldout)

    def document_of(self, token):
        """The document that holds a token."""
        sentence = np.searchsorted(self.sentence_start, token, side="right") - 1
        return int(np.searchsorted(self.document_start, sentence, side="right") - 1)


def random_store(seed, documents, sentences=(1, 20), tokens=(3, 40), **options):
    draw = np.random.default_rng(seed)
    return FakeStore(
        [
            draw.integers(tokens[0], tokens[1] + 1, draw.integers(sentences[0], sentences[1] + 1)).tolist()
            for _ in range(documents)
        ],
        **options,
    )
