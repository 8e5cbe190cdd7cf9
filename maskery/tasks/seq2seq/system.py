"""A network with its head over the vocabulary, asked for every token of a target from those before it."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Self

from torch import Tensor

from maskery.batches import Batch
from maskery.model.heads import TokenHead
from maskery.model.transformer import Hidden, Network, inputs_of
from maskery.objectives.next_token import NextToken
from maskery.system import Trainable
from maskery.tasks.batches import TASK
from maskery.tasks.seq2seq.pairs import visibility_of
from maskery.writing.forms import Form


class WritingSystem(Trainable):
    """The loss is counted per token, so that micro-batches add up however long their targets are."""

    network: Network
    head: TokenHead

    def __init__(self, network: Network, head: TokenHead, form: Form, smoothing: float = 0.0) -> None:
        super().__init__()
        self.network, self.head, self.form = network, head, form
        self.question = NextToken()
        self.question.smoothing = smoothing
        self.weights = {TASK: 1.0}

    def twin(self) -> Self:
        network = Network(self.network.shape, pooler=self.network.pooler is not None)
        return type(self)(network, deepcopy(self.head), self.form, self.question.smoothing)

    def counts(self, batch: Batch) -> dict[str, int]:
        return {TASK: self.question.count(batch.asked_about(self.question.name))}

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        asked = batch.asked_about(self.question.name)
        stack = self.network if self.network.decoder is None else self.network.decoder
        return {TASK: self.question.total(stack, self.head, self.read(batch), asked)}

    def read(self, batch: Batch) -> Hidden:
        """What is said of the rows in which the target stands."""
        inputs = inputs_of(batch)
        if self.network.decoder is None:
            inputs = replace(inputs, visibility=visibility_of(self.form))
            alone: Hidden = self.network(inputs, reads=self.question.reads(batch))
            return alone
        both: Hidden = self.network(inputs)
        assert both.decoder is not None
        return both.decoder
