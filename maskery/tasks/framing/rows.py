"""Rows of a task as flat arrays, with the way back from every slot to the characters of its text.

B rows, N slots of all rows together; row b is the slots start[b] .. start[b+1].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maskery.rows.ragged import EndToEnd
from maskery.tasks.framing.cut import Counts
from maskery.tasks.framing.frame import Mark, Text
from maskery.tasks.framing.tokens import Tokens

_PER_ROW = ("example", "part", "start")


class Place(NamedTuple):
    """Characters start .. stop-1 of a text."""

    field: int
    start: int
    stop: int


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row by itself, to look at."""

    ids: NDArray[np.int32]
    segments: NDArray[np.uint8]
    example: int
    part: int
    field: NDArray[np.int16]
    offsets: NDArray[np.int32]
    """(T,2)"""


@dataclass(frozen=True, kw_only=True)
class Rows(EndToEnd):
    start: NDArray[np.int64]
    """(B+1,)"""
    example: NDArray[np.int64]
    """(B,) the number of the example."""
    part: NDArray[np.int64]
    """(B,) which window of it, or which choice."""
    ids: NDArray[np.int32]
    segments: NDArray[np.uint8]
    field: NDArray[np.int16]
    """(N,) the text that a slot is of; a choice is numbered behind the fields; -1 for marks."""
    token: NDArray[np.int32]
    """(N,) the number of the token in its text; -1 for marks."""
    offsets: NDArray[np.int32]
    """(N,2) first character in that text and one behind the last; -1 for marks."""

    def __len__(self) -> int:
        return len(self.example)

    def __iter__(self) -> Iterator[Row]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: int) -> Row:
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        at = slice(*self.start[number % len(self) :][:2])
        return Row(
            ids=self.ids[at],
            segments=self.segments[at],
            example=int(self.example[number]),
            part=int(self.part[number]),
            field=self.field[at],
            offsets=self.offsets[at],
        )

    def take(self, numbers: ArrayLike) -> Rows:
        """The named rows, in this order."""
        rows = np.asarray(numbers, dtype=np.int64)
        size = self.length[rows]
        start = np.concatenate(([0], np.cumsum(size)))
        source = np.arange(start[-1]) + np.repeat(self.start[rows] - start[:-1], size)
        slots = {item.name: getattr(self, item.name)[source] for item in fields(self) if item.name not in _PER_ROW}
        return replace(self, start=start, example=self.example[rows], part=self.part[rows], **slots)

    def padded(self, values: NDArray[np.generic], fill: int) -> NDArray[np.int64]:
        """(B,T) of facts of slots (N,), filled up on the right."""
        grid = np.full((len(self), int(self.length.max(initial=0))), fill, dtype=np.int64)
        grid[self.row, self.slot] = values
        return grid

    def characters(self, row: int, first: int, last: int) -> Place:
        """What the slots first .. last of a row, both counted, stand for: from the first character of the first to the
        last of the last. They are slots of one text."""
        one, other = self.start[row] + first, self.start[row] + last
        if not first <= last or self.field[one] < 0 or self.field[one] != self.field[other]:
            raise ValueError(f"slots {first} to {last} of row {row} are not of one text")
        return Place(int(self.field[one]), int(self.offsets[one, 0]), int(self.offsets[one : other + 1, 1].max()))

    def seen(self, row: int, field: int) -> Place | None:
        """From the first character of a text that a row shows to the last; None where it shows nothing of it."""
        at = slice(*self.start[row:][:2])
        offsets = self.offsets[at][self.field[at] == field]
        return Place(field, int(offsets[0, 0]), int(offsets[:, 1].max())) if len(offsets) else None

    def slots(self, row: int, place: Place) -> tuple[int, int] | None:
        """The first and the last slot of a row that stand for some of the characters; None where none does."""
        at = slice(*self.start[row:][:2])
        here = (
            (self.field[at] == place.field) & (self.offsets[at, 0] < place.stop) & (self.offsets[at, 1] > place.start)
        )
        found = np.flatnonzero(here)
        return (int(found[0]), int(found[-1])) if len(found) else None

    @cached_property
    def best_seen(self) -> NDArray[np.bool_]:
        """(N,) for each token of a text read in windows, the slot with the most text on its narrower side: where a
        token is in several windows, this one answers for it. Of equals the first. False for marks."""
        if not self.part.any():
            return self.field >= 0
        real = np.flatnonzero(self.field >= 0)
        whose = np.stack((self.row[real], self.field[real]))
        begins = np.flatnonzero(_changes(whose))
        size = np.diff(np.append(begins, len(real)))
        left = np.arange(len(real)) - np.repeat(begins, size)
        around = np.minimum(left, np.repeat(size, size) - 1 - left)
        order = np.lexsort((self.row[real], -around, self.token[real], self.field[real], self.example[self.row[real]]))
        key = np.stack((self.example[self.row[real]], self.field[real], self.token[real]))[:, order]
        best = np.zeros(len(self.ids), dtype=bool)
        best[real[order[_changes(key)]]] = True
        return best


def _changes(keys: NDArray[Any]) -> NDArray[np.bool_]:
    """(N,) whether something in a column of (K,N) is other than in the column before; the first is."""
    other: NDArray[np.bool_] = (np.diff(keys, axis=1) != 0).any(axis=0)
    return np.concatenate((np.ones(min(1, keys.shape[1]), dtype=bool), other))


def assemble(
    layout: Sequence[Mark | Text],
    tokens: Tokens,
    texts: Counts,
    field: Counts,
    stretch: tuple[Counts, Counts],
    *,
    example: Counts,
    part: Counts,
) -> Rows:
    """Rows of marks and texts. `texts` (B,K) are numbers of texts, `field` (B,K) what their slots are told to be of,
    `stretch` (B,K,2) first tokens and ends of the two stretches of each text that are kept. Every row is a sequence of
    blocks, a mark or a stretch each; all rows have equally many, so one repeat lays out everything."""
    blocks = _blocks(layout, tokens.first[texts], field, stretch)
    size = blocks.size.ravel()
    of_slot = np.repeat(np.arange(size.size), size)
    within = np.arange(len(of_slot)) - np.repeat(np.cumsum(size) - size, size)
    marks = blocks.mark[of_slot % len(blocks.mark)]
    source = np.where(marks < 0, blocks.first.ravel()[of_slot] + within, -1)
    return Rows(
        start=np.concatenate(([0], np.cumsum(blocks.size.sum(axis=1)))),
        example=example,
        part=part,
        ids=_ids(tokens, source, marks),
        segments=blocks.segment[of_slot % len(blocks.mark)],
        field=blocks.field.ravel()[of_slot].astype(np.int16),
        token=_numbers(tokens, source),
        offsets=_offsets(tokens, source),
    )


class _Blocks(NamedTuple):
    """C blocks in each of B rows."""

    size: Counts
    """(B,C) slots."""
    first: Counts
    """(B,C) the first token."""
    field: Counts
    mark: Counts
    """(C,) -1: a stretch of a text."""
    segment: NDArray[np.uint8]
    """(C,)"""


def _blocks(layout: Sequence[Mark | Text], base: Counts, field: Counts, stretch: tuple[Counts, Counts]) -> _Blocks:
    """`base` (B,K): where the tokens of each text begin."""
    one, none = np.ones(len(base), dtype=np.int64), np.full(len(base), -1)
    columns: list[tuple[Counts, Counts, Counts]] = []
    for each in layout:
        if isinstance(each, Mark):
            columns.append((one, none, none))
            continue
        for half in (0, 1):
            begin, end = (side[:, each.number, half] for side in stretch)
            columns.append((end - begin, base[:, each.number] + begin, field[:, each.number]))
    size, first, field_of = (np.stack(each, axis=1) for each in zip(*columns, strict=True))
    twice = [each for each in layout for _ in range(1 if isinstance(each, Mark) else 2)]
    return _Blocks(
        size=size,
        first=first,
        field=field_of,
        mark=np.array([each.id if isinstance(each, Mark) else -1 for each in twice]),
        segment=np.array([each.segment for each in twice], dtype=np.uint8),
    )


def _ids(tokens: Tokens, source: Counts, marks: Counts) -> NDArray[np.int32]:
    found = marks.astype(np.int32)
    found[source >= 0] = tokens.ids[source[source >= 0]]
    return found


def _numbers(tokens: Tokens, source: Counts) -> NDArray[np.int32]:
    within = np.arange(len(tokens.ids)) - np.repeat(tokens.first[:-1], tokens.lengths)
    found = np.full(len(source), -1, dtype=np.int32)
    found[source >= 0] = within[source[source >= 0]]
    return found


def _offsets(tokens: Tokens, source: Counts) -> NDArray[np.int32]:
    found = np.full((len(source), 2), -1, dtype=np.int32)
    real = source >= 0
    found[real, 0], found[real, 1] = tokens.start[source[real]], tokens.stop[source[real]]
    return found


def joined_windows(rows: Rows) -> tuple[Rows, NDArray[np.int64]]:
    """One row for each example, of the slots of its text that answer for their tokens; and the slots they come from."""
    chosen = np.flatnonzero(rows.best_seen & (rows.field == 0))
    order = np.lexsort((rows.token[chosen], rows.example[rows.row[chosen]]))
    slots = chosen[order]
    example, sizes = np.unique(rows.example[rows.row[slots]], return_counts=True)
    made = replace(
        rows,
        start=np.concatenate(([0], np.cumsum(sizes))),
        example=example,
        part=np.zeros_like(example),
        **{name: getattr(rows, name)[slots] for name in ("ids", "segments", "field", "token", "offsets")},
    )
    return made, slots
