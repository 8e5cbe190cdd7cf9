"""Positions of Transformer-XL and XLNet: a term of the scores for how far the key stands from the query.

    score = (q + u) k + (q + v) r        r = W wave(distance), distance = position of the query - that of the key

`u` and `v` are trained, for all layers (`xl`, Dai et al. 2019) or for each (`xlnet`, Yang et al. 2019); every layer has
its own W. XLNet adds (q + s) e, where e is one of two trained vectors: the key is of the query's segment or of another.
The waves are sines, then cosines. Distances may be clamped when longer pasts are read than in training.

Shapes: b rows, H heads, Q queries, S keys, K head width, D width, R distances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor, nn

from maskery.model.config import Shape
from maskery.model.parts import Part
from maskery.model.positions import Places, PositionScheme
from maskery.model.streams import Learned


@lru_cache(maxsize=16)
def waves(low: int, high: int, clamp: int | None, width: int, device: torch.device) -> Tensor:
    """(R,width) of the distances low .. high in float32: all sines, then all cosines; made once for all layers."""
    with torch.inference_mode(False):
        distance = torch.arange(low, high + 1, device=device, dtype=torch.float32)
        if clamp is not None:
            distance = distance.clamp(-clamp, clamp)
        even = torch.arange(0, width, 2, device=device, dtype=torch.float32)
        angle = distance.unsqueeze(-1) * torch.exp(even * (-math.log(10000.0) / width))
        return torch.cat((angle.sin(), angle.cos()), -1)[:, :width]


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
        size = (own, shape.heads, head) if self.per_layer else (shape.heads, head)
        self.content, self.place = nn.Parameter(torch.empty(size)), nn.Parameter(torch.empty(size))

    def lean(self, layer: int) -> Tensor:
        return self._of(self.content, layer)

    def scores(self, layer: int, q: Tensor, places: Places) -> Tensor:
        distance = places.q_pos[:, :, None] - places.k_pos[:, None, :]
        low, high = int(distance.min()), int(distance.max())
        table = self.table(layer, low, high, q)
        scale = q.shape[-1] ** -0.5
        asked = q + self._of(self.place, layer).unsqueeze(1) * scale
        by_distance = asked @ table.permute(1, 2, 0)
        rows = (distance - low)[:, None].expand(-1, q.shape[1], -1, -1)
        found: Tensor = by_distance.gather(3, rows)
        return found

    def table(self, layer: int, low: int, high: int, like: Tensor) -> Tensor:
        """(R,H,K) what a layer makes of the distances low .. high."""
        told = waves(low, high, self.clamp, self.width, like.device).to(like.dtype)
        made = told @ self.distances[layer // self.sharing].to(like.dtype).t()
        return made.view(len(told), self.heads, -1)

    def learned(self, layer: int, parts: Sequence[Part], like: Tensor) -> Learned:
        """All that a layer knows, for the quick kernel."""
        longest, before = max(part.keys.length for part in parts), parts[0].before
        near, far = longest - 1, before + longest - 1
        up = down = None
        if not all(part.down for part in parts):
            up = self.table(layer, -near, far, like).flip(0).transpose(0, 1)
        if any(part.down for part in parts):
            down = self.table(layer, -far, near, like).transpose(0, 1)
        content, place = (self._of(each, layer).to(like.dtype) for each in (self.content, self.place))
        return Learned(content, place, up, down)

    def _of(self, vectors: Tensor, layer: int) -> Tensor:
        """(H,K) a layer's u or v."""
        return vectors[layer // self.sharing] if self.per_layer else vectors


class XLNet(XL):
    per_layer = True
    tells_segments = True

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        own, head = len(self.distances), shape.width // shape.heads
        self.segment = nn.Parameter(torch.empty(own, shape.heads, head))
        self.segments = nn.Parameter(torch.empty(own, 2, shape.heads, head))
        """Of the same segment, and of another."""

    def learned(self, layer: int, parts: Sequence[Part], like: Tensor) -> Learned:
        found, own = super().learned(layer, parts, like), layer // self.sharing
        same, other = self.segments[own].to(like.dtype)
        return found._replace(segment=self.segment[own].to(like.dtype), other=other - same)

    def scores(self, layer: int, q: Tensor, places: Places) -> Tensor:
        term = super().scores(layer, q, places)
        if places.q_segment is None or places.k_segment is None:
            return term
        own = layer // self.sharing
        asked = q + self.segment[own].unsqueeze(1) * q.shape[-1] ** -0.5
        both = asked @ self.segments[own].permute(1, 2, 0)
        other = (places.q_segment[:, :, None] != places.k_segment[:, None, :]).unsqueeze(1)
        return term + torch.where(other, both[..., 1:], both[..., :1])
