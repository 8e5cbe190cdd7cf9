"""A linear layer whose numbers are set by `initialise` or by a checkpoint, never twice.

Shapes: N packed slots.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maskery.model.multiply import SLOTS, Product, by_onednn


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """(N,D) -> (N,E), as `F.linear` does it, or in float32 by a quicker library where there is one."""
    if not torch.is_autocast_enabled("cpu") and x.dtype == weight.dtype and _compiled(x):
        product: Tensor = Product.apply(x, weight, bias)  # type: ignore[no-untyped-call]
        return product
    wide = with_room(x)
    return F.linear(x, weight, bias) if wide is x else F.linear(wide, weight, bias)[: len(x)]


def with_room(x: Tensor) -> Tensor:
    """(N,D) with zeros behind it, up to a number of slots that recurs, if that is of use.

    A batch has as many slots as its rows have, so nearly every step has another N. oneDNN, which multiplies bfloat16
    on a CPU and on some float32, compiles code for each shape, forwards and twice back: for rows of 13 slots that cost
    7 % of a step in bfloat16 and more in float32.
    """
    missing = -len(x) % SLOTS
    return F.pad(x, (0, 0, 0, missing)) if missing and _compiled(x) else x


def _compiled(x: Tensor) -> bool:
    """Whether code is compiled for a product with x."""
    if x.device.type != "cpu" or x.dim() != 2 or len(x) < SLOTS:
        return False
    if torch.is_autocast_enabled("cpu"):
        return torch.is_grad_enabled()
    return x.dtype == torch.float32 and by_onednn()


class Linear(nn.Module):
    def __init__(self, inputs: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


class Norm(nn.Module):
    """Layer normalisation, in the numbers of its weights whatever comes in."""

    def __init__(self, width: int, eps: float, *, bias: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.empty(width))
        self.bias = nn.Parameter(torch.empty(width)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x.to(self.weight.dtype), self.weight.shape, self.weight, self.bias, self.eps)
