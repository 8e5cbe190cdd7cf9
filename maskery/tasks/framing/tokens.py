"""The texts of all examples as one run of tokens. Texts are tokenised once, whatever rows are made of them later."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from maskery.tasks.examples import Examples
from maskery.tasks.framing.offsets import exact
from maskery.text.tokenizer import Tokenizer
from maskery.text.unknown import about_unknown, unknown_characters

_STRANGE = 0.2
"""Tokens that the vocabulary does not know, as a part of all: with more it is likely not one for the text."""


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """N tokens of T texts end to end; those of text t are first[t] .. first[t+1]."""

    ids: NDArray[np.int32]
    start: NDArray[np.int32]
    """(N,) where each token begins in its text, in characters."""
    stop: NDArray[np.int32]
    first: NDArray[np.int64]
    """(T+1,)"""

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.first)


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """Examples as tokens. Place e*F+f is for field f of example e; behind these stand all choices, in their order."""

    task: str
    fields: tuple[str, ...]
    tokens: Tokens
    """Of different texts: a context that has several questions is there once."""
    text: NDArray[np.int64]
    """The number of the text at each place."""
    choices: NDArray[np.int64]
    """(E,) how many choices each example has."""
    unknown: int
    """Tokens that stand for text which the vocabulary cannot write."""
    strange: str = ""
    """Which text that is, with the remedy."""

    def __len__(self) -> int:
        return len(self.choices)

    @property
    def notes(self) -> tuple[str, ...]:
        every = len(self.tokens.ids)
        empty = int((self.tokens.lengths[self.text[: len(self) * len(self.fields)]] == 0).sum())
        told = []
        if self.unknown:
            share = self.unknown / every
            hint = ": is this a model for another language?" if share > _STRANGE else ""
            told.append(f"{self.unknown:,} of {every:,} tokens ({share:.2%}) are unknown to the vocabulary{hint}")
            told += filter(None, [self.strange])
        if empty:
            told.append(f"{empty:,} of {len(self) * len(self.fields):,} texts hold no token")
        return tuple(told)


def encode(examples: Examples, tokenizer: Tokenizer, marks: Mapping[str, int] | None = None) -> Encoded:
    """Tokenise every text and every choice in one go. `marks`: those of the user's own (`Marks.ids`)."""
    for example in examples:
        if len(example.texts) != len(examples.fields):
            raise example.wrong(
                f"has {len(example.texts)} texts, not {len(examples.fields)} ({', '.join(examples.fields)})",
                "give every example a text for each field",
            )
    texts = [*chain.from_iterable(e.texts for e in examples), *chain.from_iterable(e.choices for e in examples)]
    _check_characters(examples, texts)
    number: dict[str, int] = {}
    place = np.array([number.setdefault(text, len(number)) for text in texts], dtype=np.int64)
    tokens = encode_texts(list(number), tokenizer, marks)
    unknown = tokens.ids == tokenizer.specials.unk
    strange = _strange(tokens, unknown, list(number))
    return Encoded(
        task=examples.task,
        fields=examples.fields,
        tokens=tokens,
        text=place,
        choices=np.array([len(e.choices) for e in examples], dtype=np.int64),
        unknown=int(unknown.sum()),
        strange=about_unknown(unknown_characters(tokenizer, strange)) if strange else "",
    )


def _strange(tokens: Tokens, unknown: NDArray[np.bool_], texts: Sequence[str]) -> Counter[str]:
    """What stands where tokens are unknown."""
    at = np.flatnonzero(unknown)
    number = np.searchsorted(tokens.first, at, side="right") - 1
    places = zip(number.tolist(), tokens.start[at].tolist(), tokens.stop[at].tolist(), strict=True)
    return Counter(texts[text][start:stop] for text, start, stop in places)


def encode_texts(texts: Sequence[str], tokenizer: Tokenizer, marks: Mapping[str, int] | None = None) -> Tokens:
    if marks and any(name in text for text in texts for name in marks):
        return _with_marks(texts, tokenizer, marks)
    flat = tokenizer.encode_flat(texts)
    start, stop = exact(texts, flat.lengths, flat.start, flat.end)
    first = np.concatenate(([0], np.cumsum(flat.lengths)))
    return Tokens(ids=flat.ids.astype(np.int32), start=start, stop=stop, first=first)


def _with_marks(texts: Sequence[str], tokenizer: Tokenizer, marks: Mapping[str, int]) -> Tokens:
    """Texts parted at their marks; a mark is a part of one token."""
    parting = re.compile("(" + "|".join(re.escape(name) for name in sorted(marks, key=len, reverse=True)) + ")")
    parted = [parting.split(text) for text in texts]  # marks stand at the odd places
    number = np.fromiter(map(len, parted), dtype=np.int64, count=len(parted))
    parts = [*chain.from_iterable(parted)]
    odd = (np.arange(len(parts)) - np.repeat(np.cumsum(number) - number, number)) % 2 == 1
    size = np.fromiter(map(len, parts), dtype=np.int64, count=len(parts))
    end = np.cumsum(size)
    text_end = np.cumsum([len(text) for text in texts])
    base = end - size - np.repeat(text_end - [len(text) for text in texts], number)

    plain = encode_texts([part if not mark else "" for part, mark in zip(parts, odd, strict=True)], tokenizer)
    lengths = plain.lengths + odd
    is_mark = np.repeat(odd, lengths)
    out = [np.empty(len(is_mark), dtype=np.int32) for _ in range(3)]
    of_part = np.repeat(base, lengths).astype(np.int32)
    places = (plain.ids, plain.start, plain.stop)
    of_marks = (np.array([marks[part] for part, mark in zip(parts, odd, strict=True) if mark]), 0, size[odd])
    for made, tokens, mark in zip(out, places, of_marks, strict=True):
        made[~is_mark], made[is_mark] = tokens, mark
    per_text = np.add.reduceat(lengths, np.cumsum(number) - number) if len(texts) else lengths
    first = np.concatenate(([0], np.cumsum(per_text)))
    return Tokens(ids=out[0], start=out[1] + of_part, stop=out[2] + of_part, first=first)


def _check_characters(examples: Examples, texts: Sequence[str]) -> None:
    """Half a character (a lone surrogate, as some JSON files hold) is no text, and tokenizers fail without a word."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        for example in examples:
            try:
                "".join((*example.texts, *example.choices)).encode()
            except UnicodeEncodeError as error:
                half = ascii(error.object[error.start])
                raise example.wrong(f"holds half a character, {half}", "write the file anew in UTF-8") from None
