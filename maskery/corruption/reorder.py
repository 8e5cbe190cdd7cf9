"""Slots in another order, and rows that grow or shrink: what mask-for-token corruption does not do.

`shuffle` is StructBERT's: short runs of slots that were not chosen change places among themselves; any order is as
likely as another, the old one included. `sentences` and `rotate` (BART) move whole stretches of one segment, answers
with them. `without` and `with_masks` take slots out and put masks in.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from maskery.corpus.encode import Flag
from maskery.corruption.choose import choose, ramp
from maskery.corruption.config import OrderConfig, ShuffleConfig
from maskery.corruption.spans import Spans, offer
from maskery.corruption.units import Units
from maskery.edit import Edit
from maskery.randomness import Keys, below, bits, uniform
from maskery.rows.ragged import Rows


def shuffle(rows: Rows, config: ShuffleConfig, row_keys: Keys) -> Rows:
    """Some runs of `size` unchosen slots in another order; their slots are marked, `original` stays."""
    own = bits(row_keys, "shuffle")
    start = np.flatnonzero(~rows.special & (rows.edit == Edit.NONE))
    units = Units(start=start, length=np.ones_like(start), row=rows.row[start])
    length = np.zeros(config.size + 1)
    length[-1] = 1.0
    spans = offer(rows, units, length, own)
    whole = spans.count == config.size
    spans = Spans(first=spans.first[whole], count=spans.count[whole], drawn=spans.drawn[whole], row=spans.row[whole])
    windows = np.bincount(spans.row, minlength=len(rows))
    runs = np.floor(config.rate * windows + uniform(own, "budget")).astype(np.int64)
    chosen = choose(units, spans, units.length, config.size * runs, whole=True).slot.reshape(-1, config.size)
    order = np.argsort(bits(own[rows.row[chosen]], "order", rows.slot[chosen]), axis=1, kind="stable")
    ids, edit = rows.ids.copy(), rows.edit.copy()
    ids[chosen] = rows.ids[np.take_along_axis(chosen, order, axis=1)]
    edit[chosen] = Edit.SHUFFLED
    return replace(rows, ids=ids, edit=edit)


def reordered(rows: Rows, config: OrderConfig, row_keys: Keys) -> Rows:
    """Sentences permuted, then segments rotated, as asked."""
    if config.sentences:
        rows = _sentences(rows, row_keys)
    if config.rotate > 0:
        rows = _rotated(rows, config.rotate, row_keys)
    return rows


def _stretches(rows: Rows) -> NDArray[np.int64]:
    """(N,) the number of each slot's stretch of text; specials stand alone."""
    edge = np.ones(len(rows.ids), dtype=bool)
    edge[1:] = rows.special[1:] | rows.special[:-1]
    return np.cumsum(edge) - 1


def _sentences(rows: Rows, row_keys: Keys) -> Rows:
    stretch = _stretches(rows)
    begins = (rows.flags & Flag.SENTENCE) != 0
    begins[np.flatnonzero(np.diff(stretch, prepend=-1))] = True
    sentence = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    draw = bits(row_keys[rows.row[first]], "sentence order", rows.slot[first])
    order = np.lexsort((draw, stretch[first]))
    size = np.diff(np.append(first, len(sentence)))[order]
    return _taken(rows, np.repeat(first[order], size) + ramp(size))


def _rotated(rows: Rows, chance: float, row_keys: Keys) -> Rows:
    stretch = _stretches(rows)
    first = np.flatnonzero(np.diff(stretch, prepend=-1))
    size = np.diff(np.append(first, len(stretch)))
    own = row_keys[rows.row[first]]
    shift = below(own, "rotation", size, rows.slot[first])
    shift[uniform(own, "rotate", rows.slot[first]) >= chance] = 0
    within = (ramp(size) + np.repeat(shift, size)) % np.repeat(size, size)
    return _taken(rows, np.repeat(first, size) + within)


def without(rows: Rows, gone: NDArray[np.bool_]) -> Rows:
    """The rows without some of their slots."""
    return _taken(rows, np.flatnonzero(~gone))


def with_masks(rows: Rows, before: NDArray[np.int64], mask: int) -> Rows:
    """The rows with a mask put in before each of the given slots: a span of no token, filled."""
    source = np.sort(np.concatenate((np.arange(len(rows.ids)), before)), kind="stable")
    new = np.zeros(len(source), dtype=bool)
    new[np.searchsorted(source, before)] = True
    grown = _taken(rows, source)
    ids, original = np.where(new, mask, grown.ids), np.where(new, mask, grown.original)
    return replace(
        grown,
        ids=ids.astype(np.int32),
        original=original.astype(np.int32),
        flags=np.where(new, 0, grown.flags).astype(np.uint8),
        edit=np.where(new, Edit.INFILLED, grown.edit).astype(np.uint8),
    )


def _taken(rows: Rows, source: NDArray[np.int64]) -> Rows:
    """The rows made of the given slots, in this order; rows themselves stay in their order."""
    size = np.bincount(rows.row[source], minlength=len(rows))
    per_slot = {
        item.name: getattr(rows, item.name)[source]
        for item in fields(rows)
        if item.name not in ("number", "start", "label")
    }
    return replace(rows, start=np.concatenate(([0], np.cumsum(size))), **per_slot)
