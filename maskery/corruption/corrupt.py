"""Corruption: rows -> rows, over whole flat arrays; no loop over rows or tokens.

    reordered(rows)                sentences permuted, segments rotated
    opened(rows)                   what is out of reach is closed like [CLS]
    hide_ngrams(rows)              one run of words masked whole, before and apart from the rest
    unit(rows)           -> Units  what is taken whole: token, word, phrase, entity            UNITS
    law                  -> table  how many units at once                                      LAWS
    offer(units, law)    -> Spans  runs of units, in the order in which they are offered
    budget(rows)         -> (B,)   how many slots (or words) of each row
    choose(spans)        -> Chosen slots, and the unit and span each belongs to
    edits(groups)        -> (n,)   mask, random, keep, similar, infill, delete; a draw for each token, word or span
    source(slots)        -> (n,)   ids for what is random                                      SOURCES
    shuffle(rows)                  short runs of what was not chosen, in another order
    resized(rows)                  deleted slots out, one mask for an infilled span

Every draw is a function of (row key, purpose, place in the row): what becomes of a row does not depend on the other
rows, their order, or the number of workers. `original` is what stood at a slot before anything was replaced; where
stretches of text move or slots go, it goes with them, and where none does it is what was given.

Departure from BERT: the number of chosen slots is rate * (slots without [CLS] and [SEP]), rounded up or down by a draw,
so that the rate is met on average; BERT counts the specials, rounds to the nearest and stops at 20.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from maskery.corruption.apart import apart
from maskery.corruption.choose import Chosen, all_of, choose
from maskery.corruption.config import LAWS, SOURCES, UNITS, CorruptionConfig
from maskery.corruption.ngram import hide_ngrams
from maskery.corruption.reach import opened, within
from maskery.corruption.reorder import reordered, shuffle
from maskery.corruption.replace import Facts, Similar, Source, edits, mask_id, need_similar
from maskery.corruption.resize import resized
from maskery.corruption.spans import Spans, fragments, offer
from maskery.corruption.units import Unit, Units, word_starts, words_in
from maskery.edit import Edit
from maskery.randomness import Keys, uniform
from maskery.rows.ragged import Rows


def corrupt(rows: Rows, config: CorruptionConfig, row_keys: Keys, facts: Facts, similar: Similar | None = None) -> Rows:
    """The rows with new `ids` and `edit`; `row_keys` (B,) belong to the rows of a plan (static) or to the rows of
    one epoch (dynamic). `similar` is needed where a share of the chosen is replaced by similar words."""
    rows = reordered(rows, config.order, row_keys)
    if config.ngram.longest > 0:
        rows = hide_ngrams(rows, config.ngram, row_keys, facts)
    units, spans, chosen = chosen_spans(rows, config, row_keys)
    seen = opened(rows, config)
    ids, edit = _replaced(seen, config, chosen, row_keys, facts)
    out = replace(rows, ids=ids, edit=edit)
    if config.replace.similar > 0:
        out = _with_similar(seen, out, row_keys, need_similar(similar))
    if config.shuffle.rate > 0:
        out = shuffle(out, config.shuffle, row_keys, within(rows, config))
    if config.replace.infill > 0 or config.replace.delete > 0:
        out = resized(out, units, spans, chosen, facts)
    return out


def candidates(rows: Rows, config: CorruptionConfig, row_keys: Keys) -> tuple[Units, Spans]:
    """What may be chosen: all units in reach, and the spans as the law draws them."""
    rows = opened(rows, config)
    unit: Unit = UNITS.get(config.unit)
    units, lengths = unit(rows), LAWS.get(config.span.law)(config.span)
    if not len(lengths):
        return units, fragments(rows, units, config.rate, config.span.ends, row_keys)
    if config.span.place == "apart":
        return units, apart(rows, units, lengths, config.rate, row_keys)
    return units, offer(rows, units, lengths, row_keys)


def chosen_spans(rows: Rows, config: CorruptionConfig, row_keys: Keys) -> tuple[Units, Spans, Chosen]:
    """The candidates, and what the budget takes of them. `rows` have been reordered, if that is asked for."""
    units, spans = candidates(rows, config, row_keys)
    if spans.unlimited:
        return units, spans, all_of(units, spans)
    cost = words_in(opened(rows, config), units) if config.of == "words" else units.length
    return units, spans, choose(units, spans, cost, budget(rows, units, cost, config.rate, row_keys))


def budget(rows: Rows, units: Units, cost: NDArray[np.int64], rate: float, row_keys: Keys) -> NDArray[np.int64]:
    """(B,) what may be spent: rate x the cost of all units of the row, rounded up or down by a draw so that the mean is
    exact; at least one if there is any."""
    whole = np.bincount(units.row, cost, minlength=len(rows)).astype(np.int64)
    exact = np.floor(rate * whole + uniform(row_keys, "budget")).astype(np.int64)
    return np.maximum(exact, np.minimum(whole, 1)) if rate > 0 else np.zeros_like(exact)


def _replaced(
    rows: Rows, config: CorruptionConfig, chosen: Chosen, row_keys: Keys, facts: Facts
) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    ids, edit = rows.ids.copy(), rows.edit.copy()
    slot = chosen.slot
    slot_keys, at = row_keys[rows.row[slot]], rows.slot[slot]
    edit[slot] = code = edits(config.replace, slot_keys, _group_places(rows, config, chosen))
    hidden = (code == Edit.MASK) | (code == Edit.INFILLED)
    if hidden.any():
        ids[slot[hidden]] = mask_id(facts)
    source: Source = SOURCES.get(config.random_from)
    random = code == Edit.RANDOM
    ids[slot[random]] = source(facts, slot_keys[random], at[random])
    return ids, edit


def _group_places(rows: Rows, config: CorruptionConfig, chosen: Chosen) -> NDArray[np.int64]:
    """(n,) the place in its row of the first slot of each chosen slot's group: what one draw covers."""
    slot = chosen.slot
    if config.decide == "word":
        starts = np.flatnonzero(word_starts(rows))
        return rows.slot[starts[np.searchsorted(starts, slot, side="right") - 1]]
    if config.decide == "span":
        begins = np.flatnonzero(np.diff(chosen.span, prepend=-1))
        return rows.slot[slot[begins[np.searchsorted(begins, np.arange(len(slot)), side="right") - 1]]]
    return rows.slot[slot]


def _with_similar(rows: Rows, out: Rows, row_keys: Keys, similar: Similar) -> Rows:
    """Another word for every word that was drawn to be similar: its slots hold whole words."""
    slot = np.flatnonzero(out.edit == Edit.SIMILAR)
    begins = np.flatnonzero(word_starts(rows)[slot])
    length = np.diff(np.append(begins, len(slot)))
    first = slot[begins]
    new, found = similar.replacements(rows.ids[slot], begins, length, row_keys[rows.row[first]], rows.slot[first])
    out.ids[slot] = new
    out.edit[slot[~np.repeat(found, length)]] = Edit.UNMATCHED
    return out
