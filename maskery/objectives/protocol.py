"""What every objective is: a question about corrupted rows, a head that answers, and a sum with a known count.

An objective never divides. The training loop divides each sum by that objective's count over all micro-batches and
ranks of the step, which is known from the targets before the first forward pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from maskery.batches import Batch, Targets
from maskery.model.config import Shape
from maskery.model.stack import Stack
from maskery.model.transformer import Hidden
from maskery.rows.ragged import Rows


@dataclass(frozen=True)
class Ranked:
    """Scores of n answers and which are of the class they should be high for: a metric that no sum can tell."""

    score: NDArray[np.float32]
    positive: NDArray[np.bool_]

    @staticmethod
    def joined(parts: Sequence[Ranked]) -> Ranked:
        return Ranked(np.concatenate([part.score for part in parts]), np.concatenate([part.positive for part in parts]))

    @property
    def area(self) -> float | None:
        """The chance that of two answers, one of each class, the right one has the higher score (AUC); equal scores
        count half. None where a class has no answer."""
        positive, negative = int(self.positive.sum()), int((~self.positive).sum())
        if not positive or not negative:
            return None
        _, place, many = np.unique(self.score, return_inverse=True, return_counts=True)
        rank = np.cumsum(many) - (many - 1) / 2
        above = float(rank[place][self.positive].sum()) - positive * (positive + 1) / 2
        return above / (positive * negative)


Metrics = Mapping[str, tuple[float, int] | Ranked]
"""Name -> (sum, count), or all scores where the metric is about their order."""


@dataclass(frozen=True)
class Answers:
    """Where the answers of a batch stand: target slot `asked[i]` is asked for what slot `answer[i]` holds.

    Both are flat slots b*T+t. A question whose answer stands in no slot (the label of a pair) has none.
    """

    asked: Tensor
    answer: Tensor


class Objective(Protocol):
    name: ClassVar[str]
    """Key in `Batch.targets`, in `[objectives.NAME]` and in the metrics."""
    needs_pooler: ClassVar[bool]
    whole_batch: ClassVar[bool]
    """Whether rows are compared with each other, so that micro-batches do not add up."""

    def ask(self, rows: Rows, slots: int) -> Targets:
        """The question, from corrupted rows that will be padded to `slots`."""
        ...

    def head(self, shape: Shape) -> nn.Module:
        """The head, its numbers not yet set."""
        ...

    def count(self, batch: Batch) -> int:
        """How many answers are summed; from the targets alone."""
        ...

    def reads(self, batch: Batch) -> Tensor:
        """The flat slots whose last states it looks at (the pooled state apart): the last layer computes no other."""
        ...

    def total(self, network: Stack, head: nn.Module, hidden: Hidden, batch: Batch) -> Tensor:
        """The summed loss, differentiable; zero targets still run the head."""
        ...

    def measure(self, network: Stack, head: nn.Module, hidden: Hidden, batch: Batch) -> Metrics:
        """Sums and counts for evaluation, no gradient: `loss` and `accuracy` at least, of all that are asked."""
        ...

    def answers(self, batch: Batch) -> Answers | None:
        """Where the answers stand, for the leak analysis."""
        ...


@dataclass(frozen=True)
class Compared:
    """What came of comparing rows with each other; R rows that are asked."""

    losses: Tensor
    """(R,)"""
    hits: Tensor
    """(R,) bool"""


class Comparing(Objective, Protocol):
    """A question that compares rows (`whole_batch`), those of all micro-batches and ranks of a step.

    The network turns each row into a few vectors, and only these are compared. So the loop can make all vectors
    first, compare them once, and give each micro-batch the gradient of its own: in `targets.extra` under "gradient",
    with "loss" and "hit" of its rows.
    """

    def view(self, rows: Rows) -> Rows:
        """Rows of its own that the network reads besides the batch's, none longer than the row it comes from."""
        ...

    def vectors(self, network: Stack, head: nn.Module, hidden: Hidden, batch: Batch) -> Tensor:
        """(R,k,D) of each asked row. The head works here: `compare` has no weights."""
        ...

    def compare(self, vectors: Tensor, targets: Targets) -> Compared:
        """All rows with each other. Of the targets it reads the label and what `extra` says of a row alone."""
        ...


def cached_total(vectors: Tensor, targets: Targets) -> Tensor | None:
    """The summed loss of rows that were compared with more rows than these (maskery/train/comparing.py): its gradient
    for these vectors, and the share of its loss that is theirs. None: they have yet to be compared."""
    gradient = targets.extra.get("gradient")
    if gradient is None:
        return None
    pulled = (vectors * gradient).sum()
    return pulled - pulled.detach() + targets.extra["loss"].sum()
