"""Which tokens stood in a span, told by what stands around it? (SpanBERT, Joshi et al. 2019)

A span here is a maximal run of chosen slots: two that touch are one. Its tokens are asked of the states of the slots
before and after it and of the place in the span, not of the states at the tokens themselves. As in the original's code
a run that touches [CLS] or [SEP] is left out, and so are places beyond `LONGEST`.
"""

from __future__ import annotations

from typing import ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maskery.batches import Batch, Targets
from maskery.edit import ASKED
from maskery.model.block import ACTIVATIONS
from maskery.model.config import Shape
from maskery.model.linear import Linear, Norm
from maskery.model.stack import Stack
from maskery.model.transformer import Hidden
from maskery.objectives.cross_entropy import losses_and_hits, tied_cross_entropy
from maskery.objectives.protocol import Answers, Metrics
from maskery.objectives.tokens import flat_slots
from maskery.rows.ragged import Rows

LONGEST = 15
"""Places of a span that are asked."""
PLACE_WIDTH = 200


class BoundaryHead(nn.Module):
    """The states at both ends (n,D) and the places (n,) -> (n,E): two layers, each with its activation and norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[shape.activation]
        self.places = nn.Parameter(torch.empty(LONGEST, PLACE_WIDTH))
        self.first = Linear(2 * shape.width + PLACE_WIDTH, shape.width)
        self.first_norm = Norm(shape.width, shape.eps)
        self.second = Linear(shape.width, shape.embedding)
        self.second_norm = Norm(shape.embedding, shape.eps)
        self.bias = nn.Parameter(torch.empty(shape.vocabulary))

    def forward(self, left: Tensor, right: Tensor, place: Tensor) -> Tensor:
        x = torch.cat([left, right, F.embedding(place, self.places)], dim=1)
        x = self.first_norm(self.activation(self.first(x)))
        y: Tensor = self.second_norm(self.activation(self.second(x)))
        return y


class SpanBoundary:
    name: ClassVar[str] = "span_boundary"
    needs_pooler: ClassVar[bool] = False
    whole_batch: ClassVar[bool] = False

    def ask(self, rows: Rows, slots: int) -> Targets:
        chosen = np.isin(rows.edit, ASKED)
        begins = rows.slot == 0
        ends = np.roll(begins, -1)
        first = np.flatnonzero(chosen & (begins | ~np.roll(chosen, 1)))
        last = np.flatnonzero(chosen & (ends | ~np.roll(chosen, -1)))
        # Where rows have no special at their ends, a run may touch them: nothing of its row stands beside it.
        beside = rows.special[first - 1] | rows.special[(last + 1) % len(chosen)]
        inner = ~(begins[first] | ends[last] | beside)
        first, behind = first[inner], last[inner] + 1
        size = np.minimum(behind - first, LONGEST)
        run = np.repeat(np.arange(len(first)), size)
        place = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        asked = first[run] + place
        return Targets(
            index=flat_slots(rows, slots, asked),
            label=torch.from_numpy(rows.original[asked].astype(np.int64)),
            extra={
                "left": flat_slots(rows, slots, first[run] - 1),
                "right": flat_slots(rows, slots, behind[run]),
                "place": torch.from_numpy(place),
            },
        )

    def head(self, shape: Shape) -> nn.Module:
        return BoundaryHead(shape)

    def count(self, batch: Batch) -> int:
        return int(batch.targets[self.name].label.numel())

    def reads(self, batch: Batch) -> Tensor:
        extra = batch.targets[self.name].extra
        return torch.cat([extra["left"], extra["right"]])

    def total(self, network: Stack, head: nn.Module, hidden: Hidden, batch: Batch) -> Tensor:
        states, bias = self._states(head, hidden, batch)
        return tied_cross_entropy(states, network.embeddings.tokens, bias, batch.targets[self.name].label)

    def measure(self, network: Stack, head: nn.Module, hidden: Hidden, batch: Batch) -> Metrics:
        states, bias = self._states(head, hidden, batch)
        losses, hits = losses_and_hits(states, network.embeddings.tokens, bias, batch.targets[self.name].label)
        count = self.count(batch)
        return {
            "loss": (float(losses.sum(dtype=torch.float64)), count),
            "accuracy": (float(hits.sum()), count),
        }

    def answers(self, batch: Batch) -> Answers:
        """Both ends are asked for what stands in the span."""
        targets = batch.targets[self.name]
        return Answers(asked=self.reads(batch), answer=torch.cat([targets.index, targets.index]))

    def _states(self, head: nn.Module, hidden: Hidden, batch: Batch) -> tuple[Tensor, Tensor]:
        boundary, extra = cast(BoundaryHead, head), batch.targets[self.name].extra
        states = boundary(hidden.select(extra["left"]), hidden.select(extra["right"]), extra["place"])
        return states, boundary.bias
