"""A network with what a task puts on top of it: what is read off, columns beside the text, a head, and the loss."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maskery.batches import Batch, Targets
from maskery.model.config import Shape
from maskery.model.heads import TokenHead
from maskery.model.initial import initialise
from maskery.model.layout import Layout
from maskery.model.stack import Stack
from maskery.model.transformer import Hidden, Network, inputs_of
from maskery.objectives.next_token import NextToken
from maskery.system import Trainable
from maskery.tasks.batches import TASK
from maskery.tasks.crf import CRF
from maskery.tasks.framing.meta import Meta
from maskery.tasks.heads import MetaJoin, head_of, mean
from maskery.tasks.joins import join_of, side_of
from maskery.tasks.losses import Loss, Wanted, loss_of
from maskery.tasks.pools import Pool, pool_of
from maskery.tasks.questions import SIZES
from maskery.tasks.settings import TaskConfig
from maskery.tasks.tags import Tags
from maskery.train.precision import exactly

LANGUAGE = NextToken.name
"""The name of the language model's own loss, where it is trained beside the task."""
CATEGORIES, QUANTITIES = "categories", "quantities"
"""Keys in `Targets.extra`: columns beside the text, for each row of the batch."""
BY_SLOT = ("tag", "qa")


@dataclass(frozen=True)
class Top:
    """What stands on the network: how much of it there is, apart from the weights."""

    config: TaskConfig
    classes: int
    meta: Meta = field(default_factory=Meta)
    bias: bool = True
    """Whether the last matrix has one; a family's own head may not."""


class Part(NamedTuple):
    """What one network made of the rows that it read: all of a batch, or those of one field."""

    network: Network
    batch: Batch
    hidden: Hidden


class TaskSystem(Trainable):
    def __init__(self, network: Network, top: Top, language: TokenHead | None = None) -> None:
        """`language`: the head of the language model, where it is trained beside the task."""
        super().__init__()
        self.network, self.top = network, top
        self.by_slot = top.config.task in BY_SLOT
        # A task stands on the decoder, where there is one.
        stack: Stack = network if network.decoder is None else network.decoder
        shape = stack.shape
        self.pool: Pool | None = None if self.by_slot else pool_of(top.config.read.pool, shape)
        width = shape.width if self.pool is None else self.pool.width
        self.sides = join_of(top.config)
        width = width if self.sides is None else self.sides.width(width)
        apart = len(top.config.columns.text) if top.config.rows.towers == "apart" else 1
        self.towers = nn.ModuleDict({str(number): deepcopy(network) for number in range(1, apart)})
        """The encoders of all fields but the first, by the numbers of the fields, where each has its own."""
        self.join: MetaJoin | None = None
        if top.meta.columns:
            self.join = MetaJoin(top.meta.sizes, top.meta.quantities)
            width += self.join.added
        self.head = head_of(width, top.classes, top.config.head, bias=top.bias, shape=shape)
        self.crf = CRF(top.classes, Tags.of_names(top.config.labels).rules) if top.config.head.crf else None
        self.loss: Loss = loss_of(top.config.task, top.config.head)
        self.language = language
        weight = top.config.head.lm
        self.weights: Mapping[str, float] = {TASK: 1.0} | ({LANGUAGE: weight} if weight and language else {})
        if top.config.read.frozen:  # towers apart are not: they would stay alike
            network.requires_grad_(False)

    @property
    def on_top(self) -> dict[str, nn.Module]:
        """What is new, by its part of the names of the tensors."""
        parts = {"pool": self.pool, "join": self.join, "head": self.head, "crf": self.crf}
        return {name: part for name, part in parts.items() if part is not None}

    def initialise(self, seed: int) -> None:
        """Numbers for what stands on top; the network keeps its own."""
        for name, part in self.on_top.items():
            initialise(part, self.network.shape.init_std, seed, prefix=name)

    def train(self, mode: bool = True) -> Self:
        """A frozen network reads as it does in use: without dropout."""
        super().train(mode)
        if self.top.config.read.frozen:
            self.network.eval()
        return self

    def twin(self) -> Self:
        shape: Shape = self.network.shape
        network = Network(shape, pooler=self.network.pooler is not None)
        made = type(self)(network, self.top, None if self.language is None else TokenHead(shape))
        made.loss = self.loss
        return made

    def counts(self, batch: Batch) -> dict[str, int]:
        found = {TASK: self.count_of(batch.targets[TASK])}
        if LANGUAGE in self.weights:
            found[LANGUAGE] = len(batch.targets[LANGUAGE].label)
        return found

    def count_of(self, targets: Targets) -> int:
        if self.crf is not None:
            return len(targets.label)
        return self.loss.count(_wanted(targets))

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        parts = self._parts(batch)
        with exactly(batch.ids.device):
            sums = {TASK: self._total(parts, batch.targets[TASK])}
        if LANGUAGE in self.weights:
            assert self.language is not None
            totals = [NextToken().total(each.network, self.language, each.hidden, each.batch) for each in parts]
            sums[LANGUAGE] = totals[0] if len(totals) == 1 else torch.stack(totals).sum()
        return sums

    def _total(self, parts: list[Part], targets: Targets) -> Tensor:
        states = self._states(parts, targets)
        if not self.by_slot:
            states = states.index_select(0, targets.index)
        if self.crf is not None:
            return mean([self.total_of(each, targets) for each in self.head.draws(states)])
        return self.head.total(states, lambda scores: self.total_of(scores, targets))

    def total_of(self, scores: Tensor, targets: Targets) -> Tensor:
        """The summed loss by the scores of all targets."""
        if self.crf is not None:
            return self.crf.total(scores, targets.extra[SIZES], targets.label)
        return self.loss.total(scores, _wanted(targets))

    def _parts(self, batch: Batch) -> list[Part]:
        """All rows read by the network, or those of each field by its own."""
        if not self.towers:
            return [Part(self.network, batch, self.read(batch))]
        found = []
        for number, network in enumerate((self.network, *self.towers.values())):
            assert isinstance(network, Network)
            mine = side_of(batch, number, len(self.towers) + 1)
            found.append(Part(network, mine, self.read(mine, network=network)))
        return found

    def read(self, batch: Batch, every: bool = False, network: Network | None = None) -> Hidden:
        """What the task stands on. `every`: the states of all slots, whatever is asked."""
        inputs = inputs_of(batch)
        layers = self.pool is not None and self.pool.needs_layers
        reads = None if every else self._reads(batch, inputs.layout)
        with torch.no_grad() if self.top.config.read.frozen else nullcontext():
            hidden: Hidden = (network or self.network)(inputs, layers=layers, reads=reads)
        return hidden if hidden.decoder is None else hidden.decoder

    def _reads(self, batch: Batch, layout: Layout) -> Tensor | None:
        if LANGUAGE in self.weights:
            return None
        if self.pool is not None:
            return self.pool.reads(layout)
        return batch.targets[TASK].index

    def _states(self, parts: list[Part], targets: Targets) -> Tensor:
        """(n,D) of the asked slots, or (B,D) of the rows, or of examples of several rows, with their columns."""
        if self.pool is None:
            return parts[0].hidden.select(targets.index)
        vectors = [self.pool(each.hidden) for each in parts]
        if self.sides is None:
            return self._joined(vectors[0], targets)
        each_side = vectors if len(vectors) > 1 else self.sides.split(vectors[0])
        return self._joined(self.sides(each_side), targets)

    def _joined(self, vectors: Tensor, targets: Targets) -> Tensor:
        if self.join is None:
            return vectors
        joined: Tensor = self.join(vectors, targets.extra[CATEGORIES], targets.extra[QUANTITIES])
        return joined

    @torch.no_grad()
    def scores(self, batch: Batch) -> NDArray[np.float32]:
        """(B,C) of the rows, or of examples of several rows, or (N,C) of all their slots end to end."""
        if self.pool is None:
            hidden = self.read(batch, every=True)
            grid = hidden.layout.unpack(self.head(hidden.packed))
            real = torch.arange(grid.shape[1], device=grid.device) < batch.length[:, None]
            return grid[real].float().cpu().numpy()
        found: Tensor = self.head(self._states(self._parts(batch), batch.targets[TASK]))
        return found.float().cpu().numpy()


def _wanted(targets: Targets) -> Wanted:
    return Wanted(label=targets.label, sizes=targets.extra.get(SIZES))
