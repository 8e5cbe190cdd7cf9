"""Rows of a task from its tokens: which texts stand in a row, in which order, and what is kept of them.

    classify, pair, regress, multilabel, rank, tag     the fields in their order, cut or in windows
    qa                                                 question, then a window of the context
    choice                                             context, question, one choice; a row for each
    seq2seq                                            the source

Fields that are read apart (towers) and rows in another order (GPT's similarity) are asked for with `order`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from maskery.errors import InputError
from maskery.tasks.framing.cut import Counts, Cut, count, heads, level, ranges, told
from maskery.tasks.framing.frame import Frame
from maskery.tasks.framing.rows import Rows, assemble
from maskery.tasks.framing.tokens import Encoded
from maskery.tasks.framing.windows import Slid, slide
from maskery.tasks.settings import TaskRowsConfig

QUESTION_LIMIT = 64
"""Tokens of a question at most, where no limit is given (BERT)."""
QA_OVERLAP = 128
"""Tokens by which windows of a context overlap, where nothing is given; less where rows are short."""


@dataclass(frozen=True, kw_only=True)
class Units:
    """U rows before anything is cut, K texts each."""

    names: tuple[str, ...]
    texts: Counts
    """(U,K) numbers of texts."""
    field: tuple[int, ...]
    """(K,)"""
    example: Counts
    part: Counts
    joined: tuple[int, ...] = ()
    """Texts behind which no mark stands."""

    def lengths(self, encoded: Encoded) -> Counts:
        """(U,K) tokens."""
        return encoded.tokens.lengths[self.texts]


def units_of(encoded: Encoded, frame: Frame, order: Sequence[int] | None = None) -> Units:
    """Which texts stand in which row. `order`: numbers of fields; None: as the task has it."""
    known = len(encoded.fields)
    if order is None:
        order = (1, 0) if encoded.task == "qa" and known == 2 else range(known)
    numbers = np.arange(len(encoded))
    texts = numbers[:, None] * known + np.array(list(order), dtype=np.int64)
    names = tuple(encoded.fields[field] for field in order)
    part = np.zeros(len(encoded), dtype=np.int64)
    if encoded.task != "choice":
        return Units(names=names, texts=encoded.text[texts], field=tuple(order), example=numbers, part=part)
    example = np.repeat(numbers, encoded.choices)
    part = np.arange(len(example)) - np.repeat(np.cumsum(encoded.choices) - encoded.choices, encoded.choices)
    choice = len(encoded) * known + np.arange(len(example))
    return Units(
        names=(*names, "choice"),
        texts=encoded.text[np.concatenate((texts[example], choice[:, None]), axis=1)],
        field=(*order, known),
        example=example,
        part=part,
        joined=tuple(range(len(names) - 1)) if frame.name == "gpt" else (),
    )


def row_lengths(encoded: Encoded, frame: Frame, order: Sequence[int] | None = None) -> Counts:
    """(U,) slots of each row if nothing were cut, marks counted."""
    units = units_of(encoded, frame, order)
    texts: Counts = units.lengths(encoded).sum(axis=1)
    return texts + frame.marks(len(units.names), units.joined)


def make_rows(
    encoded: Encoded, frame: Frame, config: TaskRowsConfig, length: int, *, order: Sequence[int] | None = None
) -> tuple[Rows, Cut]:
    """The rows, none longer than `length` slots, and what was cut for it (`Cut.notes` tells it in words)."""
    units = units_of(encoded, frame, order)
    lengths = units.lengths(encoded)
    seen, notes = _fitted(encoded, units, config, lengths, _room(frame, units, length))
    head = heads(seen.kept, config.truncate)
    if encoded.task == "qa":  # a question is known by its beginning
        head[:, 0] = seen.kept[:, 0]
    rows = assemble(
        frame.layout(len(units.names), units.joined),
        encoded.tokens,
        units.texts[seen.row],
        np.tile(units.field, (len(seen.row), 1)),
        ranges(seen.begin, seen.end, head[seen.row], (lengths - seen.kept)[seen.row]),
        example=units.example[seen.row],
        part=seen.part,
    )
    windows = np.bincount(seen.row, minlength=len(lengths))
    cut = replace(
        count(lengths, seen.kept, units.names),
        windowed=int((windows > 1).sum()),
        windows=int(windows[windows > 1].sum()),
        narrowed=len(seen.narrowed),
    )
    return rows, replace(cut, notes=(*told(cut, length, config.truncate), *notes))


def _fitted(
    encoded: Encoded, units: Units, config: TaskRowsConfig, lengths: Counts, room: int
) -> tuple[Slid, tuple[str, ...]]:
    """What is seen of the texts, and what is to be said of it."""
    kept = np.minimum(lengths, _limits(encoded, units, config.limits))
    overlap = _overlap(encoded.task, config.windows, room)
    if overlap is not None and encoded.task != "choice":
        by_itself = encoded.task == "qa" and not config.windows
        note = (f"windows overlap by {overlap} tokens",) if by_itself else ()
        return slide(kept, room, overlap, _slider(encoded.task, units, kept)), note
    kept = level(kept, np.full(len(kept), room))
    note = ("rows of choices have no windows: long ones are cut",) if overlap is not None else ()
    whole = Slid(np.arange(len(kept)), units.part, np.zeros_like(kept), kept, kept, np.zeros(0, dtype=np.int64))
    return whole, note


def _room(frame: Frame, units: Units, length: int) -> int:
    marks = frame.marks(len(units.names), units.joined)
    if length - marks < len(units.names):
        raise InputError(
            f"rows of {length} slots, {marks} of them marks, have no room for {len(units.names)} "
            f"text{'s' if len(units.names) > 1 else ''}",
            where="rows.length",
            repair=f"set it to {marks + len(units.names)} at least; 128 is usual",
        )
    return length - marks


def _limits(encoded: Encoded, units: Units, limits: Sequence[int]) -> Counts:
    """(K,) the most tokens of each text of a row."""
    names = (*encoded.fields, "choice") if encoded.task == "choice" else encoded.fields
    allowed = {len(encoded.fields), len(names)} if limits else {0}
    if len(limits) not in allowed or any(limit < 0 for limit in limits):
        raise InputError(
            f"limits {', '.join(map(str, limits))} for the fields {', '.join(names)}",
            where="rows.limits",
            repair="give one number from 0 (no limit) for each field",
        )
    given = [*limits, *[0] * (len(names) - len(limits))]
    if encoded.task == "qa" and not limits and len(given) > 1:
        given[1] = QUESTION_LIMIT
    most = np.iinfo(np.int64).max
    return np.array([given[field] or most for field in units.field], dtype=np.int64)


def _overlap(task: str, windows: int, room: int) -> int | None:
    """None: no windows."""
    if windows >= room:
        raise InputError(
            f"windows overlap by {windows} tokens and have room for {room}",
            where="rows.windows",
            repair=f"set rows.windows to {room // 2} or less, or make rows.length larger",
        )
    return windows or (min(QA_OVERLAP, room // 2) if task == "qa" else None)


def _slider(task: str, units: Units, kept: Counts) -> Counts:
    """(U,) the text that slides: a context, otherwise the longest."""
    if task == "qa":
        return np.full(len(kept), len(units.names) - 1)
    longest: Counts = np.argmax(kept, axis=1)
    return longest
