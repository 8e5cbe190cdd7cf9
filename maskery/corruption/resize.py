"""Rows that grow or shrink: slots taken out, one mask left of a span, masks put in. Runs after everything else.

What is asked of such a row is the text before corruption, which belongs to a decoder; `original` goes with the slots
that stay. An infilled mask keeps the id of its span's first slot there, an inserted one has the mask itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from maskery.corpus.encode import Flag
from maskery.corruption.choose import Chosen
from maskery.corruption.replace import DELETED, Facts, mask_id
from maskery.corruption.spans import Spans
from maskery.corruption.units import Units, word_starts
from maskery.edit import Edit
from maskery.rows.ragged import Rows, taken


def resized(rows: Rows, units: Units, spans: Spans, chosen: Chosen, facts: Facts) -> Rows:
    """Deleted slots out, one mask left of every infilled span, and a mask for every span that has no unit."""
    gone = rows.edit == DELETED
    later = chosen.slot[1:][chosen.span[1:] == chosen.span[:-1]]
    gone[later[rows.edit[later] == Edit.INFILLED]] = True
    before = _insertions(rows, units, spans, chosen, gone)
    kept = _without(rows, gone)
    # Where a slot that is gone now stands: at the mask that is left of its span.
    place = np.cumsum(~gone) - 1
    return _with_masks(kept, place[before], mask_id(facts)) if len(before) else kept


def _insertions(rows: Rows, units: Units, spans: Spans, chosen: Chosen, gone: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The slots, ascending, before which a mask is put for a span without a unit.

    Such a span is a candidate like the others, so that the lengths of all that are taken follow the law: it is out if
    a span before it has taken its place, and never reached if it comes behind the last that the budget took. Where a
    span behind it takes its place, the mask stands in front of that. A row never becomes longer: it gets at most as
    many masks as slots were taken out of it.
    """
    nobody = len(spans.row)
    owner = np.full(len(units.start), nobody)
    owner[chosen.unit] = chosen.span
    last = np.full(len(rows), -1)
    np.maximum.at(last, spans.row[chosen.span], chosen.span)
    number = np.arange(nobody)
    empty = np.flatnonzero((spans.drawn == 0) & (number < last[spans.row]) & (number < owner[spans.first]))
    row = spans.row[empty]
    room = np.bincount(rows.row[gone], minlength=len(rows))
    empty = empty[np.arange(len(row)) - np.searchsorted(row, row) < room[row]]
    return np.sort(units.start[spans.first[empty]])


def _without(rows: Rows, gone: NDArray[np.bool_]) -> Rows:
    """The rows without some of their slots; what is left of a word still begins one."""
    left = np.flatnonzero(~gone)
    word = np.cumsum(word_starts(rows) | rows.special)[left]
    kept = taken(rows, left)
    begins = np.diff(word, prepend=0) != 0
    return replace(kept, flags=np.where(begins & ~kept.special, kept.flags | Flag.WORD, kept.flags).astype(np.uint8))


def _with_masks(rows: Rows, before: NDArray[np.int64], mask: int) -> Rows:
    """The rows with a mask, a word of its own, put in before each of the given slots."""
    source = np.sort(np.concatenate((np.arange(len(rows.ids)), before)))
    new = np.append(source[:-1] == source[1:], False)
    grown = taken(rows, source)
    return replace(
        grown,
        ids=np.where(new, mask, grown.ids).astype(np.int32),
        original=np.where(new, mask, grown.original).astype(np.int32),
        flags=np.where(new, Flag.WORD, grown.flags).astype(np.uint8),
        edit=np.where(new, Edit.INFILLED, grown.edit).astype(np.uint8),
    )
