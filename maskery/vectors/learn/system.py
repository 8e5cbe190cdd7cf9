"""A network that makes vectors, with what stands on it in training: a projection, a loss, a head that writes."""

from __future__ import annotations

from copy import deepcopy
from typing import Self, cast

import torch
from torch import Tensor, nn

from maskery.batches import Batch
from maskery.model.heads import TokenHead
from maskery.model.initial import initialise
from maskery.model.transformer import Hidden, inputs_of
from maskery.objectives.next_token import NextToken
from maskery.objectives.protocol import Comparing, cached_total
from maskery.system import Trainable
from maskery.train.precision import exactly
from maskery.vectors.learn.batches import SIMILARITY
from maskery.vectors.learn.losses import VectorLoss
from maskery.vectors.model import VectorModel
from maskery.vectors.steps import Dense

_UNUSED = ("made.model.head_modules.", "made.model.generator.")


class VectorSystem(Trainable):
    """Sums by name: `similarity`, and `next_token` where the second text of a pair is written from the first."""

    def __init__(
        self,
        made: VectorModel,
        loss: VectorLoss,
        *,
        projection: Dense | None = None,
        writes: TokenHead | None = None,
        weight: float = 1.0,
        skip: int = 0,
    ) -> None:
        """`projection` is thrown away after training; `writes` says tokens, and counts `weight`; `skip`: slots of the
        front that are a prompt's."""
        super().__init__()
        self.made, self.loss, self.projection, self.skip = made, loss, projection, skip
        self.writes, self.question = writes, NextToken()
        self.weights = {SIMILARITY: 1.0} | ({} if writes is None else {self.question.name: weight})

    def initialise(self, seed: int) -> None:
        """Numbers for what is new; the encoder keeps its own."""
        std = self.made.model.config.init_std
        initialise(self.loss, std, seed, prefix="loss")
        if self.projection is not None:
            initialise(self.projection, std, seed, prefix="projection")

    @property
    def trained(self) -> list[tuple[str, nn.Parameter]]:
        """All but heads and networks of the model's folder that no loss reads."""
        own = set() if self.writes is None else {id(each) for each in self.writes.parameters()}
        return [
            (name, each)
            for name, each in self.named_parameters()
            if each.requires_grad and (id(each) in own or not name.startswith(_UNUSED))
        ]

    def twin(self) -> Self:
        return deepcopy(self)

    def counts(self, batch: Batch) -> dict[str, int]:
        found = {SIMILARITY: len(batch.targets[SIMILARITY].label)}
        return found if self.writes is None else {**found, self.question.name: self.question.count(batch)}

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        hidden, vectors = self._read(batch)
        targets = batch.targets[SIMILARITY]
        with exactly(vectors.device):
            known = cached_total(vectors, targets)
            sums = {SIMILARITY: self.loss.compare(vectors, targets).losses.sum() if known is None else known}
        if self.writes is not None:
            assert hidden is not None
            sums[self.question.name] = self.question.total(self.made.model.network, self.writes, hidden, batch)
        return sums

    @property
    def comparisons(self) -> dict[str, Comparing]:
        return {SIMILARITY: cast(Comparing, self.loss)} if self.loss.whole_batch else {}

    @torch.no_grad()
    def vectors(self, batch: Batch) -> dict[str, Tensor]:
        """What will be compared, with the dropout that `forward` has."""
        return {SIMILARITY: self._read(batch)[1]}

    def _read(self, batch: Batch) -> tuple[Hidden | None, Tensor]:
        """(n,k,D) vectors of the units; and all states, where they are asked for tokens."""
        inputs, hidden = inputs_of(batch), None
        if self.writes is None:
            vectors = self.made(inputs, self.skip)
        else:
            first = torch.arange(batch.size, device=batch.ids.device) * batch.ids.shape[1]
            hidden = self.made.model.network(inputs, reads=torch.cat([self.question.reads(batch), first]))
            vectors = self.made.pooling(hidden)
            for step in self.made.steps:
                vectors = step(vectors)
        if self.projection is not None:
            vectors = self.projection(vectors)
        units = len(batch.targets[SIMILARITY].label)
        whole = vectors.to(self.made.model.network.embeddings.tokens.dtype)
        return hidden, whole.view(units, -1, vectors.shape[-1])
