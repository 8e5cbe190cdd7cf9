"""What training and judging need of a model that does a task, whatever stands on it: a feed, answers, a folder.

TaskModel        reads a text and answers with a head          maskery/tasks/model.py
WritingModel     writes a text for a text (seq2seq)            maskery/tasks/seq2seq/model.py
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from maskery.batches import Batch
from maskery.checkpoint.model import Model
from maskery.errors import InputError
from maskery.feed import share
from maskery.phases import Phase, phase_at, phases_of
from maskery.rows.order import Order
from maskery.system import Trainable
from maskery.tasks.batches import TASK
from maskery.tasks.examples import Examples
from maskery.tasks.framing.rows import Rows
from maskery.tasks.questions import Predicted
from maskery.tasks.settings import TaskConfig
from maskery.train.config import TrainingConfig

Say = Callable[[str], None]
_READ = 32
"""Units that are read at once for their loss."""


def nobody(rows: int) -> None:
    """Whom nothing has to be told."""


_SHORTEST = 8
"""Slots of a row, as in every training."""


class UnitFeed(ABC):
    """Batches, a pure function of (units, seed, step): every epoch visits all units in a keyed order."""

    rows: Rows
    """What is read of the examples."""
    training: TrainingConfig

    @property
    def seed(self) -> int:
        return self.training.seed

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        if self.training.length < _SHORTEST:
            raise InputError(
                f"rows.length: rows of {self.training.length} slots are too short for a training",
                repair=f"set it to {_SHORTEST} or more, or leave it out",
            )
        return phases_of(self.training)

    @property
    @abstractmethod
    def units(self) -> int:
        """How many there are; `batch` and `micro` count them."""

    @property
    def largest_unit(self) -> int:
        """Rows."""
        return 1

    @property
    def unit_name(self) -> str:
        """What units are called, several of them."""
        return "rows"

    @property
    def longest(self) -> int:
        """Slots of the longest row."""
        return int(self.rows.length.max(initial=1))

    @abstractmethod
    def asked(self, units: NDArray[np.int64], step: int = 0) -> Batch:
        """The rows of the given units with their targets."""

    def micro_batches(self, step: int, rank: int, world: int, micro: int) -> list[Batch]:
        phase = phase_at(self.phases, step)
        mine = share(phase.batch, rank, world)
        visits = np.arange(mine.start, mine.stop, dtype=np.int64) + (step - phase.first) * phase.batch
        _, units = Order(self.seed, "task", (self.units,)).visit(visits)
        return [self.asked(units[start : start + micro], step) for start in range(0, len(units), micro)]


F = TypeVar("F", bound=UnitFeed)


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What one reading of labelled examples tells."""

    metrics: dict[str, float]
    loss: float
    predicted: Predicted | None
    """None: not all examples were answered."""


class DoesTask(ABC, Generic[F]):
    model: Model
    config: TaskConfig
    system: Trainable
    evaluation: tuple[Examples, Evaluation] | None = None
    """The evaluation of the present weights, where training has made one: nothing is read twice."""
    fits_threshold: bool = False
    """qa in training: `metrics` finds the best threshold of "no answer" and puts it into `config`."""

    @property
    def device(self) -> torch.device:
        return self.model.network.embeddings.tokens.device

    @abstractmethod
    def feed(self, examples: Examples, say: Say) -> F:
        """The rows of examples, ready to be read or to be trained on."""

    @abstractmethod
    def answers(self, feed: F, told: Callable[[int], None] = nobody) -> Predicted:
        """The answers to all that a feed has; `told` of the rows that were read."""

    @abstractmethod
    def evaluated(self, feed: F) -> Evaluation:
        """How good the answers are, and the answers: read once."""

    def metrics(self, feed: F) -> dict[str, float]:
        return self.evaluated(feed).metrics

    def evaluation_of(self, examples: Examples, say: Say) -> Evaluation:
        """That of all examples: the one that training has made of them, or a new one."""
        if self.evaluation is not None and self.evaluation[0] is examples:
            return self.evaluation[1]
        feed = self.feed(examples, say)
        found = self.evaluated(feed)
        return found if found.predicted is not None else replace(found, predicted=self.answers(feed))

    @abstractmethod
    def seconds(self, feed: F, most: float) -> float:
        """How long `metrics` will take, measured on some of the rows for at most that time."""

    @abstractmethod
    def gold(self, examples: Examples) -> list[Any]:
        """The right answers, in the form of `Predicted.answers`."""

    @abstractmethod
    def uncut(self, examples: Examples) -> list[int]:
        """Slots of all rows of examples if nothing were cut."""

    @property
    def room(self) -> int:
        """Slots of such a row at most; what is longer is cut."""
        return self.config.rows.length

    @abstractmethod
    def save(self, folder: Path, say: Say) -> None: ...

    def predict(self, examples: Examples, say: Say) -> Predicted:
        return self.answers(self.feed(examples, say))

    @torch.no_grad()
    def loss(self, feed: F) -> float:
        """The mean loss of everything that a feed asks."""
        was, total, count = self.system.training, 0.0, 0
        self.system.eval()
        for start in range(0, feed.units, _READ):
            batch = feed.asked(np.arange(start, min(start + _READ, feed.units))).to(self.device)
            total += float(self.system(batch)[TASK].detach())
            count += self.system.counts(batch)[TASK]
        self.system.train(was)
        return total / max(1, count)


AnyTaskModel = DoesTask[Any]
