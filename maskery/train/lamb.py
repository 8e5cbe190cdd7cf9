"""LAMB (You et al. 2019), as ALBERT and the Chinese whole-word models were trained: Adam whose step is scaled, tensor
by tensor, to the size of the weights it moves.

u = m / (sqrt(v) + eps) + decay * w;  w -= lr * |w| / |u| * u, with the ratio 1 where either norm is 0. Biases and norms
take neither decay nor ratio. `training.bias_correction` decides whether m and v are corrected: ALBERT's code does not.
A stacked parameter (3, D, D) holds q, k and v, which are tensors of their own: each has its own ratio.
"""

from __future__ import annotations

import torch
from torch import Tensor

from maskery.train.optimizers import AdamW, decays
from maskery.train.replicas import whole


class Lamb(AdamW):
    """The state is Adam's."""

    @torch.no_grad()
    def step(self, lr: float, number: int) -> None:
        one, two = self.training.betas
        corrected = self.training.bias_correction
        first_scale, second_scale = (1 - one**number, 1 - two**number) if corrected else (1.0, 1.0)
        for name, weight in self.parameters.items():
            if weight.grad is None:
                continue
            first, second = self.first[name], self.second[name]
            first.mul_(one).add_(weight.grad, alpha=1 - one)
            second.mul_(two).addcmul_(weight.grad, weight.grad, value=1 - two)
            update = first.div(first_scale).div_(second.div(second_scale).sqrt_().add_(self.training.eps))
            if decays(name, weight):
                update.add_(weight, alpha=self.training.weight_decay)
                ratio = _ratio(weight, update)
                # A number where it is one: shards refuse to be multiplied by a tensor that is not cut as they are.
                update.mul_(ratio if weight.dim() == 3 else whole(ratio).item())
            weight.sub_(update, alpha=lr)


def _ratio(weight: Tensor, update: Tensor) -> Tensor:
    """|w| / |u|, for each tensor that a stacked parameter holds."""
    inner = tuple(range(1, weight.dim())) if weight.dim() == 3 else tuple(range(weight.dim()))
    size = torch.linalg.vector_norm(weight, dim=inner, keepdim=True)
    step = torch.linalg.vector_norm(update, dim=inner, keepdim=True)
    return torch.where((size > 0) & (step > 0), size / step, torch.ones_like(size))
