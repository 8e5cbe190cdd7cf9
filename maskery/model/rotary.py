"""Rotary positions: queries and keys are turned by angles that grow with their position (Su et al. 2021).

Numbers i and i + K/2 of a head are a point of a plane, turned by position / theta^(2i/K). The product of a turned query
and a turned key depends on how far apart they stand, and on nothing else of their positions. Layers of local attention
may have a base of their own (ModernBERT).

Turning is all that the scheme does, so slots are turned once, where they lie packed, and every kernel takes them.

Shapes: N packed slots, D width, H heads, K head width, B rows, T slots.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from maskery.model.config import Shape
from maskery.model.positions import PositionScheme


class Waves(NamedTuple):
    """Of some positions, in float32 whatever a network's numbers are; (..., K/2) each."""

    cos: Tensor
    sin: Tensor

    def of(self, index: Tensor) -> Waves:
        return Waves(self.cos.index_select(0, index), self.sin.index_select(0, index))


class Rotary(PositionScheme):
    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.head = shape.width // shape.heads
        local = shape.local_theta or shape.theta
        self.bases = [local if shape.is_local(layer) else shape.theta for layer in range(shape.layers)]
        """Of each layer."""

    def waves(self, layer: int, positions: Tensor) -> Waves:
        """(...,) -> (...,K/2)"""
        even = torch.arange(0, self.head, 2, device=positions.device, dtype=torch.float32)
        angle = positions.unsqueeze(-1).to(torch.float32) * (1.0 / self.bases[layer] ** (even / self.head))
        return Waves(angle.cos(), angle.sin())

    def turn(self, layer: int, x: Tensor, positions: Tensor) -> Tensor:
        cos, sin = (each.unsqueeze(1) for each in self.waves(layer, positions))
        one, other = x.chunk(2, -1)
        return torch.cat((one * cos - other * sin, other * cos + one * sin), -1).to(x.dtype)


def turned(x: Tensor, waves: Waves, head: int, width: int) -> Tensor:
    """(N,D'), heads of `head` numbers side by side: the first `width` columns of the slots that have waves are turned;
    the rest, values and what stands behind the rows, stays."""
    found: Tensor = _Turned.apply(x, waves.cos, waves.sin, head, width)  # type: ignore[no-untyped-call]
    return found


def _rotated(x: Tensor, cos: Tensor, sin: Tensor, head: int, width: int) -> Tensor:
    count = len(cos)
    out = torch.empty_like(x)
    out[:count, width:] = x[:count, width:]
    out[count:] = x[count:]
    planes = (count, width // head, 2, head // 2)
    one, other = x[:count, :width].view(planes).unbind(2)
    first, second = out[:count, :width].view(planes).unbind(2)
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    first.copy_(torch.mul(one, cos).addcmul_(other, sin, value=-1))
    second.copy_(torch.mul(other, cos).addcmul_(one, sin))
    return out


class _Turned(torch.autograd.Function):
    """Forwards by the angles, backwards by their negatives."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor, head: int, width: int) -> Tensor:
        ctx.save_for_backward(cos, sin)
        ctx.head, ctx.width = head, width
        return _rotated(x.contiguous(), cos, sin, head, width)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        cos, sin = ctx.saved_tensors
        return _rotated(gradients[0].contiguous(), cos, -sin, ctx.head, ctx.width), None, None, None, None
