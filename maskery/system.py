"""A recipe made flesh: its networks, a head for each objective, and the sums they give for a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple, Self, cast

import torch
from torch import Tensor, nn

from maskery.batches import Batch, Memory
from maskery.errors import RefusedError
from maskery.model.config import Mode
from maskery.model.flow import Reading, read_answers
from maskery.model.initial import deviations, initialise
from maskery.model.stack import Stack
from maskery.model.transformer import Hidden, Network, inputs_of
from maskery.objectives.build import objectives_of
from maskery.objectives.config import ASKED_OF_DECODER, ASKED_OF_GENERATOR, ASKED_OF_SECOND_STREAM
from maskery.objectives.masked_token import MaskedToken
from maskery.objectives.protocol import Comparing, Metrics, Objective
from maskery.recipes.recipe import Recipe
from maskery.rewrite import hidden_again, rewrite


class Read(NamedTuple):
    """What a network made of the rows that it read."""

    network: Stack
    hidden: Hidden
    batch: Batch
    total: Tensor | None = None
    """The summed loss, where it is known already."""


class Trainable(nn.Module, ABC):
    """What the training loop needs of a system: named losses as sums, and counts that are known before."""

    weights: Mapping[str, float]
    """What each loss counts, by its name."""
    remembered: Memory | None = None
    """What the rows of the last forward pass leave to the next rows of their lanes."""

    @abstractmethod
    def counts(self, batch: Batch) -> dict[str, int]:
        """Each loss's number of answers; known without a forward pass."""

    @abstractmethod
    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Each summed loss."""

    @property
    def comparisons(self) -> dict[str, Comparing]:
        """The objectives that compare rows, of whatever micro-batch and rank."""
        return {}

    def vectors(self, batch: Batch) -> dict[str, Tensor]:
        """What each of these will compare."""
        return {}

    @abstractmethod
    def twin(self) -> Self:
        """Another of the same kind, its numbers not yet set."""


class System(Trainable):
    """Networks by role ("model" always, "generator" where the recipe has one) and heads by objective. `forward` gives
    sums; the loop divides."""

    def __init__(self, recipe: Recipe, vocabulary: int, target_vocabulary: int = 0) -> None:
        super().__init__()
        self.objectives: Mapping[str, Objective] = objectives_of(recipe.objectives)
        self.weights = {name: config.weight for name, config in recipe.objectives.items()}
        self.rows = recipe.rows
        self.recipe = recipe
        shape = recipe.model.shape(vocabulary, recipe.visibility.kind, target_vocabulary)
        pooler = any(objective.needs_pooler for objective in self.objectives.values())
        self.networks = nn.ModuleDict({"model": Network(shape, pooler=pooler)})
        small = recipe.model.generator_shape(vocabulary, recipe.visibility.kind)
        if small is not None:
            self.networks["generator"] = Network(small, pooler=False, lender=self.network)
        self.heads = nn.ModuleDict(
            {name: objective.head(self.asked(name).shape) for name, objective in self.objectives.items()}
        )

    def twin(self) -> Self:
        shape = self.network.shape
        return type(self)(self.recipe, shape.vocabulary, shape.target_vocabulary)

    @property
    def network(self) -> Network:
        return cast(Network, self.networks["model"])

    @property
    def generator(self) -> Network | None:
        return cast(Network, self.networks["generator"]) if "generator" in self.networks else None

    def asked(self, name: str) -> Network:
        """The network that answers a question."""
        generator = self.generator
        return generator if generator is not None and name == ASKED_OF_GENERATOR else self.network

    def stack_of(self, name: str) -> Stack:
        """The layers that a question is asked of."""
        decoder = self.network.decoder
        return decoder if decoder is not None and name in ASKED_OF_DECODER else self.asked(name)

    def heads_of(self, network: Network) -> dict[str, nn.Module]:
        """The heads that stand on a network."""
        return {name: head for name, head in self.heads.items() if self.asked(name) is network}

    def initialise(self, seed: int) -> None:
        initialise(self, self.network.shape.init_std, seed, own=deviations(self, self.network.shape))

    def counts(self, batch: Batch) -> dict[str, int]:
        """Each objective's number of answers; known without a forward pass."""
        return {name: objective.count(self.rows_of(name, batch)) for name, objective in self.objectives.items()}

    def reads(self, batch: Batch, network: Network | None = None) -> Tensor:
        """The flat slots of a network, by default the model, that some objective looks at."""
        asked = [name for name in self.heads_of(network or self.network) if not self._elsewhere(name, batch)]
        return torch.cat([batch.rows.new_empty(0), *(self.objectives[name].reads(batch) for name in asked)])

    def _elsewhere(self, name: str, batch: Batch) -> bool:
        """Whether an objective reads other states than those of the rows' own slots."""
        second = name in ASKED_OF_SECOND_STREAM and batch.asked is not None
        return second or (name in ASKED_OF_DECODER and batch.decoder is not None)

    def read(self, batch: Batch) -> dict[str, Read]:
        """For each objective what it is asked of. The model reads what the generator has written."""
        found: dict[str, Read] = {}
        if self.generator is not None:
            question = cast(MaskedToken, self.objectives[ASKED_OF_GENERATOR])
            made = rewrite(self.generator, question, self.heads[ASKED_OF_GENERATOR], batch)
            found[ASKED_OF_GENERATOR] = Read(self.generator, made.hidden, batch, made.total)
            batch = made.batch
        hidden: Hidden = self.network(inputs_of(batch), reads=self.reads(batch))
        self.remembered = hidden.memory
        return {name: found.get(name) or self._read(name, hidden, batch) for name in self.objectives}

    def _read(self, name: str, hidden: Hidden, batch: Batch) -> Read:
        """What an objective is asked of: the decoder and its rows, a second stream, or the rows themselves."""
        decoder = self.network.decoder
        if name in ASKED_OF_DECODER and decoder is not None:
            assert hidden.decoder is not None
            assert batch.decoder is not None
            return Read(decoder, hidden.decoder, batch.decoder)
        if name in ASKED_OF_SECOND_STREAM and hidden.predicted is not None:
            return Read(self.network, hidden.predicted, batch)
        return Read(self.network, hidden, batch)

    def rows_of(self, name: str, batch: Batch) -> Batch:
        """The rows that an objective asks about."""
        return batch.asked_about(name)

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Each objective's summed loss."""
        sums: dict[str, Tensor] = {}
        for name, (network, hidden, asked, known) in self.read(batch).items():
            total = self.objectives[name].total(network, self.heads[name], hidden, asked) if known is None else known
            sums[name] = total
        return sums

    @property
    def comparisons(self) -> dict[str, Comparing]:
        """The objectives that compare rows, of whatever micro-batch and rank."""
        return {name: cast(Comparing, each) for name, each in self.objectives.items() if each.whole_batch}

    @torch.no_grad()
    def vectors(self, batch: Batch) -> dict[str, Tensor]:
        """What each of these will compare; with the dropout that `forward` would have."""
        read = self.read(batch)
        return {
            name: objective.vectors(read[name].network, self.heads[name], read[name].hidden, read[name].batch)
            for name, objective in self.comparisons.items()
        }

    @torch.no_grad()
    def measure(self, batch: Batch) -> dict[str, Metrics]:
        """Each objective's metrics as sums and counts."""
        return {
            name: self.objectives[name].measure(read.network, self.heads[name], read.hidden, read.batch)
            for name, read in self.read(batch).items()
        }

    def readings(self, batch: Batch) -> dict[str, Reading | None]:
        """What each objective's targets can read of their answers; None where the answers stand in no slot."""
        found: dict[str, Reading | None] = {}
        rewritten = batch if self.generator is None else hidden_again(batch)
        for name, objective in self.objectives.items():
            stack = self.stack_of(name)
            answers = objective.answers(self.rows_of(name, batch))
            if answers is None:
                found[name] = None
                continue
            rows = self.rows_of(name, rewritten if stack is self.network else batch)
            second = name in ASKED_OF_SECOND_STREAM and batch.asked is not None and stack.shape.streams == 2
            found[name] = read_answers(stack, rows, answers.asked, answers.answer, second=second)
        return found

    def require_no_leak(self, batch: Batch) -> None:
        """Refuse a recipe in which a target can read its own answer; shown on the rows of `batch`."""
        for name, reading in self.readings(batch).items():
            if reading is not None and reading.leak is not None:
                mode = batch.slots.get("mode")
                seen = self.network.shape.visibility if mode is None else Mode(int(mode[reading.leak.row, 0])).kind
                raise leakage(name, seen, reading.leak.text())


def leakage(objective: str, visibility: str, leak: str) -> RefusedError:
    """The refusal of a recipe in which a target can read its own answer."""
    return RefusedError(
        f"{objective} under {visibility} visibility: {leak}",
        repair="choose a visibility that hides the answer (next_token: causal), or a corruption "
        "that hides it, or another objective; `maskery inspect RECIPE --flow` draws it",
    )
