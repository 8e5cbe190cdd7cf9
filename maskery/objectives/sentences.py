"""How are the segments of a row related? Asked of the row's pooled state; the classes are those of the pair builder.

    next_sentence      BERT       0 follows, 1 from another document
    sentence_order     ALBERT     0 as they stood, 1 exchanged
    three_way          StructBERT 0 follows, 1 comes before, 2 from another document
    sentence_distance  ERNIE 2.0  0 adjacent, 1 elsewhere in the same document, 2 another document
    segment_order      ERNIE 2.0  which permutation of up to three segments

A row that is no pair is not asked. Nor is one that is read from one side or by its first segment alone: where rows
differ in how they are read (UniLM), the question is about those that are read in full.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maskery.batches import Batch, Targets
from maskery.model.config import Shape
from maskery.model.heads import ClassHead
from maskery.model.stack import Stack
from maskery.model.transformer import Hidden
from maskery.objectives.config import PAIR_OF
from maskery.objectives.protocol import Answers, Metrics
from maskery.rows.config import PAIRS
from maskery.rows.modes import in_full
from maskery.rows.ragged import Rows


class SentenceObjective:
    name: ClassVar[str]
    needs_pooler: ClassVar[bool] = True
    whole_batch: ClassVar[bool] = False

    def ask(self, rows: Rows, slots: int) -> Targets:
        labelled = np.flatnonzero((rows.label >= 0) & in_full(rows))
        return Targets(index=torch.from_numpy(labelled), label=torch.from_numpy(rows.label[labelled].astype(np.int64)))

    def head(self, shape: Shape) -> nn.Module:
        return ClassHead(shape.width, len(PAIRS.get(PAIR_OF[self.name]).labels))

    def count(self, batch: Batch) -> int:
        return int(batch.targets[self.name].label.numel())

    def reads(self, batch: Batch) -> Tensor:
        return batch.rows.new_empty(0)

    def total(self, network: Stack, head: nn.Module, hidden: Hidden, batch: Batch) -> Tensor:
        scores = self._scores(head, hidden, batch)
        return F.cross_entropy(scores, batch.targets[self.name].label, reduction="sum")

    def measure(self, network: Stack, head: nn.Module, hidden: Hidden, batch: Batch) -> Metrics:
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


class NextSentence(SentenceObjective):
    name: ClassVar[str] = "next_sentence"


class SentenceOrder(SentenceObjective):
    name: ClassVar[str] = "sentence_order"


class ThreeWay(SentenceObjective):
    name: ClassVar[str] = "three_way"


class SentenceDistance(SentenceObjective):
    name: ClassVar[str] = "sentence_distance"


class SegmentOrder(SentenceObjective):
    name: ClassVar[str] = "segment_order"
