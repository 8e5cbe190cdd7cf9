"""Positions of Transformer-XL and XLNet: a term of the scores for how far the key stands from the query.

    score = (q + u) k + (q + v) r        r = W wave(distance), distance = position of the query - that of the key

`u` and `v` are trained, for all layers (`xl`, Dai et al. 2019) or for each (`xlnet`, Yang et al. 2019); every layer has
its own W. XLNet adds (q + s) e, where e is one of two trained vectors: the key is of the query's segment or of another.
The waves are sines, then cosines. Distances may be clamped when longer pasts are read than in training.

Shapes: b rows, H heads, Q queries, S keys, K head width, D width, R distances.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from maskery.model.config import Shape
from maskery.model.positions import Places, PositionScheme


def waves_of(distance: Tensor, width: int) -> Tensor:
    """(R,) -> (R,width): all sines, then all cosines."""
    even = torch.arange(0, width, 2, device=distance.device, dtype=torch.float32)
    angle = distance.unsqueeze(-1).to(torch.float32) * torch.exp(even * (-math.log(10000.0) / width))
    return torch.cat((angle.sin(), angle.cos()), -1)[..., :width]


class XL(PositionScheme):
    per_layer = False
    """Whether every layer has its own u and v."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.width, self.heads = shape.width, shape.heads
        head = shape.width // shape.heads
        shared = shape.share in ("all", "attention")
        self.sharing = shape.layers // shape.groups if shared else 1
        """Layers that have one W between them."""
        own = shape.layers // self.sharing
        self.clamp: int | None = None
        """Distances beyond it count as it."""
        self.distances = nn.Parameter(torch.empty(own, shape.width, shape.width))
        self.content = nn.Parameter(torch.empty(own if self.per_layer else 1, shape.heads, head))
        self.place = nn.Parameter(torch.empty(own if self.per_layer else 1, shape.heads, head))

    def lean(self, layer: int) -> Tensor:
        return self.content[self._own(layer)]

    def scores(self, layer: int, q: Tensor, places: Places) -> Tensor:
        distance = places.q_pos[:, :, None] - places.k_pos[:, None, :]
        low, high = int(distance.min()), int(distance.max())
        table = self.table(layer, low, high, q)
        scale = q.shape[-1] ** -0.5
        asked = q + self.place[self._own(layer)].unsqueeze(1) * scale
        by_distance = asked @ table.permute(1, 2, 0)
        rows = (distance - low)[:, None].expand(-1, q.shape[1], -1, -1)
        found: Tensor = by_distance.gather(3, rows)
        return found

    def table(self, layer: int, low: int, high: int, like: Tensor) -> Tensor:
        """(R,H,K) what a layer makes of the distances low .. high."""
        distance = torch.arange(low, high + 1, device=like.device)
        if self.clamp is not None:
            distance = distance.clamp(-self.clamp, self.clamp)
        made = waves_of(distance, self.width).to(like.dtype) @ self.distances[layer // self.sharing].to(like.dtype).t()
        return made.view(len(distance), self.heads, -1)

    def _own(self, layer: int) -> int:
        return layer // self.sharing if self.per_layer else 0


class XLNet(XL):
    per_layer = True

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        own, head = len(self.distances), shape.width // shape.heads
        self.segment = nn.Parameter(torch.empty(own, shape.heads, head))
        self.segments = nn.Parameter(torch.empty(own, 2, shape.heads, head))
        """Of the same segment, and of another."""

    def scores(self, layer: int, q: Tensor, places: Places) -> Tensor:
        term = super().scores(layer, q, places)
        if places.q_segment is None or places.k_segment is None:
            return term
        own = self._own(layer)
        asked = q + self.segment[own].unsqueeze(1) * q.shape[-1] ** -0.5
        both = asked @ self.segments[own].permute(1, 2, 0)
        other = (places.q_segment[:, :, None] != places.k_segment[:, None, :]).unsqueeze(1)
        return term + torch.where(other, both[..., 1:], both[..., :1])
