"""What is kept of texts that are too long: which tokens, by what rule, and how many are lost.

U rows before windows are made of them, K texts a row. Lengths are cut in two steps, each field by its own limit and
then all fields of a row together, one token after the other from whichever is the longest (BERT's rule). Which tokens
go is the law: `head` keeps the first, `tail` the last, `head+tail` both ends, the odd one from the head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskery.tasks.settings import Truncate

Counts = NDArray[np.int64]
LAW_WORDS = {"head": "their head", "tail": "their tail", "head+tail": "both ends"}


def level(lengths: Counts, room: Counts) -> Counts:
    """(U,K) lengths after tokens were taken from the longest, of equals from the last, until the sums are at most
    `room` (U,). Told without a loop: all that is longer ends at one height, the first ones a token above it."""
    low, high = np.zeros(len(lengths), dtype=np.int64), lengths.max(axis=1, initial=0)
    while (low < high).any():
        middle = (low + high + 1) // 2
        fits = np.minimum(lengths, middle[:, None]).sum(axis=1) <= room
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    kept = np.minimum(lengths, low[:, None])
    longer = lengths > kept
    spare = (room - kept.sum(axis=1))[:, None]
    kept += longer & (np.cumsum(longer, axis=1) <= spare)
    return kept


def heads(kept: Counts, law: Truncate) -> Counts:
    """How many of the kept tokens are the first of their text; the others are its last."""
    return {"head": kept, "tail": np.zeros_like(kept), "head+tail": (kept + 1) // 2}[law]


def ranges(begin: Counts, end: Counts, head: Counts, gap: Counts) -> tuple[Counts, Counts]:
    """Two stretches of a text for a stretch begin .. end of what is kept of it: (..., 2) first tokens and ends. Of what
    is kept, `head` tokens stand before the `gap` tokens that are not."""
    first = np.stack((np.minimum(begin, head), np.maximum(begin, head) + gap), axis=-1)
    last = np.stack((np.minimum(end, head), np.maximum(end, head) + gap), axis=-1)
    return first, last


@dataclass(frozen=True, kw_only=True)
class FieldCut:
    """What was cut of one field."""

    rows: int
    tokens: int


@dataclass(frozen=True, kw_only=True)
class Cut:
    """How many rows lost how many tokens. The windows of one text count as one row."""

    rows: int
    """All rows."""
    cut: int
    """Rows that lost something."""
    tokens: int
    """Tokens before anything was cut."""
    lost: int
    fields: dict[str, FieldCut]
    """By the field's name; only those that lost something."""
    windowed: int = 0
    """Rows that are read in several windows."""
    windows: int = 0
    """Those windows."""
    narrowed: int = 0
    """Rows whose windows overlap by less than was asked, because the other texts leave too little room."""
    notes: tuple[str, ...] = ()


def count(lengths: Counts, kept: Counts, names: Sequence[str]) -> Cut:
    lost = lengths - kept
    fields = {
        name: FieldCut(rows=int((column > 0).sum()), tokens=int(column.sum()))
        for name, column in zip(names, lost.T, strict=True)
        if column.any()
    }
    return Cut(
        rows=len(lengths),
        cut=int((lost > 0).any(axis=1).sum()),
        tokens=int(lengths.sum()),
        lost=int(lost.sum()),
        fields=fields,
    )


def told(cut: Cut, length: int, law: Truncate) -> tuple[str, ...]:
    """The counts in words."""
    lines = []
    if cut.cut:
        share = f"{cut.cut / cut.rows:.1%}"
        lines.append(
            f"{cut.cut:,} of {cut.rows:,} rows ({share}) are cut to {length} slots or to a field's limit and keep "
            f"{LAW_WORDS[law]}: {cut.lost:,} of {cut.tokens:,} tokens ({cut.lost / cut.tokens:.1%}) are lost"
        )
        if len(cut.fields) > 1:
            each = (f"{name} {field.tokens:,} in {field.rows:,} rows" for name, field in cut.fields.items())
            lines.append(f"tokens lost by field: {', '.join(each)}")
    if cut.windowed:
        lines.append(f"{cut.windowed:,} of {cut.rows:,} rows are read in {cut.windows:,} windows of {length} slots")
    if cut.narrowed:
        lines.append(f"{cut.narrowed:,} rows have windows that overlap by half their room, less than was asked")
    return tuple(lines)
