"""Dropout that costs a fifth of torch's on a CPU: raw 64-bit words, read as 16-bit numbers and compared.

The probability is exact to 1/65536 (0.1 becomes 0.1000061) and the survivors are scaled by exactly that. On other
devices torch's own dropout is used. Draws come from torch's default generator, which the training loop keys anew for
every forward pass.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

_LEVELS = 65536


def level(p: float) -> int:
    """How many of the 65536 levels are dropped."""
    return min(round(p * _LEVELS), _LEVELS - 1)


def draw(shape: torch.Size, slots: int | None = None) -> Tensor:
    """One 16-bit number for each element, on the CPU. This is what a backward pass remembers. `slots`: only so many of
    the first draw, and what lies behind has 0, so that empty slots behind the rows change no draw of any row."""
    count = shape.numel()
    words = torch.empty((count + 3) // 4, dtype=torch.int64)
    drawn = len(words) if slots is None else (slots * shape[1:].numel() + 3) // 4
    # random_() alone leaves the sign bit 0; an explicit full range draws all 64 bits.
    words[:drawn].random_(-(2**63), None)
    words[drawn:].zero_()
    return words.view(torch.int16)[:count].view(shape)


def kept(numbers: Tensor, p: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """1 for what stays, 0 for what is dropped, which happens with probability level(p) / 65536.

    Written as numbers: a comparison into a float array and a product are vector code, a boolean mask is not.
    """
    return torch.ge(numbers, level(p) - _LEVELS // 2, out=torch.empty(numbers.shape, dtype=dtype))


def keep_scale(p: float) -> float:
    return _LEVELS / (_LEVELS - level(p))


class _ResidualDropout(torch.autograd.Function):
    """residual + dropout(x) in one pass, remembering two bytes an element."""

    @staticmethod
    def forward(ctx: Any, residual: Tensor, x: Tensor, p: float, slots: int | None) -> Tensor:
        numbers = draw(x.shape, slots)
        ctx.save_for_backward(numbers)
        ctx.p = p
        return torch.addcmul(residual, x, kept(numbers, p, x.dtype), value=keep_scale(p))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        return gradients[0], _backward(ctx, gradients[0]), None, None


def _backward(ctx: Any, gradient: Tensor) -> Tensor:
    (numbers,) = ctx.saved_tensors
    return kept(numbers, ctx.p, gradient.dtype).mul_(gradient).mul_(keep_scale(ctx.p))


def add_dropout(residual: Tensor, x: Tensor, p: float, slots: int | None = None) -> Tensor:
    """residual + dropout(x); p = 0 is a plain sum. `slots`: what lies behind so many belongs to no row."""
    if level(p) == 0:
        return residual + x
    if x.device.type != "cpu":
        return residual + F.dropout(x, p)
    summed: Tensor = _ResidualDropout.apply(residual, x, p, slots)  # type: ignore[no-untyped-call]
    return summed


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float) -> Tensor:
        numbers = draw(x.shape)
        ctx.save_for_backward(numbers)
        ctx.p = p
        return kept(numbers, p, x.dtype).mul_(x).mul_(keep_scale(p))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _backward(ctx, gradients[0]), None


def dropout(x: Tensor, p: float) -> Tensor:
    if level(p) == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    thinned: Tensor = _Dropout.apply(x, p)  # type: ignore[no-untyped-call]
    return thinned
