"""What corruption did to a slot: one code, shared by rows on the CPU and by the batch that the network reads."""

from __future__ import annotations

from enum import IntEnum


class Edit(IntEnum):
    NONE = 0
    MASK = 1
    RANDOM = 2
    KEEP = 3
    SIMILAR = 4
    SHUFFLED = 5
    INFILLED = 6
    """One mask in the place of a whole span, whatever its length."""
    UNMATCHED = 7
    """A random word, because the word that stood here has no similar one."""
    NGRAM = 8
    """Masked as part of the one run of words that the contrast is about; no single token is asked for here."""


ASKED = (Edit.MASK, Edit.RANDOM, Edit.KEEP, Edit.SIMILAR, Edit.UNMATCHED)
"""Of a slot that was chosen and still holds the place of one token."""
