"""A text as the mean of its words' vectors: the baseline that every encoder of texts has to beat.

`mean` weighs all words alike. `sif` is the smooth inverse frequency of Arora, Liang and Ma 2017: a word that makes up
the share p of the text its vectors were trained on counts a / (a + p), and from every vector the direction is taken out
that the vectors of many texts have in common: the first singular vector of the matrix of the texts given to `fit`, not
centred. The mean is over the words that have a vector; a text with none is a row of zeros, and is counted.

    encoder = StaticEncoder(WordVectors.load("my-vectors"), weighting="sif").fit(texts)
    encoder.encode(["..."])     # float32 (n, D)
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from maskery.arguments import checked
from maskery.errors import InputError, UnknownName
from maskery.text.words import Segmenter, segmenter
from maskery.words.vectors import AnyVectors, vectors_of

Weighting = Literal["mean", "sif"]
WEIGHTINGS = ("mean", "sif")


class StaticEncoder:
    """A text as the (weighted) mean of its words' vectors.

    encoder = maskery.StaticEncoder("my-vectors", weighting="sif").fit(texts)
    encoder.encode(["a text", "another"])                 # float32 (n, D)
    """

    @checked
    def __init__(
        self,
        vectors: AnyVectors,
        segmenter: Segmenter | None = None,
        weighting: Weighting = "mean",
        a: float = 1e-3,
    ) -> None:
        """`segmenter` finds the words of a text; that of the corpus the vectors were trained on is the right one."""
        if weighting not in WEIGHTINGS:
            raise UnknownName("weighting", weighting, WEIGHTINGS)
        if not 0 < a < np.inf:
            raise InputError(f"a is {a}: a number above 0 is wanted", repair="a=1e-3")
        self.vectors, self.weighting, self.a = vectors_of(vectors), weighting, a
        self._segmenter = segmenter or _words()
        self._capitals = any(word != word.lower() for word in self.vectors.words)
        self._weight = self._weights()
        self.common_: NDArray[np.float32] | None = None
        """(D,) the direction that `fit` found, of length one."""
        self.empty_ = 0
        """Texts of the last call that have no word with a vector."""

    @checked
    def fit(self, texts: Sequence[str], batch: int = 256) -> Self:
        """Find the direction that these texts have in common; a mean needs none."""
        _require_texts(texts)
        if self.weighting == "sif":
            square = np.zeros((self.vectors.width, self.vectors.width))
            self.empty_ = 0
            for block in self._blocks(texts, batch):
                square += block.astype(np.float64).T @ block
            if self.empty_ == len(texts):
                raise InputError(
                    f"none of the {len(texts):,} texts has a word with a vector",
                    repair="give texts in the language of the vectors",
                )
            # The first right singular vector of the texts is the last eigenvector of their products.
            self.common_ = np.linalg.eigh(square)[1][:, -1].astype(np.float32)
        return self

    @checked
    def encode(self, texts: Sequence[str], batch: int = 256) -> NDArray[np.float32]:
        """(n, D), a row a text."""
        _require_texts(texts)
        if self.weighting == "sif" and self.common_ is None:
            raise InputError(
                'weighting "sif" takes out what texts have in common, and has seen none',
                repair="call fit(texts) first, with texts of the kind that will be encoded",
            )
        self.empty_ = 0
        out = np.zeros((len(texts), self.vectors.width), dtype=np.float32)
        done = 0
        for block in self._blocks(texts, batch):
            if self.common_ is not None:
                block -= np.outer(block @ self.common_, self.common_)
            out[done : done + len(block)] = block
            done += len(block)
        return out

    def _weights(self) -> NDArray[np.float32]:
        if self.weighting == "mean":
            return np.ones(len(self.vectors.words), dtype=np.float32)
        total = int(np.sum(self.vectors.counts))
        if total <= 0:
            raise InputError(
                'weighting "sif" needs to know how common words are, and these vectors have no counts',
                repair='open the folder that maskery words train made, or take weighting="mean"',
            )
        share = np.asarray(self.vectors.counts, dtype=np.float64) / total
        return (self.a / (self.a + share)).astype(np.float32)

    def _blocks(self, texts: Sequence[str], batch: int) -> Iterator[NDArray[np.float32]]:
        """Weighted means of the words of `batch` texts at a time."""
        if batch < 1:
            raise InputError(f"batch is {batch}: at least 1 text is wanted", repair="batch=256")
        given = iter(texts)
        while part := list(islice(given, batch)):
            owner, weighted = self._known(part)
            many = np.bincount(owner, minlength=len(part))
            self.empty_ += int((many == 0).sum())
            block = np.zeros((len(part), self.vectors.width), dtype=np.float32)
            some = np.flatnonzero(many)
            if len(some):
                begin = (np.cumsum(many) - many)[some]
                block[some] = np.add.reduceat(weighted, begin, axis=0) / many[some, None].astype(np.float32)
            yield block

    def _known(self, texts: list[str]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """For every word that has a vector: the text it stands in, ascending, and its weighted vector."""
        # Words never reach over a line feed, so all texts are one call.
        whole = "\n".join(text.replace("\n", " ") for text in texts)
        numbers = self._segmenter(whole)
        if numbers is None:
            raise InputError(
                "this segmenter finds no words, and static vectors are of words", repair='segmenter("auto")'
            )
        edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(whole)]
        ends = np.cumsum([len(text) + 1 for text in texts])
        words = [whole[a:b] for a, b in pairwise(edges)]
        number = np.array([self._find(word) for word in words], dtype=np.int64)
        weighted = self.vectors.matrix[number] * self._weight[number, None]
        for place in np.flatnonzero(number < 0).tolist():
            if (made := self._unseen(words[place])) is not None:
                weighted[place], number[place] = made, len(self._weight)
        owner = np.searchsorted(ends, edges[:-1], side="right")
        return owner[number >= 0], weighted[number >= 0]

    def _unseen(self, word: str) -> NDArray[np.float32] | None:
        """Out of the n-grams of a word that training never saw, if there are any: so rare that its weight is 1."""
        if self.vectors.subwords is None or not word.strip():
            return None
        return self.vectors.subwords.vector(word if self._capitals else word.lower())

    def _find(self, word: str) -> int:
        """The number of a word as it stands, in small letters, or also without accents; -1 if it has none."""
        find = self.vectors.index.get
        found = find(word)
        if found is None:
            found = find(word.lower())
        if found is None and not word.isascii():
            plain = "".join(
                each for each in unicodedata.normalize("NFD", word.lower()) if not unicodedata.combining(each)
            )
            found = find(plain)
        return -1 if found is None else found


def _words() -> Segmenter:
    return segmenter("auto")


def _require_texts(texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise InputError("one text was given, a list of texts is wanted", repair="encode([text])")
