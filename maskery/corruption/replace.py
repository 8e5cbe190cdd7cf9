"""Replacement: what becomes of what was chosen, and where other tokens come from.

One draw decides for every group of chosen slots: a token, a word or a span (`decide`). Random tokens are drawn for
each slot. As in BERT's original code `vocabulary` means every id, special tokens and the slot's own id included;
`ordinary` leaves out special and unused tokens; `corpus` draws ordinary ids as often as they stand in the text.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maskery.corruption.config import ReplaceConfig
from maskery.edit import Edit
from maskery.errors import RecipeError
from maskery.knowledge.config import SYNONYM_FILES
from maskery.randomness import Keys, below, uniform
from maskery.rows.plan import Specials


class Similar(Protocol):
    """Words of like meaning, as ids."""

    def replacements(
        self, ids: NDArray[np.int32], start: NDArray[np.int64], length: NDArray[np.int64], keys: Keys, at: NDArray[Any]
    ) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """For W words (their flat ids, end to end) as many ids, and which words (W,) were found.

        A word that is not found, or has no other of its length, becomes a random word of its length.
        """
        ...


class Facts(Protocol):
    """What corruption needs to know of a corpus."""

    @property
    def vocabulary(self) -> int:
        """Number of ids."""

    @property
    def specials(self) -> Specials: ...
    @property
    def ordinary(self) -> NDArray[Any]:
        """Ids that are neither special nor unused."""

    @property
    def frequency(self) -> NDArray[Any]:
        """(vocabulary,) how often each id stands in the corpus."""


class Source(Protocol):
    """Draws one id for each (key, place in the row)."""

    def __call__(self, facts: Facts, keys: Keys, at: NDArray[np.int64]) -> NDArray[np.int32]: ...


def from_vocabulary(facts: Facts, keys: Keys, at: NDArray[np.int64]) -> NDArray[np.int32]:
    return below(keys, "random id", facts.vocabulary, at).astype(np.int32)


def from_ordinary(facts: Facts, keys: Keys, at: NDArray[np.int64]) -> NDArray[np.int32]:
    ids = _ordinary(facts)
    return ids[below(keys, "random id", len(ids), at)].astype(np.int32)


def from_corpus(facts: Facts, keys: Keys, at: NDArray[np.int64]) -> NDArray[np.int32]:
    ids = _ordinary(facts)
    edges = np.cumsum(facts.frequency[ids])
    if edges[-1] == 0:
        return from_ordinary(facts, keys, at)
    place = np.searchsorted(edges, uniform(keys, "random id", at) * edges[-1], side="right")
    drawn: NDArray[np.int32] = ids[place].astype(np.int32)
    return drawn


def _ordinary(facts: Facts) -> NDArray[Any]:
    if not len(facts.ordinary):
        raise RecipeError(
            "the vocabulary has no ordinary token: all are special or unused",
            where="corruption.random_from",
            repair="--set corruption.random_from=vocabulary",
        )
    return facts.ordinary


def mask_id(
    facts: Facts,
    where: str = "corruption.replace.mask",
    repair: str = "--set corruption.replace.mask=0 (and give its share to another)",
) -> int:
    """The mask, or a refusal that says which key asks for one and how to do without."""
    if facts.specials.mask is None:
        raise RecipeError(
            "the tokenizer of this corpus has no mask token",
            where=where,
            repair=f"{repair}, or build the corpus with a tokenizer that has one",
        )
    return facts.specials.mask


def need_similar(similar: Similar | None) -> Similar:
    if similar is None:
        raise RecipeError(
            "puts words of like meaning in place of others, but knowledge.synonyms names no file of them",
            where="corruption.replace.similar",
            repair=f"--set knowledge.synonyms=FILE, where FILE is {SYNONYM_FILES}",
        )
    return similar


DELETED = 255
"""The code of a slot that is to be taken out; it is in no row that was corrupted."""
_CODES = {
    "mask": Edit.MASK,
    "random": Edit.RANDOM,
    "keep": Edit.KEEP,
    "similar": Edit.SIMILAR,
    "infill": Edit.INFILLED,
    "delete": DELETED,
}


def edits(shares: ReplaceConfig, keys: Keys, at: NDArray[np.int64]) -> NDArray[np.uint8]:
    """A code for each (key, place), by the shares."""
    given = {name: share for name, share in shares.plain().items() if share > 0}
    codes = np.array([_CODES[name] for name in given], dtype=np.uint8)
    edges = np.cumsum(list(given.values()))
    # Divided by the last edge, so that rounding leaves no gap above it.
    return codes[np.searchsorted(edges / edges[-1], uniform(keys, "edit", at), side="right")]
