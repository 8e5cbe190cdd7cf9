"""Rows of a task as the batch that the network is fed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from maskery.batches import Batch, Targets
from maskery.checkpoint.calls import shifted
from maskery.edit import Edit
from maskery.tasks.framing.rows import Rows

TASK = "task"
"""The name of the task's own loss and targets."""


def batch_of(rows: Rows, numbers: torch.Tensor, pad: int, offset: int, step: int = 0) -> Batch:
    """`numbers` (B,): what the rows are called in errors; `offset`: the position of a row's first slot."""
    ids = torch.from_numpy(rows.padded(rows.ids, pad))
    return Batch(
        step=step,
        rows=numbers,
        ids=ids,
        length=torch.from_numpy(rows.length),
        segments=torch.from_numpy(rows.padded(rows.segments, 0)),
        positions=torch.from_numpy(rows.padded(rows.slot + offset, 0)),
        original=ids,
        edit=torch.full(ids.shape, int(Edit.NONE), dtype=torch.uint8),
        slots={"document": torch.zeros_like(ids)},
    )


def with_decoder(batch: Batch, start: int) -> Batch:
    """The same for a network whose decoder reads the row once more, behind the token that begins it (BART)."""
    real = torch.arange(batch.ids.shape[1]) < batch.length[:, None]
    return replace(batch, decoder=replace(batch, ids=shifted(batch.ids, real, start), targets={}))


def flat_slots(rows: Rows, slots: np.ndarray[tuple[int], np.dtype[np.int64]]) -> torch.Tensor:
    """Slots of the rows' own run -> slots b*T+t of the padded batch."""
    width = int(rows.length.max(initial=0))
    return torch.from_numpy(rows.row[slots] * width + rows.slot[slots])


def no_targets() -> Targets:
    empty = torch.zeros(0, dtype=torch.long)
    return Targets(index=empty, label=empty)
