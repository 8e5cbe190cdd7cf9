"""Disentangled attention: content and position of two slots meet crosswise (DeBERTa; He et al. 2020).

    score = (q k + q K(d) + k Q(d)) / sqrt(3 K)        d = bucket of the query's position - that of the key

K(d) and Q(d) are what the layer's own products for keys and queries make of a trained vector of the distance: what is
asked of a distance, and what a distance asks of the key. One table serves all layers, normalised before it is
used. Half of the buckets of a side tell distances exactly, half in widths that grow like a logarithm up to `clip`.
These are the choices of every published DeBERTa of version 2 and 3.

Shapes: b rows, H heads, Q queries, S keys, K head width, D width, R buckets of a side.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from maskery.model.config import Shape
from maskery.model.crosswise import Crossed
from maskery.model.dropout import dropout
from maskery.model.linear import Norm
from maskery.model.positions import Places, PositionScheme, Project


class Disentangled(PositionScheme):
    terms: ClassVar[int] = 3

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.buckets, self.farthest, self.heads = shape.buckets, shape.clip, shape.heads
        self.dropout, self.head = shape.dropout, shape.width // shape.heads
        self.distances = nn.Parameter(torch.empty(2 * shape.buckets, shape.width))
        self.norm = Norm(shape.width, shape.eps, bias=shape.norm_bias)

    def row(self, distance: Tensor) -> Tensor:
        """The row of each distance (query's position minus key's) in the table."""
        middle = self.buckets // 2
        far = distance.abs().clamp(min=middle)
        # In float32 as it is published: a bucket's border is where this rounds up.
        grown = torch.log(far / middle) / torch.log(torch.tensor((self.farthest - 1) / middle)) * (middle - 1)
        bucket = torch.where(far <= middle, distance, distance.sign() * (grown.ceil().long() + middle))
        return (bucket + self.buckets).clamp(0, 2 * self.buckets - 1)

    @property
    def scale(self) -> float:
        return 1 / math.sqrt(self.terms * self.head)

    def _made(self, low: int, high: int, like: Tensor, project: Project) -> tuple[Tensor, Tensor]:
        """(H,R',K) what the distances low .. high of the table ask with, and what is asked of them."""
        table = self.norm(self.distances[low : high + 1])
        if self.training:
            table = dropout(table, self.dropout)
        made = project(table.to(like.dtype), 0, 2).view(len(table), 2, self.heads, -1)
        asking, asked = made.permute(1, 2, 0, 3)
        return asking, asked

    def along(self, length: int, like: Tensor, project: Project) -> Crossed:
        """What a layer makes of all the distances within rows of up to `length` slots, for the quick kernel."""
        rows = self.row(torch.arange(length - 1, -length, -1, device=like.device))
        first, last = int(rows[-1]), int(rows[0])
        # Each bucket is projected once, however many distances it holds.
        made = self._made(first, last, like, project)
        asking, asked = (each.index_select(1, rows - first) for each in made)
        return Crossed(asked.to(like.dtype), asking.to(like.dtype))

    def meets(self, layer: int, q: Tensor, k: Tensor, places: Places, project: Project) -> Tensor:
        rows = self.row(places.q_pos[:, :, None] - places.k_pos[:, None, :])
        low, high = (0, 0) if not rows.numel() else (int(rows.min()), int(rows.max()))
        asking, asked = self._made(low, high, q, project)
        index = (rows - low)[:, None].expand(-1, self.heads, -1, -1)
        found: Tensor = (q @ asked.transpose(1, 2)).gather(3, index)
        of_keys = (k @ asking.transpose(1, 2)) * self.scale
        found += of_keys.gather(3, index.transpose(2, 3)).transpose(2, 3)
        return found
