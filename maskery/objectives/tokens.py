"""What the questions about a token share: a tied head over the vocabulary, its loss and its accuracy."""

from __future__ import annotations

from typing import ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maskery.batches import Batch, Targets
from maskery.model.config import Shape
from maskery.model.heads import TokenHead
from maskery.model.stack import Stack
from maskery.model.transformer import Hidden
from maskery.objectives.answers import token_loss, token_losses_and_hits
from maskery.objectives.protocol import Metrics
from maskery.rows.ragged import Rows


def flat_slots(rows: Rows, slots: int, chosen: NDArray[np.int64]) -> Tensor:
    """Flat slots b*T+t of the padded batch for places in the ragged arrays."""
    return torch.from_numpy(rows.row[chosen] * slots + rows.slot[chosen])


class TokenObjective:
    """A question whose answer is a token: subclasses say which slots are asked for what."""

    name: ClassVar[str]
    needs_pooler: ClassVar[bool] = False
    whole_batch: ClassVar[bool] = False
    smoothing = 0.0
    """The share of an answer that all tokens have alike."""

    def head(self, shape: Shape) -> nn.Module:
        return TokenHead(shape)

    def targets(self, batch: Batch) -> Targets:
        return batch.targets[self.name]

    def count(self, batch: Batch) -> int:
        return int(self.targets(batch).label.numel())

    def reads(self, batch: Batch) -> Tensor:
        return self.targets(batch).index

    def total(self, network: Stack, head: nn.Module, hidden: Hidden, batch: Batch) -> Tensor:
        token_head, targets = cast(TokenHead, head), self.targets(batch)
        states = token_head.transform(hidden.select(targets.index))
        return token_loss(token_head, states, network.embeddings.tokens, targets.label, self.smoothing)

    def measure(self, network: Stack, head: nn.Module, hidden: Hidden, batch: Batch) -> Metrics:
        token_head, targets = cast(TokenHead, head), self.targets(batch)
        states = token_head.transform(hidden.select(targets.index))
        losses, hits = token_losses_and_hits(token_head, states, network.embeddings.tokens, targets.label)
        count = int(targets.label.numel())
        return {
            "loss": (float(losses.sum(dtype=torch.float64)), count),
            "accuracy": (float(hits.sum()), count),
        }
