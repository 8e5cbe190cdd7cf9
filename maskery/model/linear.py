"""A linear layer whose numbers are set by `initialise` or by a checkpoint, never twice.

Shapes: N packed slots.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SLOTS = 64
"""In bfloat16 on a CPU training multiplies so many slots or a multiple."""


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """(N,D) -> (N,E), as `F.linear` does it.

    A batch has as many slots as its rows have, so nearly every step has another N. The library that multiplies bfloat16
    on a CPU compiles code for each shape, forwards and twice back, which for rows of 13 slots cost 7 % of a step:
    with a few zeros more the shapes recur.
    """
    missing = -len(x) % SLOTS
    compiled = torch.is_autocast_enabled("cpu") and x.device.type == "cpu" and torch.is_grad_enabled()
    if not compiled or not missing or len(x) < SLOTS or x.dim() != 2:
        return F.linear(x, weight, bias)
    return F.linear(F.pad(x, (0, 0, 0, missing)), weight, bias)[: len(x)]


class Linear(nn.Module):
    def __init__(self, inputs: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


class Norm(nn.Module):
    """Layer normalisation, in the numbers of its weights whatever comes in."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.empty(width))
        self.bias = nn.Parameter(torch.empty(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x.to(self.weight.dtype), self.weight.shape, self.weight, self.bias, self.eps)
