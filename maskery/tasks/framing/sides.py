"""Rows of examples that are several rows each: fields by themselves (towers), or two fields in both orders.

Rows of an example stand beside each other, and `Rows.part` is the number of the row among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from maskery.errors import InputError
from maskery.tasks.framing.cut import Counts
from maskery.tasks.framing.frame import Frame
from maskery.tasks.framing.make import make_rows, row_lengths
from maskery.tasks.framing.rows import Rows
from maskery.tasks.framing.tokens import Encoded
from maskery.tasks.settings import TaskRowsConfig

_PER_EXAMPLE = ("start", "example", "part")


def side_lengths(encoded: Encoded, frame: Frame, orders: Sequence[Sequence[int]]) -> Counts:
    """Slots of all rows if nothing were cut. `orders`: the fields of each row of an example; empty: it is one row."""
    if not orders:
        return row_lengths(encoded, frame)
    return np.concatenate([row_lengths(encoded, frame, order) for order in orders])


def make_sides(
    encoded: Encoded, frame: Frame, config: TaskRowsConfig, length: int, orders: Sequence[Sequence[int]]
) -> tuple[Rows, tuple[str, ...]]:
    """The rows, none longer than `length` slots, and what is to be said of them."""
    if not orders:
        rows, cut = make_rows(encoded, frame, config, length)
        return rows, cut.notes
    known = {field for order in orders for field in order}
    if len(known) != len(encoded.fields):
        raise InputError(
            f"{len(encoded.fields)} texts each ({', '.join(encoded.fields)}), and the model reads {len(known)} apart",
            repair="give the fields of the training data (--text A,B)",
        )
    made = [make_rows(encoded, frame, config, length, order=order) for order in orders]
    notes = [
        note if len(order) > 1 else f"{encoded.fields[order[0]]}: {note}"
        for order, (_, cut) in zip(orders, made, strict=True)
        for note in cut.notes
    ]
    return beside([rows for rows, _ in made]), tuple(dict.fromkeys(notes))


def beside(sides: Sequence[Rows]) -> Rows:
    """The n-th rows of all sides beside each other, then the next."""
    slots = [item.name for item in fields(Rows) if item.name not in _PER_EXAMPLE]
    many = len(sides[0])
    ends = np.cumsum(np.concatenate([each.length for each in sides]))
    under = replace(
        sides[0],
        start=np.concatenate(([0], ends)),
        example=np.concatenate([each.example for each in sides]),
        part=np.repeat(np.arange(len(sides)), many),
        **{name: np.concatenate([getattr(each, name) for each in sides]) for name in slots},
    )
    return under.take(np.arange(len(under)).reshape(len(sides), many).T.ravel())
