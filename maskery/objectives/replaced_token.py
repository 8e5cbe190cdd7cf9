"""Is this the token that stood here, or was it replaced? Asked at every token of a row (ELECTRA, Clark et al. 2020).

A generator fills the chosen slots with tokens that it draws (`maskery.rewrite`), and only then is it known which of
them differ from what stood there: a drawn token that is the right one counts as original. So the feed asks with labels
that are all 0, and the rewriter sets them. How many are asked is known before. Slots that something else than the
generator changed (shuffled, one mask for a span, the run of a contrast) are not asked.

Shapes: n asked slots, D width.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maskery.batches import Batch, Targets
from maskery.edit import ASKED, Edit
from maskery.model.block import ACTIVATIONS
from maskery.model.config import Shape
from maskery.model.linear import Linear
from maskery.model.stack import Stack
from maskery.model.transformer import Hidden
from maskery.objectives.protocol import Answers, Metrics, Ranked
from maskery.objectives.tokens import flat_slots
from maskery.rows.ragged import Rows


class ReplacedHead(nn.Module):
    """States (n,D) -> (n,) scores: above 0 says that the token was replaced."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[shape.activation]
        self.dense = Linear(shape.width, shape.width)
        self.answer = Linear(shape.width, 1)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.answer(self.activation(self.dense(x)))
        return y.squeeze(-1)


class ReplacedToken:
    name: ClassVar[str] = "replaced_token"
    needs_pooler: ClassVar[bool] = False
    whole_batch: ClassVar[bool] = False

    def ask(self, rows: Rows, slots: int) -> Targets:
        asked = np.flatnonzero(np.isin(rows.edit, (Edit.NONE, *ASKED)))
        return Targets(index=flat_slots(rows, slots, asked), label=torch.zeros(len(asked), dtype=torch.long))

    def head(self, shape: Shape) -> nn.Module:
        return ReplacedHead(shape)

    def count(self, batch: Batch) -> int:
        return int(batch.targets[self.name].label.numel())

    def reads(self, batch: Batch) -> Tensor:
        return batch.targets[self.name].index

    def total(self, network: Stack, head: nn.Module, hidden: Hidden, batch: Batch) -> Tensor:
        scores, label = self._scores(head, hidden, batch)
        return F.binary_cross_entropy_with_logits(scores, label.to(scores.dtype), reduction="sum")

    def measure(self, network: Stack, head: nn.Module, hidden: Hidden, batch: Batch) -> Metrics:
        """Precision and recall are those of "replaced", told wherever the score is above 0."""
        scores, label = self._scores(head, hidden, batch)
        losses = F.binary_cross_entropy_with_logits(scores, label.to(scores.dtype), reduction="none")
        replaced, told, count = label == 1, scores > 0, int(label.numel())
        found = float((told & replaced).sum())
        return {
            "loss": (float(losses.sum(dtype=torch.float64)), count),
            "accuracy": (float((told == replaced).sum()), count),
            "precision": (found, int(told.sum())),
            "recall": (found, int(replaced.sum())),
            "replaced": (float(replaced.sum()), count),
            "auc": Ranked(scores.float().cpu().numpy(), replaced.cpu().numpy()),
        }

    def answers(self, batch: Batch) -> Answers | None:
        """Whether a token was replaced stands in no slot."""
        return None

    def _scores(self, head: nn.Module, hidden: Hidden, batch: Batch) -> tuple[Tensor, Tensor]:
        targets = batch.targets[self.name]
        scores: Tensor = head(hidden.select(targets.index))
        return scores.to(hidden.packed.dtype), targets.label
