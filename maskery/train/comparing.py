"""Gradient caching: questions that compare all rows of a step, whatever the micro-batches and ranks (Gao et al. 2021).

Every micro-batch is read once without gradient, which leaves a few vectors a row. These are gathered from all ranks
and compared once; every rank computes the same. What the loss changes with each vector is put into the targets of the
micro-batch it came from, which is then read again, with the same dropout, and takes it for the gradient of its vectors.
The result is that of one large batch, and the memory that of a micro-batch; the price is a second forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from maskery.batches import Batch, Targets
from maskery.objectives.protocol import Comparing
from maskery.system import Trainable
from maskery.train.ranks import Ranks

Read = Callable[[int, Batch], dict[str, Tensor]]
"""The vectors of a micro-batch, given its number too."""


def compared(system: Trainable, batches: list[Batch], read: Read, ranks: Ranks, *, gradient: bool) -> list[Batch]:
    """The batches with the outcome of all comparisons in their targets. Every rank has to ask.

    One batch alone needs none: the objective compares its rows itself.
    """
    if not system.comparisons or (len(batches) == 1 and ranks.world == 1):
        return batches
    vectors = [read(number, batch) for number, batch in enumerate(batches)]
    for name, objective in system.comparisons.items():
        mine = [(each[name].detach().cpu(), batch.targets[name]) for each, batch in zip(vectors, batches, strict=True)]
        known = _outcomes(objective, mine, ranks, gradient)
        batches = [
            replace(batch, targets={**batch.targets, name: targets})
            for batch, targets in zip(batches, known, strict=True)
        ]
    return batches


_Part = tuple[Tensor, Targets]


def _outcomes(objective: Comparing, mine: Sequence[_Part], ranks: Ranks, gradient: bool) -> list[Targets]:
    """The targets of this rank's batches with loss, hit and gradient of their rows."""
    parts = ranks.gather(list(mine))
    every = [part for of_rank in parts for part in of_rank]
    if not mine:
        return []
    leaf = torch.cat([vectors for vectors, _ in every]).requires_grad_(gradient)
    with torch.set_grad_enabled(gradient):
        found = objective.compare(leaf, _joined([targets for _, targets in every]))
    outcome = {"loss": found.losses.detach(), "hit": found.hits}
    if gradient:
        (outcome["gradient"],) = torch.autograd.grad(found.losses.sum(), leaf)
    start = sum(len(vectors) for of_rank in parts[: ranks.rank] for vectors, _ in of_rank)
    known = []
    for vectors, targets in mine:
        rows = slice(start, start + len(vectors))
        of_rows = {name: values[rows] for name, values in outcome.items()}
        known.append(replace(targets, extra={**targets.extra, **of_rows}))
        start = rows.stop
    return known


def _joined(parts: list[Targets]) -> Targets:
    return Targets(
        index=torch.cat([part.index for part in parts]),
        label=torch.cat([part.label for part in parts]),
        extra={name: torch.cat([part.extra[name] for part in parts]) for name in parts[0].extra},
    )
