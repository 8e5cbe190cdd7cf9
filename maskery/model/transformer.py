"""The one Transformer: embeddings, layers, pooler. It works on packed slots; only attention knows rows.

Shapes: B rows, T slots, N packed slots, E embedding width, D width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maskery.batches import Batch
from maskery.model.attention import plan_attention
from maskery.model.block import Block
from maskery.model.config import POSITIONS, VISIBILITIES, Shape
from maskery.model.dropout import dropout
from maskery.model.layout import Layout, layout_of
from maskery.model.linear import Linear, Norm


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What the network reads: rows of ids and where they are real."""

    ids: Tensor
    """(B,T)"""
    layout: Layout
    segments: Tensor
    positions: Tensor
    slots: Mapping[str, Tensor] = field(default_factory=dict)


def inputs_of(batch: Batch) -> Inputs:
    slots = torch.arange(batch.ids.shape[1], device=batch.ids.device)
    layout = layout_of(slots < batch.length.unsqueeze(1))
    return Inputs(
        ids=batch.ids, layout=layout, segments=batch.segments, positions=batch.positions, slots=batch.slots
    )


@dataclass(frozen=True, kw_only=True)
class Hidden:
    """What the network says."""

    packed: Tensor
    """(N,D) the last layer's states of real slots."""
    layout: Layout
    pooled: Tensor | None = None
    """(B,D) of each row's first slot, where there is a pooler."""
    packed_layers: tuple[Tensor, ...] = ()
    """L+1 entries, embedding first, if asked for."""
    attentions: tuple[Tensor, ...] = ()
    """L entries (B,H,T,T), if asked for."""

    @property
    def last(self) -> Tensor:
        """(B,T,D), zeros at padding."""
        return self.layout.unpack(self.packed)

    @property
    def layers(self) -> tuple[Tensor, ...]:
        return tuple(self.layout.unpack(layer) for layer in self.packed_layers)

    def select(self, index: Tensor) -> Tensor:
        """(n,) flat slots -> (n,D). One gather: quickest, and bitwise repeatable backwards."""
        return self.packed.index_select(0, self.layout.places(index))


class Embeddings(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.dropout = shape.dropout
        self.tokens = nn.Parameter(torch.empty(shape.vocabulary, shape.embedding))
        self.segments = nn.Parameter(torch.empty(shape.segments, shape.embedding)) if shape.segments else None
        self.positions = POSITIONS.get(shape.positions)(shape)
        self.norm = Norm(shape.embedding, shape.eps) if shape.norm == "post" else None
        self.projection = Linear(shape.embedding, shape.width) if shape.embedding != shape.width else None

    def forward(self, ids: Tensor, segments: Tensor, positions: Tensor) -> Tensor:
        """(N,) each -> (N,D)"""
        x = F.embedding(ids, self.tokens)
        place = self.positions.embed(positions)
        if place is not None:
            x = x + place
        if self.segments is not None:
            x = x + F.embedding(segments, self.segments)
        if self.norm is not None:
            x = self.norm(x)
        if self.training:
            x = dropout(x, self.dropout)
        return x if self.projection is None else self.projection(x)


class Network(nn.Module):
    def __init__(self, shape: Shape, *, pooler: bool) -> None:
        super().__init__()
        self.shape = shape
        self.visibility = VISIBILITIES.get(shape.visibility)()
        self.embeddings = Embeddings(shape)
        self.layers = nn.ModuleList(Block(shape, number) for number in range(shape.layers))
        self.norm = Norm(shape.width, shape.eps) if shape.norm == "pre" else None
        self.pooler = Linear(shape.width, shape.width) if pooler else None

    def forward(self, inputs: Inputs, *, layers: bool = False, attentions: bool = False) -> Hidden:
        layout = inputs.layout
        plan = plan_attention(
            layout,
            self.visibility,
            inputs.slots,
            inputs.positions,
            dropout=self.shape.attention_dropout if self.training else 0.0,
            capture=attentions,
        )
        x = self.embeddings(layout.pack(inputs.ids), layout.pack(inputs.segments), layout.pack(inputs.positions))
        states, captured = [x], []
        for block in self.layers:
            x, weights = block(x, plan, self.embeddings.positions)
            if layers:
                states.append(x)
            if weights is not None:
                captured.append(weights)
        if self.norm is not None:
            x = self.norm(x)
            states[-1] = x
        return Hidden(
            packed=x,
            layout=layout,
            pooled=self._pool(x, layout),
            packed_layers=tuple(states) if layers else (),
            attentions=tuple(captured),
        )

    def _pool(self, x: Tensor, layout: Layout) -> Tensor | None:
        if self.pooler is None:
            return None
        pooled: Tensor = torch.tanh(self.pooler(x.index_select(0, layout.first_places())))
        return pooled
