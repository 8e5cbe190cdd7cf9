"""Does the second segment follow the first? Asked of the row's pooled state; label 1 = another document's (BERT)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maskery.batches import Batch, Targets
from maskery.model.config import Shape
from maskery.model.heads import ClassHead
from maskery.model.transformer import Hidden, Network
from maskery.objectives.protocol import Answers, Metrics
from maskery.rows.ragged import Rows


class NextSentence:
    name: ClassVar[str] = "next_sentence"
    needs_pooler: ClassVar[bool] = True
    whole_batch: ClassVar[bool] = False

    def ask(self, rows: Rows, slots: int) -> Targets:
        labelled = np.flatnonzero(rows.label >= 0)
        return Targets(index=torch.from_numpy(labelled), label=torch.from_numpy(rows.label[labelled].astype(np.int64)))

    def head(self, shape: Shape) -> nn.Module:
        return ClassHead(shape.width, 2)

    def count(self, batch: Batch) -> int:
        return int(batch.targets[self.name].label.numel())

    def reads(self, batch: Batch) -> Tensor:
        return batch.rows.new_empty(0)

    def total(self, network: Network, head: nn.Module, hidden: Hidden, batch: Batch) -> Tensor:
        scores = self._scores(head, hidden, batch)
        return F.cross_entropy(scores, batch.targets[self.name].label, reduction="sum")

    def measure(self, network: Network, head: nn.Module, hidden: Hidden, batch: Batch) -> Metrics:
        scores, label = self._scores(head, hidden, batch), batch.targets[self.name].label
        losses = F.cross_entropy(scores, label, reduction="none")
        count = int(label.numel())
        return {
            "loss": (float(losses.sum(dtype=torch.float64)), count),
            "accuracy": (float((scores.argmax(1) == label).sum()), count),
        }

    def answers(self, batch: Batch) -> Answers | None:
        return None

    def _scores(self, head: nn.Module, hidden: Hidden, batch: Batch) -> Tensor:
        assert hidden.pooled is not None, "a system gives the network a pooler when an objective needs one"
        scores: Tensor = head(hidden.pooled.index_select(0, batch.targets[self.name].index))
        return scores.to(hidden.pooled.dtype)
