"""How a tokenizer writes a word inside a text, as ids.

For some tokenizers that depends on what stands before it: byte-level BPE, unigram and char tokenizers write a space
into the token behind it, or as a token of its own that goes with the word. Then a word has several spellings: at the
start of a text, behind a space, and right behind another sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskery.text.tokenizer import Tokenizer

LONGEST = 64
"""Tokens; what is longer is no word and no phrase, but a line of text."""
_BEFORE = ("", " ", "。")
_PROBES = ("a", "dog", "北京")
_AT_ONCE = 1 << 15
"""Texts given to the tokenizer at a time, which holds more than a kilobyte for each until all are done."""


class Spelt(NamedTuple):
    """Texts as ids, end to end; a text of no id is one that the tokenizer does not know, or longer than `LONGEST`."""

    ids: NDArray[np.int32]
    length: NDArray[np.int32]
    """(E,) ids of each text."""
    too_long: NDArray[np.bool_]
    """(E,)"""


def spellings(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Spelt]:
    """The ways in which the tokenizer writes the texts; in the first stands nothing before them."""
    ways: dict[bytes, str] = {}
    for before in _BEFORE:
        probe = _spelt(tokenizer, _PROBES, before)
        ways.setdefault(probe.ids.tobytes() + b"/" + probe.length.tobytes(), before)
    parts = [texts[begin : begin + _AT_ONCE] for begin in range(0, max(1, len(texts)), _AT_ONCE)]
    return [joined([_spelt(tokenizer, part, before) for part in parts]) for before in ways.values()]


def joined(parts: Sequence[Spelt]) -> Spelt:
    """The texts of all parts, one way of writing them."""
    return Spelt(*(np.concatenate(columns) for columns in zip(*parts, strict=True))) if len(parts) > 1 else parts[0]


def _spelt(tokenizer: Tokenizer, texts: Sequence[str], before: str) -> Spelt:
    # A space goes with the word behind it; of any other sign the tokens are left out.
    front = 0 if before.isspace() else len(before)
    if front:
        flat = tokenizer.encode_flat([before + text for text in texts])
        ids, lengths = flat.ids, flat.lengths
        mine, torn = flat.start >= front, (flat.start < front) & (flat.end > front)
    else:
        ids, lengths = tokenizer.encode_ids([before + text for text in texts])
        mine, torn = np.ones(len(ids), dtype=bool), np.zeros(len(ids), dtype=bool)
    owner = np.repeat(np.arange(len(texts)), lengths)
    wrong = np.bincount(owner, ((ids == tokenizer.specials.unk) & mine) | torn, minlength=len(texts)) > 0
    length = np.bincount(owner[mine], minlength=len(texts))
    too_long = length > LONGEST
    wrong |= too_long
    return Spelt(ids[mine & ~wrong[owner]].astype(np.int32), np.where(wrong, 0, length).astype(np.int32), too_long)
