"""Position schemes: where a slot stands, told to the network in one of four places.

A scheme may add to the input (`embed`), turn queries and keys (`turn`), add to the scores before the softmax
(`scores`, or `meets` where keys are needed too) or add to the attention's output (`values`). What a scheme does not do
it leaves as None. Positions are tensors of position numbers, never lengths, so branches, offsets and memory need no new
code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maskery.model.config import Shape

Project = Callable[[Tensor, int, int], Tensor]
"""A layer's products, as `Attention.project`: (N,D) -> (N,n*D) queries (0), keys (1) and values (2) by number."""


@dataclass(frozen=True)
class Places:
    """Where queries and keys stand; B rows, Q queries, S keys."""

    q_pos: Tensor
    """(B,Q) position numbers."""
    k_pos: Tensor
    """(B,S); of a past they may be negative."""
    q_segment: Tensor | None = None
    k_segment: Tensor | None = None

    def of(self, slots: Tensor) -> Places:
        """The same where only some of the queries ask: (B,m) which."""
        segment = None if self.q_segment is None else self.q_segment.gather(1, slots)
        return Places(self.q_pos.gather(1, slots), self.k_pos, segment, self.k_segment)


class PositionScheme(nn.Module):
    in_attention: ClassVar[bool] = False
    """Whether attention has to call this scheme at all: known from the methods that it has."""
    by_distance: ClassVar[bool] = False
    """Whether it acts in attention and knows nothing but how far apart two slots are (maskery.model.relative)."""
    turns_only: ClassVar[bool] = False
    """Whether turning queries and keys is all that it does in attention, so that any kernel can take these."""
    terms: ClassVar[int] = 1
    """Products of vectors that are summed into a score, whose scale goes by their number."""
    tells_segments: ClassVar[bool] = False
    """Whether it tells attention if two slots are of one segment."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        base = PositionScheme
        hooks = (cls.turn, cls.lean, cls.scores, cls.meets, cls.values)
        none = (base.turn, base.lean, base.scores, base.meets, base.values)
        cls.in_attention = hooks != none
        cls.turns_only = cls.in_attention and hooks[1:] == none[1:]

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.limit: int | None = None
        """Position numbers must stay below this; None = any."""

    def embed(self, positions: Tensor) -> Tensor | None:
        """(N,) -> (N,E), added at the input."""
        return None

    def turn(self, layer: int, x: Tensor, positions: Tensor) -> Tensor | None:
        """(B,H,T,K) queries or keys, turned by their positions."""
        return None

    def lean(self, layer: int) -> Tensor | None:
        """(H,head width) added to every query where it meets the content of a key."""
        return None

    def scores(self, layer: int, q: Tensor, places: Places) -> Tensor | None:
        """(B,H,Q,K), added before the softmax."""
        return None

    def meets(self, layer: int, q: Tensor, k: Tensor, places: Places, project: Project) -> Tensor | None:
        """(B,H,Q,K), added before the softmax; `q` is scaled already, and the term of the keys is to be."""
        return None

    def values(self, layer: int, weights: Tensor, places: Places) -> Tensor | None:
        """(B,H,Q,K) weights -> (B,H,Q,head width), added to the output; forces the explicit kernel."""
        return None


class NoPositions(PositionScheme):
    """The network is blind to order: permuting a row permutes its output."""


class Learned(PositionScheme):
    """One trained vector a position (BERT)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.limit = shape.max_length + shape.position_offset
        self.table = nn.Parameter(torch.empty(self.limit, shape.embedding))

    def embed(self, positions: Tensor) -> Tensor:
        return F.embedding(positions, self.table)


class Sinusoidal(PositionScheme):
    """Fixed waves, sine and cosine interleaved, wavelengths from 2*pi to 10000*2*pi (Vaswani et al. 2017)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.width = shape.embedding

    def embed(self, positions: Tensor) -> Tensor:
        return sinusoids(positions, self.width)


def sinusoids(positions: Tensor, width: int) -> Tensor:
    """(...,) position numbers -> (..., width): element 2i is sin(pos / 10000^(2i/width)), 2i+1 the cosine."""
    even = torch.arange(0, width, 2, device=positions.device, dtype=torch.float32)
    angle = positions.unsqueeze(-1).to(torch.float32) * torch.exp(even * (-math.log(10000.0) / width))
    waves = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)
    return waves[..., :width]
