"""Text that a vocabulary cannot write: which characters those are, how often, and what helps.

An unknown token is a character, or a whole word in which one character has no piece. Of such a word the characters
are named that are unknown alone; where there are none (a piece for the middle of words is missing), the word is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from maskery.text.tokenizer import Tokenizer

NAMED = 10
_KEPT = 10_000
"""Different characters and words of one chunk; rarer ones are not among the ten commonest."""
_LONGEST = 20
_QUOTES = frozenset("“”‘’—–…")
"""Signs of printed text that small vocabularies write as \"\"''--..."""


def unknown_spans(tokenizer: Tokenizer, texts: Sequence[str]) -> Counter[str]:
    """What stands in `texts` where raw tokens are unknown."""
    flat = tokenizer.encode_flat(texts)
    number = np.repeat(np.arange(len(texts)), flat.lengths)
    at = np.flatnonzero(flat.ids == tokenizer.specials.unk)
    places = zip(number[at].tolist(), flat.start[at].tolist(), flat.end[at].tolist(), strict=True)
    return Counter(texts[text][start:end] for text, start, end in places)


def unknown_characters(tokenizer: Tokenizer, spans: Mapping[str, int]) -> Counter[str]:
    """What was unknown, by the characters to blame."""
    letters = sorted({letter for span in spans for letter in span})
    alone = unknown_spans(tokenizer, letters)
    found: Counter[str] = Counter()
    for span, many in spans.items():
        blamed = [letter for letter in span if letter in alone] or [span.strip()[:_LONGEST]]
        for each in blamed:
            found[each] += many
    return Counter(dict(found.most_common(_KEPT)))


def about_unknown(found: Mapping[str, int], *, training: bool = False) -> str:
    """The commonest with their counts and shares, and the remedy; empty where nothing is unknown. `training`: the
    vocabulary can still be chosen."""
    every = sum(found.values())
    if not every:
        return ""
    first = Counter(dict(found)).most_common(NAMED)
    listed = ", ".join(f"{_shown(each)} {many:,} ({many / every:.1%})" for each, many in first)
    rest = f", and {len(found) - len(first):,} others" if len(found) > len(first) else ""
    remedies = ["take a model whose vocabulary has them"]
    if training:
        remedies = ["learn the vocabulary from this text (--tokenizer train)", "take one that has them"]
    if sum(many for each, many in first if each in _QUOTES) * 2 > every:
        remedies.append("write “ ” ‘ ’ — … as \" ' - ... before")
    return f"unknown: {listed}{rest}; {', or '.join(remedies)}"


def unknown_in(tokenizer: Tokenizer, texts: Sequence[str]) -> str:
    """The same of texts that are read by a model."""
    return about_unknown(unknown_characters(tokenizer, unknown_spans(tokenizer, texts)))


def _shown(text: str) -> str:
    return text if text.isprintable() and not text.isspace() else ascii(text)
