"""Batches of texts, a pure function of (texts, seed, step): every epoch visits all units in a keyed order.

The texts of a unit are rows beside each other, so that n units of k texts are n * k rows. A text that is read twice
(SimCSE) is two rows, which draw their dropout apart. Where the second text is to be written from the first (SimBERT), a
pair (a, b) is two rows, in both orders:

    [CLS] a [SEP] b        asked of [SEP] b: b [SEP]; a sees a alone, so [CLS] is what it is of a text by itself
    [CLS] b [SEP] a
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from maskery.batches import Batch, Targets
from maskery.edit import Edit
from maskery.feed import share
from maskery.model.config import Mode
from maskery.objectives.next_token import NextToken
from maskery.phases import Phase, phase_at, phases_of
from maskery.rows.order import Order
from maskery.train.config import TrainingConfig
from maskery.vectors.learn.contrast import left_out
from maskery.vectors.learn.losses import TEXTS
from maskery.vectors.rows import TextRows

SIMILARITY = "similarity"
"""The name of the vectors' own loss and targets."""
Numbers = NDArray[np.int64]
_COUNTED = 1000
"""Batches whose false negatives are counted before training."""


@dataclass(frozen=True, kw_only=True)
class VectorFeed:
    rows: TextRows
    """Of all distinct texts."""
    units: Numbers
    """(U,k) numbers of rows."""
    label: NDArray[np.float64]
    training: TrainingConfig
    pad: int
    offset: int
    """The position of a row's first slot."""
    end: int | None = None
    """Where the second text is written from the first: the token that ends it. The front is then one mark."""
    segments: int = 2
    """Kinds of segments that the model knows."""

    @property
    def seed(self) -> int:
        return self.training.seed

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        return phases_of(self.training)

    @property
    def largest_unit(self) -> int:
        """Rows of a unit."""
        return int(self.units.shape[1])

    @property
    def longest(self) -> int:
        """Slots of the longest row."""
        lengths = self.rows.length[self.units]
        return int(lengths.max() if self.end is None else (lengths.sum(1) - 2).max())

    def chosen(self, step: int, rank: int = 0, world: int = 1) -> Numbers:
        """The units of a step."""
        phase = phase_at(self.phases, step)
        mine = share(phase.batch, rank, world)
        visits = np.arange(mine.start, mine.stop, dtype=np.int64) + (step - phase.first) * phase.batch
        return Order(self.seed, "vectors", (len(self.units),)).visit(visits)[1]

    def micro_batches(self, step: int, rank: int, world: int, micro: int) -> list[Batch]:
        units = self.chosen(step, rank, world)
        return [self.asked(units[start : start + micro], step) for start in range(0, len(units), micro)]

    def asked(self, units: Numbers, step: int = 0) -> Batch:
        """The rows of the given units with their targets."""
        texts = self.units[units]
        targets = Targets(
            index=torch.arange(len(units)),
            label=torch.from_numpy(self.label[units]),
            extra={TEXTS: torch.from_numpy(texts)},
        )
        first = texts.flatten()
        if self.end is None:
            return replace(self._batch(first, None, units, step), targets={SIMILARITY: targets})
        batch = self._batch(first, texts[:, ::-1].flatten(), units, step)
        return replace(batch, targets={SIMILARITY: targets, NextToken.name: self._next(batch, self.end)})

    def _batch(self, first: Numbers, second: Numbers | None, units: Numbers, step: int) -> Batch:
        """Rows of the first texts as they are framed, with the tokens of the second ones behind."""
        rows, lengths = self.rows, self.rows.length[first]
        written = np.zeros_like(lengths) if second is None else rows.length[second] - 2
        place = np.arange(int((lengths + written).max()))
        real = place < (lengths + written)[:, None]
        source = rows.start[first][:, None] + place
        if second is not None:
            source = np.where(place < lengths[:, None], source, (rows.start[second] + 1 - lengths)[:, None] + place)
        ids = np.full(real.shape, self.pad, dtype=np.int64)
        ids[real] = rows.ids[source[real]]
        behind = ((place >= lengths[:, None]) & real).astype(np.int64)
        segments = behind * (self.segments > 1)
        if rows.segments is not None:
            segments[real] += rows.segments[source[real]] * (behind[real] == 0)
        slots = {"document": behind}
        if second is not None:
            slots["mode"] = np.full_like(behind, Mode.PREFIX)
        shown = torch.from_numpy(ids)
        return Batch(
            step=step,
            rows=torch.from_numpy(np.repeat(units, self.largest_unit)),
            ids=shown,
            length=torch.from_numpy(lengths + written),
            segments=torch.from_numpy(segments),
            positions=torch.from_numpy(np.where(real, place + self.offset, 0)),
            original=shown,
            edit=torch.full(shown.shape, int(Edit.NONE), dtype=torch.uint8),
            slots={name: torch.from_numpy(fact) for name, fact in slots.items()},
        )

    def _next(self, batch: Batch, end: int) -> Targets:
        """From the mark that ends the first text on, what comes next; behind the last token, the end."""
        behind = batch.slots["document"]
        width = batch.ids.shape[1]
        begin = batch.length - behind.sum(1)
        place = torch.arange(width)
        asked = (place >= begin[:, None] - 1) & (place < batch.length[:, None])
        following = torch.cat([batch.ids[:, 1:], batch.ids.new_full((batch.size, 1), end)], 1)
        following[torch.arange(batch.size), batch.length - 1] = end
        return Targets(index=asked.flatten().nonzero().squeeze(1), label=following[asked])

    def no_negatives(self, rivals: str) -> tuple[int, int]:
        """How many comparisons of the first epoch's batches are left out as false negatives, and of how many batches;
        counted on the first of them where there are many."""
        phase = self.phases[0]
        batches = min(_COUNTED, phase.stop, max(1, len(self.units) // phase.batch))
        if len(np.unique(self.units[:, :2])) == self.units[:, :2].size:
            return 0, batches
        return sum(left_out(self.units[self.chosen(step)], rivals) for step in range(batches)), batches
