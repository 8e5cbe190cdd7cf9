"""Blanks in sentences that the model has not read, chosen by a rule, not for their result.

A held-out sentence is taken if it is neither short nor long and holds a word of one token that is common in the
training text but not among the commonest (whose guess needs no context). The sentences come in a keyed order; the blank
in each is a keyed draw among its fitting words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maskery import randomness
from maskery.checkpoint.model import Model
from maskery.corpus.store import Corpus, Flag
from maskery.text.tokenizer import Tokenizer

SHORTEST, LONGEST = 8, 24
"""Tokens of a sentence."""
COMMON = 100
"""How often a hidden word stands in the training text at least, if the text is long enough."""
_COMMONEST = 20
"""So many of the most frequent tokens are never hidden."""
_SPACES = (
    (re.compile(r"(?<=[^\x00-\x7f]) (\[MASK\]) (?=[^\x00-\x7f])"), r"\1"),
    (re.compile(r"(?<=[^\x00-\x7f]) (?=[^\x00-\x7f])"), ""),
    (re.compile(r"(?<=[(\[{]) | (?=[)\]}])"), ""),
    (re.compile(r"(?<=\w) _ (?=\w)"), "_"),
    (re.compile(r" ' (?=(?:s|t|re|ve|ll|d|m)\b)"), "'"),
)
"""Spaces that the decoder puts around signs and between Han characters, and what a reader expects there."""


@dataclass(frozen=True)
class Sentence:
    ids: NDArray[np.int64]
    blank: int
    """The place in `ids` that is hidden."""


@dataclass(frozen=True)
class Blank:
    text: str
    """With the mask in it, as `maskery fill` takes it."""
    truth: str
    guesses: tuple[tuple[str, float], ...]
    """Tokens and probabilities, the best first."""

    @property
    def rank(self) -> int | None:
        """1 if the first guess is right; None if no guess is."""
        names = [token for token, _ in self.guesses]
        return names.index(self.truth) + 1 if self.truth in names else None

    def plain(self) -> dict[str, Any]:
        guesses = [{"token": token, "probability": probability} for token, probability in self.guesses]
        return {"text": self.text, "truth": self.truth, "guesses": guesses, "rank": self.rank}


def choose(corpus: Corpus, counts: NDArray[np.int64], number: int, seed: int) -> list[Sentence]:
    """The first `number` sentences of the rule; fewer where the held-out text has no more."""
    spans = heldout_sentences(corpus)
    if not len(spans):
        return []
    order = randomness.permute(randomness.key(seed, "demo sentences"), np.arange(len(spans)), len(spans))
    fitting = fitting_tokens(corpus, counts)
    found: list[Sentence] = []
    for place in order:
        start, end = spans[place]
        places = blank_places(corpus, fitting, int(start), int(end))
        if len(places):
            key = randomness.keys(seed, "demo blanks", start)
            blank = places[int(randomness.below(key, "place", len(places))[0])]
            found.append(Sentence(corpus.tokens[start:end].astype(np.int64), int(blank)))
        if len(found) == number:
            break
    return found


def heldout_sentences(corpus: Corpus) -> NDArray[np.int64]:
    """(S, 2) token ranges of the held-out sentences of a fitting length."""
    documents = corpus.documents("heldout")
    ranges = [np.arange(corpus.document_start[d], corpus.document_start[d + 1]) for d in documents]
    sentences = np.concatenate(ranges) if ranges else np.zeros(0, dtype=np.int64)
    spans = np.stack([corpus.sentence_start[sentences], corpus.sentence_start[sentences + 1]], axis=1)
    length = spans[:, 1] - spans[:, 0]
    fitting: NDArray[np.int64] = spans[(length >= SHORTEST) & (length <= LONGEST)]
    return fitting


def fitting_tokens(corpus: Corpus, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(V,) ids of letters that are common, but not among the commonest."""
    enough = min(COMMON, max(2, int(counts.sum()) // 1000))
    fitting: NDArray[np.bool_] = counts >= enough
    fitting[np.argsort(-counts, kind="stable")[:_COMMONEST]] = False
    pieces = corpus.tokenizer.pieces
    fitting &= np.array([piece.isalpha() for piece in pieces])
    return fitting


def blank_places(corpus: Corpus, fitting: NDArray[np.bool_], start: int, end: int) -> NDArray[np.int64]:
    """Places in the sentence of whole words, or in Chinese characters, that may be hidden; the first word may not."""
    tokens, word = corpus.tokens[start:end], (corpus.flags[start:end] & Flag.WORD) != 0
    whole = word & np.append(word[1:], True)
    han = np.array([not corpus.tokenizer.pieces[token].isascii() for token in tokens])
    allowed = fitting[tokens] & (whole | han)
    allowed[0] = False
    return np.flatnonzero(allowed)


def fill(model: Model, tokenizer: Tokenizer, sentences: list[Sentence], top: int = 3) -> Iterator[Blank]:
    """The model's best guesses for each blank."""
    mask = tokenizer.specials.mask
    assert mask is not None, "the demo trains its own tokenizer, which has one"
    for sentence in sentences:
        ids = sentence.ids.copy()
        truth = tokenizer.tokens(ids[sentence.blank])[0]
        ids[sentence.blank] = mask
        framed = [tokenizer.specials.cls, *ids.tolist(), tokenizer.specials.sep]
        with torch.inference_mode():
            best = model.logits(torch.tensor([framed]))[0, sentence.blank + 1].softmax(-1).topk(top)
        guesses = zip(tokenizer.tokens(best.indices.tolist()), best.values.tolist(), strict=True)
        yield Blank(readable(tokenizer, ids), truth, tuple(guesses))


def readable(tokenizer: Tokenizer, ids: NDArray[Any]) -> str:
    """Text of ids with their marks, without most of the decoder's own spaces; it still reads as the same tokens."""
    text = tokenizer.decode(ids, specials=True)
    for spaces, instead in _SPACES:
        text = spaces.sub(instead, text)
    return text
