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


class Spelt(NamedTuple):
    """Texts as ids, end to end; a text of no id is one that the tokenizer does not know, or longer than `LONGEST`."""

    ids: NDArray[np.int64]
    length: NDArray[np.int64]
    """(E,) ids of each text."""
    too_long: NDArray[np.bool_]
    """(E,)"""


def spellings(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Spelt]:
    """The ways in which the tokenizer writes the texts; in the first stands nothing before them."""
    ways: dict[bytes, str] = {}
    for before in _BEFORE:
        probe = _spelt(tokenizer, _PROBES, before)
        ways.setdefault(probe.ids.tobytes() + b"/" + probe.length.tobytes(), before)
    return [_spelt(tokenizer, texts, before) for before in ways.values()]


def _spelt(tokenizer: Tokenizer, texts: Sequence[str], before: str) -> Spelt:
    flat = tokenizer.encode_flat([before + text for text in texts])
    owner = np.repeat(np.arange(len(texts)), flat.lengths)
    # A space goes with the word behind it; of any other sign the tokens are left out.
    front = 0 if before.isspace() else len(before)
    mine = flat.start >= front
    wrong = np.bincount(owner, (flat.ids == tokenizer.specials.unk) & mine, minlength=len(texts)) > 0
    wrong |= np.bincount(owner, (flat.start < front) & (flat.end > front), minlength=len(texts)) > 0
    length = np.bincount(owner[mine], minlength=len(texts))
    too_long = length > LONGEST
    wrong |= too_long
    return Spelt(flat.ids[mine & ~wrong[owner]].astype(np.int64), np.where(wrong, 0, length), too_long)
