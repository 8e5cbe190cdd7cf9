"""Positions told by distance: how far key k stands from query q, inside attention. Only `mpnet` adds to the input.

- `nezha`: fixed waves of the distance, added to keys and to values (Wei et al. 2019). The paper's waves are of k - q;
  the authors' program takes the row k - q + clip of its table instead, and so does this. No weights.
- `shaw`: the same with trained vectors, other ones for keys and for values (Shaw et al. 2018). Every layer has its own,
  as in the paper, shared by the heads (its section 3.3); layers that share their attention share these too.
- `t5`: one trained number a head for each bucket of distances, added to the scores; one table for all layers (Raffel et
  al. 2019).
- `mpnet`: the same, and a trained vector for each position at the input (Song et al. 2020).

All are rows of small tables, one row for each distance that has a vector of its own, so rows of any length can be read;
mpnet's end with its positions.

Shapes: b rows, H heads, Q queries, S keys, K head width, R distances told apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maskery.model.config import Shape
from maskery.model.positions import Places, PositionScheme, sinusoids


@dataclass(frozen=True, kw_only=True)
class Tables:
    """What one layer knows of distances; None where it knows nothing."""

    bias: Tensor | None = None
    """(R,H) added to the scores."""
    keys: Tensor | None = None
    """(R,K) added to every key."""
    values: Tensor | None = None
    """(R,K) added to every value."""

    def at(self, rows: Tensor) -> Tables:
        """The same for some rows of the tables, which may repeat."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return Tables(**{name: None if each is None else F.embedding(rows, each) for name, each in found.items()})


class Relative(PositionScheme):
    """A scheme that gives the row of each distance and the tables of each layer has all the rest."""

    by_distance: ClassVar[bool] = True

    def row(self, distance: Tensor) -> Tensor:
        """The row of each distance (key's position minus query's), in the tables."""
        raise AssertionError("a scheme of its own")

    def tables(self, layer: int, like: Tensor) -> Tables:
        """In the numbers and on the device of `like`."""
        raise AssertionError("a scheme of its own")

    def along(self, layer: int, length: int, like: Tensor) -> Tables:
        """The tables' rows for the distances 1 - length .. length - 1: all there are within a row."""
        distance = torch.arange(1 - length, length, device=like.device)
        return self.tables(layer, like).at(self.row(distance))

    def _rows(self, places: Places) -> Tensor:
        """(b,Q,S)"""
        return self.row(places.k_pos[:, None, :] - places.q_pos[:, :, None])

    def scores(self, layer: int, q: Tensor, places: Places) -> Tensor | None:
        """`q` is scaled already, so the term of the keys is, too; a bias is added as it is."""
        tables, rows = self.tables(layer, q), self._rows(places)
        term = None
        if tables.keys is not None:
            term = (q @ tables.keys.t()).gather(3, rows[:, None].expand(-1, q.shape[1], -1, -1))
        if tables.bias is not None:
            bias = F.embedding(rows, tables.bias).permute(0, 3, 1, 2)
            term = bias if term is None else term + bias
        return term

    def values(self, layer: int, weights: Tensor, places: Places) -> Tensor | None:
        table = self.tables(layer, weights).values
        if table is None:
            return None
        rows = self._rows(places)[:, None].expand_as(weights)
        # Each query's weights are summed by one thread, in the order of the keys: bitwise repeatable.
        summed = weights.new_zeros(*weights.shape[:3], len(table)).scatter_add(3, rows, weights)
        return summed @ table


class _Clipped(Relative):
    """Distances from -clip to clip; those beyond count as the farthest."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.clip, self.head = shape.clip, shape.width // shape.heads

    def row(self, distance: Tensor) -> Tensor:
        return distance.clamp(-self.clip, self.clip) + self.clip


@lru_cache(maxsize=16)
def waves(rows: int, width: int, device: torch.device) -> Tensor:
    """(rows, width) in float32, whatever a network's numbers are; made once for all layers and batches."""
    with torch.inference_mode(False):
        return sinusoids(torch.arange(rows, device=device), width)


class Nezha(_Clipped):
    def tables(self, layer: int, like: Tensor) -> Tables:
        table = waves(2 * self.clip + 1, self.head, like.device).to(like.dtype)
        return Tables(keys=table, values=table)


class Shaw(_Clipped):
    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        shared = shape.share in ("all", "attention")
        self.sharing = shape.layers // shape.groups if shared else 1
        """Layers that have one table between them."""
        size = (shape.layers // self.sharing, 2 * shape.clip + 1, self.head)
        self.keys = nn.Parameter(torch.empty(size))
        self.contents = nn.Parameter(torch.empty(size))

    def tables(self, layer: int, like: Tensor) -> Tables:
        number = layer // self.sharing
        return Tables(keys=self.keys[number].to(like.dtype), values=self.contents[number].to(like.dtype))


class _Bucketed(Relative):
    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.buckets, self.farthest = shape.buckets, shape.clip

    def row(self, distance: Tensor) -> Tensor:
        """Half of the buckets for each side; of these half exact, half in widths that grow like a logarithm."""
        side = self.buckets // 2
        exact = side // 2
        far = distance.abs()
        grown = exact + (torch.log(far.clamp(min=1) / exact) / math.log(self.farthest / exact) * (side - exact)).long()
        return torch.where(far < exact, far, grown.clamp(max=side - 1)) + (distance > 0) * side


class T5(_Bucketed):
    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.table = nn.Parameter(torch.empty(shape.buckets, shape.heads))

    def tables(self, layer: int, like: Tensor) -> Tables:
        return Tables(bias=self.table.to(like.dtype))


class MPNet(_Bucketed):
    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.limit = shape.max_length + shape.position_offset
        self.table = nn.Parameter(torch.empty(self.limit, shape.embedding))
        self.distances = nn.Parameter(torch.empty(shape.buckets, shape.heads))

    def embed(self, positions: Tensor) -> Tensor:
        return F.embedding(positions, self.table)

    def tables(self, layer: int, like: Tensor) -> Tables:
        return Tables(bias=self.distances.to(like.dtype))
