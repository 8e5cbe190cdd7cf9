"""What vectors are trained with: losses of a pair or triplet by itself. Those that compare a whole batch: contrast.py.

    softmax     the class of a pair from u, v, |u-v|, u*v, as `join` says     SBERT
    cosine      (cosine - score)^2                                            SBERT
    triplet     max(|a-p| - |a-n| + margin, 0)                                SBERT

Every loss is told for each unit (a pair, a triplet); only the loop divides, by their number.

Shapes: n units of k texts, D dimensions, C classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maskery.batches import Targets
from maskery.errors import InputError
from maskery.model.linear import Linear
from maskery.objectives.protocol import Compared
from maskery.vectors.learn.settings import LearnConfig

TEXTS = "texts"
"""Key in `Targets.extra`: (n,k) numbers of the texts, equal for equal ones."""


class VectorLoss(nn.Module, ABC):
    whole_batch: ClassVar[bool] = False
    """Whether units are compared with each other, so that micro-batches do not add up."""

    @classmethod
    @abstractmethod
    def of(cls, config: LearnConfig, width: int) -> Self:
        """As the settings say, its numbers not yet set."""

    @abstractmethod
    def compare(self, vectors: Tensor, targets: Targets) -> Compared:
        """(n,k,D) -> the loss of every unit, and whether it is right."""


def cosine_of(one: Tensor, other: Tensor) -> Tensor:
    """(n,D), (n,D) -> (n,)"""
    return (F.normalize(one, dim=-1) * F.normalize(other, dim=-1)).sum(-1)


PARTS: Mapping[str, Callable[[Tensor, Tensor], tuple[Tensor, ...]]] = {
    "uv": lambda u, v: (u, v),
    "difference": lambda u, v: ((u - v).abs(),),
    "product": lambda u, v: (u * v,),
}


def joined(join: str, u: Tensor, v: Tensor) -> Tensor:
    """The parts that the name of the join names, side by side and in its order."""
    return torch.cat([part for name in join.split("_") for part in PARTS[name](u, v)], -1)


class Softmax(VectorLoss):
    def __init__(self, width: int, classes: int, join: str) -> None:
        super().__init__()
        if classes < 2:
            raise InputError(f"{classes} classes: there is nothing to tell apart", repair="give pairs of two classes")
        self.join = join
        parts = sum(2 if name == "uv" else 1 for name in join.split("_"))
        self.classes = Linear(parts * width, classes)

    @classmethod
    def of(cls, config: LearnConfig, width: int) -> Self:
        return cls(width, len(config.labels), config.join)

    def scores(self, vectors: Tensor) -> Tensor:
        """(n,2,D) -> (n,C)"""
        found: Tensor = self.classes(joined(self.join, vectors[:, 0], vectors[:, 1]))
        return found

    def compare(self, vectors: Tensor, targets: Targets) -> Compared:
        scores, label = self.scores(vectors), targets.label.long()
        return Compared(F.cross_entropy(scores, label, reduction="none"), scores.argmax(1) == label)


class CosineRegression(VectorLoss):
    def __init__(self, highest: float = 1.0) -> None:
        super().__init__()
        self.highest = highest

    @classmethod
    def of(cls, config: LearnConfig, width: int) -> Self:
        return cls(config.highest or 1.0)

    def compare(self, vectors: Tensor, targets: Targets) -> Compared:
        wanted = (targets.label / self.highest).to(vectors.dtype)
        losses = (cosine_of(vectors[:, 0], vectors[:, 1]) - wanted).square()
        return Compared(losses, losses < 0.25)


class Triplet(VectorLoss):
    """Euclidean distances without a small number added to differences: equal vectors have the distance 0."""

    def __init__(self, margin: float = 1.0, distance: str = "euclidean") -> None:
        super().__init__()
        self.margin, self.distance = margin, distance

    @classmethod
    def of(cls, config: LearnConfig, width: int) -> Self:
        return cls(config.margin, config.distance)

    def compare(self, vectors: Tensor, targets: Targets) -> Compared:
        anchor, right, wrong = vectors.unbind(1)
        ahead = self._far(anchor, wrong) - self._far(anchor, right)
        return Compared(F.relu(self.margin - ahead), ahead > 0)

    def _far(self, one: Tensor, other: Tensor) -> Tensor:
        if self.distance == "cosine":
            return 1 - cosine_of(one, other)
        far: Tensor = torch.linalg.vector_norm(one - other, dim=-1)
        return far
