"""A recipe made flesh: its networks, a head for each objective, and the sums they give for a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor, nn

from maskery.batches import Batch
from maskery.errors import RefusedError
from maskery.model.flow import Reading, read_answers
from maskery.model.initial import initialise
from maskery.model.transformer import Network, inputs_of
from maskery.objectives.build import objectives_of
from maskery.objectives.protocol import Comparing, Metrics, Objective
from maskery.recipes.recipe import Recipe


class System(nn.Module):
    """Networks by role ("model" always) and heads by objective. `forward` gives sums; the loop divides."""

    def __init__(self, recipe: Recipe, vocabulary: int) -> None:
        super().__init__()
        self.objectives: Mapping[str, Objective] = objectives_of(recipe.objectives)
        self.weights = {name: config.weight for name, config in recipe.objectives.items()}
        shape = recipe.model.shape(vocabulary, recipe.visibility.kind)
        pooler = any(objective.needs_pooler for objective in self.objectives.values())
        self.networks = nn.ModuleDict({"model": Network(shape, pooler=pooler)})
        self.heads = nn.ModuleDict({name: objective.head(shape) for name, objective in self.objectives.items()})

    @property
    def network(self) -> Network:
        return cast(Network, self.networks["model"])

    def initialise(self, seed: int) -> None:
        initialise(self, self.network.shape.init_std, seed)

    def counts(self, batch: Batch) -> dict[str, int]:
        """Each objective's number of answers; known without a forward pass."""
        return {name: objective.count(batch) for name, objective in self.objectives.items()}

    def reads(self, batch: Batch) -> Tensor:
        """The flat slots that some objective looks at."""
        return torch.cat([objective.reads(batch) for objective in self.objectives.values()])

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Each objective's summed loss."""
        network = self.network
        hidden = network(inputs_of(batch), reads=self.reads(batch))
        return {
            name: objective.total(network, self.heads[name], hidden, batch)
            for name, objective in self.objectives.items()
        }

    @property
    def comparisons(self) -> dict[str, Comparing]:
        """The objectives that compare rows, of whatever micro-batch and rank."""
        return {name: cast(Comparing, each) for name, each in self.objectives.items() if each.whole_batch}

    @torch.no_grad()
    def vectors(self, batch: Batch) -> dict[str, Tensor]:
        """What each of these will compare; with the dropout that `forward` would have."""
        network = self.network
        hidden = network(inputs_of(batch), reads=self.reads(batch))
        return {
            name: objective.vectors(network, self.heads[name], hidden, batch)
            for name, objective in self.comparisons.items()
        }

    @torch.no_grad()
    def measure(self, batch: Batch) -> dict[str, Metrics]:
        """Each objective's metrics as sums and counts."""
        network = self.network
        hidden = network(inputs_of(batch), reads=self.reads(batch))
        return {
            name: objective.measure(network, self.heads[name], hidden, batch)
            for name, objective in self.objectives.items()
        }

    def readings(self, batch: Batch) -> dict[str, Reading | None]:
        """What each objective's targets can read of their answers; None where the answers stand in no slot."""
        placed = {name: objective.answers(batch) for name, objective in self.objectives.items()}
        return {
            name: None if answers is None else read_answers(self.network, batch, answers.asked, answers.answer)
            for name, answers in placed.items()
        }

    def require_no_leak(self, batch: Batch) -> None:
        """Refuse a recipe in which a target can read its own answer; shown on the rows of `batch`."""
        for name, reading in self.readings(batch).items():
            if reading is not None and reading.leak is not None:
                raise RefusedError(
                    f"{name} under {self.network.shape.visibility} visibility: {reading.leak.text()}",
                    repair="choose a visibility that hides the answer (next_token: causal), or a corruption "
                    "that hides it, or another objective; `maskery inspect RECIPE --flow` draws it",
                )
