"""Replacement: what becomes of a chosen slot, and where random tokens come from.

One draw decides for every group of chosen slots (`decide`): now a token; a word or a span are other ways to
number the groups. Random tokens are drawn for each slot. As in BERT's original code `vocabulary` means every id,
special tokens and the slot's own id included; `ordinary` leaves out special and unused tokens.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maskery.corruption.config import ReplaceConfig
from maskery.edit import Edit
from maskery.errors import RecipeError
from maskery.randomness import Keys, below, uniform
from maskery.rows.plan import Specials


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


class Source(Protocol):
    """Draws one id for each (key, place in the row)."""

    def __call__(self, facts: Facts, keys: Keys, at: NDArray[np.int64]) -> NDArray[np.int32]: ...


def from_vocabulary(facts: Facts, keys: Keys, at: NDArray[np.int64]) -> NDArray[np.int32]:
    return below(keys, "random id", facts.vocabulary, at).astype(np.int32)


def from_ordinary(facts: Facts, keys: Keys, at: NDArray[np.int64]) -> NDArray[np.int32]:
    ids = facts.ordinary
    if not len(ids):
        raise RecipeError(
            "the vocabulary has no ordinary token: all are special or unused",
            where="corruption.random_from",
            repair="--set corruption.random_from=vocabulary",
        )
    return ids[below(keys, "random id", len(ids), at)].astype(np.int32)


def mask_id(facts: Facts) -> int:
    if facts.specials.mask is None:
        raise RecipeError(
            "the tokenizer of this corpus has no mask token",
            where="corruption.replace.mask",
            repair="--set corruption.replace.mask=0 (and give its share to another), or build the corpus with a "
            "tokenizer that has one",
        )
    return facts.specials.mask


def edits(shares: ReplaceConfig, keys: Keys, at: NDArray[np.int64]) -> NDArray[np.uint8]:
    """An `Edit` for each (key, place), by the shares."""
    codes = np.array([Edit.MASK, Edit.RANDOM, Edit.KEEP], dtype=np.uint8)
    edges = np.cumsum([shares.mask, shares.random, shares.keep])
    # Divided by the last edge, so that rounding leaves no gap above it and a share of zero is never drawn.
    return codes[np.searchsorted(edges / edges[-1], uniform(keys, "edit", at), side="right")]
