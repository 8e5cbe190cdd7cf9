"""Spans that keep apart (XLNet): each lies somewhere within a context of its own, 1 / rate as long as itself.

A row, or each half of it, is walked from its beginning: a length is drawn by the law, a place within the context, and
the next context begins behind this one. So the share of what is chosen is the rate everywhere in a row, while two spans
hardly ever touch. Where rounding, or words longer than others, leave some of the budget, spans anywhere fill it up.

All rows take their next step at the same time. U units; a walk is a row or half a row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maskery.corruption.spans import Spans, offer, units_left
from maskery.corruption.units import Units
from maskery.randomness import Keys, bits, uniform
from maskery.rows.ragged import Rows

Numbers = NDArray[np.int64]
_LOWEST = 1e-6
"""A rate below this counts as it, so that a context has an end."""
_SLOTS = 20
"""Low bits of a draw's counter that hold a place in a row; the step of the walk stands above."""


def apart(rows: Rows, units: Units, lengths: NDArray[np.float64], rate: float, row_keys: Keys) -> Spans:
    """The candidates of the walks in random order, then those that `offer` has for the same law."""
    first, count, drawn = _walked(rows, units, lengths, rate, row_keys)
    anywhere = offer(rows, units, lengths, row_keys)
    row = units.row[first]
    shuffle = bits(row_keys[row], "spans apart", rows.slot[units.start[first]])
    mixed = np.lexsort((shuffle, row))
    order = np.argsort(np.concatenate((row[mixed], anywhere.row)), kind="stable")

    def joined(walked: Numbers, offered: Numbers) -> Numbers:
        return np.concatenate((walked[mixed], offered))[order]

    return Spans(
        first=joined(first, anywhere.first),
        count=joined(count, anywhere.count),
        drawn=joined(drawn, anywhere.drawn),
        row=joined(row, anywhere.row),
    )


def _walked(
    rows: Rows, units: Units, lengths: NDArray[np.float64], rate: float, row_keys: Keys
) -> tuple[Numbers, Numbers, Numbers]:
    """First unit, units and drawn length of the spans of all walks."""
    walk = units.row if rows.part is None else 2 * units.row + rows.part[units.start]
    walks, begin = np.unique(walk, return_index=True)
    end = np.append(begin[1:], len(walk))
    reach = np.minimum(units_left(units), end[np.searchsorted(walks, walk)] - np.arange(len(walk)))
    behind = units.start + units.length
    mean = np.add.reduceat(units.length, begin) / (end - begin) if len(walks) else np.zeros(0)
    edges = np.cumsum(lengths)
    keys, around = row_keys[units.row[begin]], 1 / max(rate, _LOWEST) - 1
    place, active = units.start[begin], np.arange(len(walks))
    found: list[tuple[Numbers, Numbers, Numbers]] = []
    while len(active):
        at = rows.slot[units.start[begin[active]]] + (len(found) << _SLOTS)
        drawn = np.searchsorted(edges / edges[-1], uniform(keys[active], "length of a span apart", at), side="right")
        room = around * drawn * mean[active]
        left = np.floor(uniform(keys[active], "place of a span apart", at) * (room + 1)).astype(np.int64)
        unit = np.searchsorted(units.start, place[active] + left)
        inside = unit < end[active]
        active, unit, drawn, left = active[inside], unit[inside], drawn[inside], left[inside]
        count = np.minimum(drawn, reach[unit])
        stop = behind[unit + count - 1]
        found.append((unit, count, drawn))
        size = stop - units.start[unit]
        place[active] = stop + np.maximum(0, np.rint(around * size).astype(np.int64) - left)
    nothing = np.zeros(0, dtype=np.int64)
    first, count, drawn = (np.concatenate(column) for column in zip((nothing,) * 3, *found, strict=True))
    return first, count, drawn
