"""A linear head for vectors that do not move: logistic regression, fitted to its one optimum by Newton's method.

Shapes: n vectors, D width, C classes; a column of ones is the bias.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

PENALTY = 1e-3
"""Of the squared weights, half of it, beside the mean loss; the bias is free."""
_TURNS, _ENOUGH = 100, 1e-10
_RIDGE = 1e-10
"""All biases can be moved together without any effect: this keeps them where they are."""


@dataclass(frozen=True)
class LinearHead:
    mean: Tensor
    scale: Tensor
    weight: Tensor
    """(C,D+1)"""

    def scores(self, vectors: Tensor) -> Tensor:
        """(n,D) -> (n,C)"""
        return _standard(vectors, self.mean, self.scale) @ self.weight.T


def fit(vectors: Tensor, labels: Tensor, classes: int) -> LinearHead:
    """The head with the least loss: it begins with zeros and the loss is convex, so nothing is drawn."""
    vectors = vectors.double()
    mean, scale = vectors.mean(0), vectors.std(0, correction=0).clamp_min(1e-6)
    x = _standard(vectors, mean, scale)
    penalty = torch.full_like(x[0], PENALTY)
    penalty[-1] = 0
    weight = x.new_zeros(classes, x.shape[1])
    right = F.one_hot(labels, classes).double()

    def loss(weight: Tensor) -> float:
        return float(F.cross_entropy(x @ weight.T, labels) + (penalty * weight.square()).sum() / 2)

    for _ in range(_TURNS):
        chances = (x @ weight.T).softmax(1)
        gradient = (chances - right).T @ x / len(x) + penalty * weight
        if gradient.abs().max() < _ENOUGH:
            break
        step = torch.linalg.solve(_curvature(x, chances, penalty), gradient.flatten()).view_as(weight)
        length, here = 1.0, loss(weight)
        while length > _ENOUGH and loss(weight - length * step) > here:
            length /= 2
        weight = weight - length * step
    return LinearHead(mean, scale, weight)


def _standard(vectors: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    return F.pad((vectors.double() - mean) / scale, (0, 1), value=1.0)


def _curvature(x: Tensor, chances: Tensor, penalty: Tensor) -> Tensor:
    """(C(D+1), C(D+1)) second derivatives, a block for each two classes."""
    classes = range(chances.shape[1])

    def block(a: int, b: int) -> Tensor:
        same = float(a == b)
        share = chances[:, a] * (same - chances[:, b])
        return (x * share[:, None]).T @ x / len(x) + same * torch.diag(penalty + _RIDGE)

    return torch.cat([torch.cat([block(a, b) for b in classes], 1) for a in classes])
