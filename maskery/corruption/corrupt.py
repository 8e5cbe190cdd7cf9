"""Corruption: rows -> rows, over whole flat arrays; no loop over rows or tokens.

    units(rows)             -> Units    what is taken whole: token (word, phrase, entity)       UNITS
    law(units)              -> Spans    runs of units, in the order in which they are offered   LAWS
    budget(rows)            -> (B,)     how many slots of each row
    choose(spans, budget)   -> Chosen   slots, and the unit and span each belongs to
    edits(groups of Chosen) -> (n,)     mask, random, keep; one draw for each token (word, span)
    source(slots)           -> (n,)     ids for what is random                                  SOURCES

A corruption that changes lengths (deletion, infilling) or order (shuffles, rotation) takes `Chosen` in the place of
the last two and answers with a new `Rows`. Every draw is a function of (row key, purpose, place in the row): what
becomes of a row does not depend on the other rows, their order, or the number of workers. `original` is never touched.

Departure from BERT: the number of chosen slots is rate * (slots without [CLS] and [SEP]), rounded up or down by a draw,
so that the rate is met on average; BERT counts the specials, rounds to the nearest and stops at 20.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from maskery.corruption.config import LAWS, SOURCES, UNITS, CorruptionConfig
from maskery.corruption.replace import Facts, Source, edits, mask_id
from maskery.corruption.spans import Law, Spans
from maskery.corruption.units import Unit, Units
from maskery.edit import Edit
from maskery.randomness import Keys, uniform
from maskery.rows.ragged import Rows


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """n chosen slots, grouped by span."""

    slot: NDArray[np.int64]
    """(n,) flat."""
    unit: NDArray[np.int64]
    span: NDArray[np.int64]
    """(n,) number among the candidate spans."""


def corrupt(rows: Rows, config: CorruptionConfig, row_keys: Keys, facts: Facts) -> Rows:
    """The rows with new `ids` and `edit`; `row_keys` (B,) belong to the rows of a plan (static) or to the rows of
    one epoch (dynamic)."""
    unit: Unit = UNITS.get(config.unit)
    law: Law = LAWS.get(config.span.law)
    source: Source = SOURCES.get(config.random_from)
    units = unit(rows)
    chosen = choose(units, law(rows, units, config.span, row_keys), budget(rows, config.rate, row_keys))
    ids, edit = rows.ids.copy(), rows.edit.copy()
    slot = chosen.slot
    slot_keys, at = row_keys[rows.row[slot]], rows.slot[slot]
    edit[slot] = code = edits(config.replace, slot_keys, at)
    if config.replace.mask > 0:
        ids[slot[code == Edit.MASK]] = mask_id(facts)
    random = code == Edit.RANDOM
    ids[slot[random]] = source(facts, slot_keys[random], at[random])
    return replace(rows, ids=ids, edit=edit)


def budget(rows: Rows, rate: float, row_keys: Keys) -> NDArray[np.int64]:
    """(B,) slots to choose: rate x slots that are not special, rounded by a draw; at least one if there is any."""
    ordinary = np.bincount(rows.row[~rows.special], minlength=len(rows))
    exact = np.floor(rate * ordinary + uniform(row_keys, "budget")).astype(np.int64)
    return np.maximum(exact, np.minimum(ordinary, 1)) if rate > 0 else np.zeros_like(exact)


def choose(units: Units, spans: Spans, budgets: NDArray[np.int64]) -> Chosen:
    """Take each row's spans from the front as long as all of them fit into its budget.

    For spans of one slot this meets the budget exactly; longer spans will need a rule for one that does not fit.
    """
    edge = np.concatenate(([0], np.cumsum(units.length)))
    size = edge[spans.first + spans.count] - edge[spans.first]
    used = np.concatenate(([0], np.cumsum(size)))
    begin = np.searchsorted(spans.row, np.arange(len(budgets)))
    taken = np.flatnonzero(used[1:] - used[begin][spans.row] <= budgets[spans.row])

    def ramp(many: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)

    count = spans.count[taken]
    unit = np.repeat(spans.first[taken], count) + ramp(count)
    span, length = np.repeat(taken, count), units.length[unit]
    slot = np.repeat(units.start[unit], length) + ramp(length)
    return Chosen(slot=slot, unit=np.repeat(unit, length), span=np.repeat(span, length))
