"""Slots in another order.

`shuffle` is StructBERT's: short runs of slots that were not chosen change places among themselves. Only the ids move:
`original` still says what stood at a slot, which is the question. `reordered` (BART) moves whole stretches of one
segment before anything is chosen, and everything that belongs to a slot moves along, `original` too: a slot's answer
is the token that now stands there, and the order before is asked by whoever keeps it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from maskery.corpus.encode import Flag
from maskery.corruption.choose import choose, ramp
from maskery.corruption.config import OrderConfig, ShuffleConfig
from maskery.corruption.spans import offer, only_whole
from maskery.corruption.units import Units
from maskery.edit import Edit
from maskery.randomness import Keys, below, bits, uniform
from maskery.rows.ragged import Rows, taken


def shuffle(rows: Rows, config: ShuffleConfig, row_keys: Keys, within: NDArray[np.bool_]) -> Rows:
    """Some runs of `size` unchosen slots `within` reach in another order; their slots are marked, `original` stays.

    The rate counts runs: every stretch of `size` neighbouring unchosen slots of a segment is one, so n such slots in a
    row have n - size + 1. `rate` of them, rounded by a draw, are shuffled, none overlapping another; at .05 and size 3
    that is up to 15 % of the slots. Where a rate is so high that not so many can stand apart, as many as fit are taken.
    Any order is as likely as another, the old one included.
    """
    own = bits(row_keys, "shuffle")
    start = np.flatnonzero(within & ~rows.special & (rows.edit == Edit.NONE))
    units = Units(start=start, length=np.ones_like(start), row=rows.row[start])
    spans = only_whole(offer(rows, units, np.eye(config.size + 1)[-1], own))
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
    if config.sentences or config.rotate > 0:
        rows = _beginning_by_themselves(rows)
    if config.sentences:
        rows = _sentences(rows, row_keys)
    if config.rotate > 0:
        rows = _rotated(rows, config.rotate, row_keys)
    return rows


def _beginning_by_themselves(rows: Rows) -> Rows:
    """The rows with the first slot of every stretch marked as the start of a word, of no phrase and no entity.

    A row may be cut within a word; moved elsewhere, what is left of it must not join the word in front of it.
    """
    first = np.flatnonzero(np.diff(_stretches(rows), prepend=-1))
    first = first[~rows.special[first]]
    flags = rows.flags.copy()
    flags[first] = (flags[first] & ~np.uint8(Flag.IN_PHRASE | Flag.IN_ENTITY)) | Flag.WORD
    return replace(rows, flags=flags)


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
    return taken(rows, np.repeat(first[order], size) + ramp(size))


def _rotated(rows: Rows, chance: float, row_keys: Keys) -> Rows:
    stretch = _stretches(rows)
    first = np.flatnonzero(np.diff(stretch, prepend=-1))
    size = np.diff(np.append(first, len(stretch)))
    own = row_keys[rows.row[first]]
    shift = below(own, "rotation", size, rows.slot[first])
    shift[uniform(own, "rotate", rows.slot[first]) >= chance] = 0
    within = (ramp(size) + np.repeat(shift, size)) % np.repeat(size, size)
    return taken(rows, np.repeat(first, size) + within)
