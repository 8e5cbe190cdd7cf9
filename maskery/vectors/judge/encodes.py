"""What an encoder is here, and asking one: every distinct text once, in blocks, and no vector that is not a number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from maskery.errors import ArgumentError, InputError

Vectors = NDArray[np.float32]
Numbers = NDArray[np.float64]
Told = Callable[[int], None]
"""Told how many texts were encoded since it was called before."""
BLOCK = 4096
"""Texts that an encoder is given at once: enough to put those of one length together."""
_SHOWN = 60


@runtime_checkable
class Encodes(Protocol):
    """Anything that makes a vector of every text. `encode_query` and `encode_document`, where there are such, are asked
    for the two sides of a search."""

    def encode(self, texts: Sequence[str], /) -> Vectors:
        """(n, D), a row a text."""


def encoding(encoder: Encodes, role: str = "") -> Callable[[Sequence[str]], Vectors]:
    """The method for a role: `query`, `document` or none."""
    own = getattr(encoder, f"encode_{role}", None) if role else None
    found: Callable[[Sequence[str]], Vectors] = own if callable(own) else encoder.encode
    return found


def vectors_of(encoder: Encodes, texts: Sequence[str], told: Told | None = None, role: str = "") -> Vectors:
    """(n, D) of all texts; equal texts are encoded once and have one vector."""
    require_texts(texts)
    number = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    distinct = np.concatenate(list(blocks_of(encoder, list(number), told, role)))
    return distinct[[number[text] for text in texts]]


def blocks_of(encoder: Encodes, texts: Sequence[str], told: Told | None, role: str = "") -> Iterator[Vectors]:
    """The vectors of `BLOCK` texts at a time."""
    encode = encoding(encoder, role)
    width = None
    for begin in range(0, len(texts), BLOCK):
        part = list(texts[begin : begin + BLOCK])
        found = _checked(np.asarray(encode(part)), part, width)
        width = found.shape[1]
        if told is not None:
            told(len(part))
        yield found


def _checked(found: Vectors, texts: Sequence[str], width: int | None) -> Vectors:
    wrong = found.ndim != 2 or len(found) != len(texts) or not found.shape[1]
    if wrong or not np.issubdtype(found.dtype, np.floating) or width not in (None, found.shape[1]):
        raise ArgumentError(
            f"the encoder made {found.dtype} {found.shape} of {len(texts):,} texts",
            repair="encode(texts) has to give float32 of the shape (texts, dimensions)",
        )
    bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if bad.size:
        raise InputError(
            f"the vector of {texts[int(bad[0])][:_SHOWN]!r} is not finite, and those of {bad.size - 1:,} other texts",
            repair="the weights or the training are broken; no figure can be trusted",
        )
    return np.asarray(found, dtype=np.float32)


def require_texts(texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise ArgumentError("one text was given, a list of texts is wanted", repair="[text]")
    if not len(texts):
        raise ArgumentError("there is no text", repair="give at least one text")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            shown = repr(text)[:_SHOWN]
            raise ArgumentError(f"text {place} is {shown}, no text", repair="give texts only; str(...) makes one")
