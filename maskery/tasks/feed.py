"""Batches of a task, a pure function of (rows, questions, seed, step): every epoch visits all units in a keyed order.

A unit is what has to be read together: a row, the rows of an example that are joined, or the candidates of a question.
`batch` and `micro` count units.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from maskery.batches import Batch, Targets
from maskery.tasks.base import UnitFeed
from maskery.tasks.batches import TASK, batch_of, no_targets, with_decoder
from maskery.tasks.framing.meta import MetaArrays
from maskery.tasks.framing.rows import Rows
from maskery.tasks.questions import Question
from maskery.tasks.system import CATEGORIES, LANGUAGE, QUANTITIES
from maskery.train.config import TrainingConfig

TOKENS = 8192
"""Slots of a batch that is only read."""


@dataclass(frozen=True, kw_only=True)
class TaskFeed(UnitFeed):
    rows: Rows
    question: Question
    training: TrainingConfig
    pad: int
    offset: int
    meta: MetaArrays | None = None
    language: bool = False
    """Whether the next tokens are asked, too."""
    decoder_start: int | None = None
    """The token with which the network's decoder begins; None: it has none."""

    @cached_property
    def _of_unit(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All rows, those of a unit beside each other, and where each unit begins."""
        unit = self.question.units(self.rows)
        order = np.argsort(unit, kind="stable")
        return order, np.concatenate(([0], np.cumsum(np.unique(unit, return_counts=True)[1])))

    @property
    def units(self) -> int:
        return len(self._of_unit[1]) - 1

    @property
    def largest_unit(self) -> int:
        """Rows."""
        return int(np.diff(self._of_unit[1]).max(initial=1))

    @property
    def unit_name(self) -> str:
        if self.question.sides > 1:
            return f"examples of {self.question.sides} rows"
        return "rows" if self.largest_unit == 1 else "questions"

    def rows_of(self, units: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the rows of units."""
        every, start = self._of_unit
        return np.concatenate([every[start[unit] : start[unit + 1]] for unit in units])

    def asked(self, units: NDArray[np.int64], step: int = 0) -> Batch:
        """The rows of the given units with their targets."""
        numbers = self.rows_of(units)
        rows = self.rows.take(numbers)
        return self._with_columns(self._plain(rows, numbers, step), rows, self.question.targets(rows))

    def _plain(self, rows: Rows, numbers: NDArray[np.int64], step: int = 0) -> Batch:
        batch = batch_of(rows, torch.from_numpy(numbers), self.pad, self.offset, step)
        return batch if self.decoder_start is None else with_decoder(batch, self.decoder_start)

    def _with_columns(self, batch: Batch, rows: Rows, targets: Targets) -> Batch:
        asked = {TASK: replace(targets, extra={**targets.extra, **self._columns(rows)})}
        if self.language:
            asked[LANGUAGE] = _next_tokens(batch)
        return replace(batch, targets=asked)

    def _columns(self, rows: Rows) -> dict[str, torch.Tensor]:
        if self.meta is None:
            return {}
        example = rows.example[:: self.question.sides]
        return {
            CATEGORIES: torch.from_numpy(self.meta.categories[example]),
            QUANTITIES: torch.from_numpy(self.meta.quantities[example]),
        }

    def to_read(self) -> Iterator[tuple[NDArray[np.int64], Batch]]:
        """All rows without targets, those of like length together: their numbers, and a batch. Rows that have their
        scores together (`Question.sides`) stay beside each other."""
        sides = self.question.sides
        length = self.rows.length.reshape(-1, sides).max(axis=1, initial=0)
        order = np.argsort(-length, kind="stable")
        start = 0
        while start < len(order):
            slots = max(1, int(length[order[start]])) * sides
            chosen = order[start : start + max(1, TOKENS // slots)]
            numbers = (chosen[:, None] * sides + np.arange(sides)).ravel()
            rows = self.rows.take(numbers)
            yield numbers, self._with_columns(self._plain(rows, numbers), rows, no_targets())
            start += len(chosen)


def _next_tokens(batch: Batch) -> Targets:
    width = batch.ids.shape[1]
    index = (torch.arange(width) + 1 < batch.length[:, None]).flatten().nonzero().squeeze(1)
    return Targets(index=index, label=batch.ids.flatten()[index + 1])
