"""Losses that compare all units of a batch, of whatever micro-batch they are (gradient caching: train/comparing.py).

    multiple_negatives   -log softmax of scale * cosine(anchor, its own positive), against the positives of all others
                         and the hard negatives of all; `symmetric`: and the positives look for their anchors
    simcse               the same of a line with itself under another dropout; supervised: with hard negatives
    simbert              every text looks for its partner among all texts of the batch but itself (`rivals = "all"`)
    cosent               log(1 + sum of exp(scale * (cosine i - cosine j))) over all i, j with score i < score j

No false negatives: a text that equals the anchor or its positive is no rival, nor is the positive of an equal anchor.

Shapes: n units of k texts, D dimensions, m = n * k texts.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from maskery.batches import Targets
from maskery.objectives.protocol import Compared
from maskery.vectors.learn.losses import TEXTS, VectorLoss, cosine_of
from maskery.vectors.learn.settings import LearnConfig

_NEVER = -torch.inf


def not_rivals(texts: Tensor) -> Tensor:
    """(n,k) numbers of texts -> (n, n*(k-1)): which of the second texts of all units, then of the third and further,
    are no rivals of a unit's own second text, although they are not it."""
    anchor, right = texts[:, :1], texts[:, 1:2]
    others = texts[:, 1:].t().reshape(1, -1)
    same = (others == right) | (others == anchor)
    units = len(texts)
    same[:, :units] |= anchor == anchor.t()
    same[torch.arange(units), torch.arange(units)] = False
    return same


def not_rivals_among_all(texts: Tensor) -> Tensor:
    """(n,2) -> (2n,2n): texts that equal a text or its partner, the partner itself apart. A text is no rival of itself
    either."""
    flat = texts.flatten()
    partner = texts.flip(1).flatten()
    same = (flat == flat[:, None]) | (flat == partner[:, None])
    row = torch.arange(len(flat))
    same[row, partners(len(flat))] = False
    same[row, row] = True
    return same


def partners(texts: int) -> Tensor:
    """1 0 3 2 5 4 ...: texts of a pair stand beside each other."""
    return torch.arange(texts) ^ 1


def left_out(texts: NDArray[np.int64], rivals: str) -> int:
    """How many comparisons of a batch are left out because they would call something right wrong."""
    numbers = torch.from_numpy(texts)
    if rivals == "all":
        return int(not_rivals_among_all(numbers).sum()) - texts.size
    return int(not_rivals(numbers).sum())


class InBatch(VectorLoss):
    whole_batch: ClassVar[bool] = True

    def __init__(self, scale: float = 20.0, *, symmetric: bool = False, rivals: str = "across") -> None:
        super().__init__()
        self.scale, self.symmetric, self.rivals = scale, symmetric, rivals

    @classmethod
    def of(cls, config: LearnConfig, width: int) -> Self:
        return cls(config.scale, symmetric=config.symmetric, rivals=config.rivals)

    def compare(self, vectors: Tensor, targets: Targets) -> Compared:
        with torch.autocast(vectors.device.type, enabled=False):
            units = F.normalize(vectors.float() if vectors.dtype != torch.float64 else vectors, dim=-1)
            texts = targets.extra[TEXTS].to(vectors.device)
            return self._among_all(units, texts) if self.rivals == "all" else self._across(units, texts)

    def _across(self, units: Tensor, texts: Tensor) -> Compared:
        anchor, others = units[:, 0], units[:, 1:].transpose(0, 1).flatten(0, 1)
        scores = (self.scale * (anchor @ others.t())).masked_fill(not_rivals(texts), _NEVER)
        own = scores.diagonal()
        losses = scores.logsumexp(1) - own
        count = len(units)
        if self.symmetric:
            losses = (losses + scores[:, :count].logsumexp(0) - own) / 2
        rival = scores.detach().clone()
        rival[torch.arange(count), torch.arange(count)] = _NEVER
        return Compared(losses, own > rival.amax(1))

    def _among_all(self, units: Tensor, texts: Tensor) -> Compared:
        """The mean of a unit's two texts."""
        flat = units.flatten(0, 1)
        scores = self.scale * (flat @ flat.t()).masked_fill(not_rivals_among_all(texts), _NEVER)
        row, partner = torch.arange(len(flat)), partners(len(flat))
        own = scores[row, partner]
        losses = scores.logsumexp(1) - own
        rival = scores.detach().clone()
        rival[row, partner] = _NEVER
        hits = own > rival.amax(1)
        return Compared(losses.view(-1, 2).mean(1), hits.view(-1, 2).all(1))


class CoSENT(VectorLoss):
    """The loss is one number of the whole batch: every unit is told it, and their mean is it again."""

    whole_batch: ClassVar[bool] = True

    def __init__(self, scale: float = 20.0) -> None:
        super().__init__()
        self.scale = scale

    @classmethod
    def of(cls, config: LearnConfig, width: int) -> Self:
        return cls(config.scale)

    def compare(self, vectors: Tensor, targets: Targets) -> Compared:
        with torch.autocast(vectors.device.type, enabled=False):
            cosine = self.scale * cosine_of(vectors[:, 0], vectors[:, 1])
            label = targets.label.to(vectors.device)
            lower = label[:, None] < label  # equal scores say nothing
            above = (cosine[:, None] - cosine).masked_fill(~lower, _NEVER)
            total = torch.cat([above.flatten(), above.new_zeros(1)]).logsumexp(0)
        return Compared(total.expand(len(vectors)), (above <= 0).all(1))
