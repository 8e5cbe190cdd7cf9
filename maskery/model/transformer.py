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
from maskery.model.selection import Selection, select


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
    """The batch's rows, then those of its views: flat slots of the batch stay what they are."""
    parts = [batch, *batch.views.values()]
    width = batch.ids.shape[1]
    slots = torch.arange(width, device=batch.ids.device)
    return Inputs(
        ids=_below(width, [part.ids for part in parts]),
        layout=layout_of(slots < torch.cat([part.length for part in parts]).unsqueeze(1)),
        segments=_below(width, [part.segments for part in parts]),
        positions=_below(width, [part.positions for part in parts]),
        slots={name: _below(width, [part.slots[name] for part in parts]) for name in batch.slots},
    )


def _below(width: int, grids: list[Tensor]) -> Tensor:
    """Grids of at most `width` columns, one under the other."""
    if len(grids) == 1:
        return grids[0]
    return torch.cat([F.pad(grid, (0, width - grid.shape[1])) for grid in grids])


@dataclass(frozen=True, kw_only=True)
class Hidden:
    """What the network says."""

    packed: Tensor
    """(N,D) the last layer's states of real slots."""
    layout: Layout
    selection: Selection | None = None
    """Set when only the slots that somebody reads were computed; `packed` then holds these."""
    pooled: Tensor | None = None
    """(B,D) of each row's first slot, where there is a pooler; zeros for a row without slots."""
    packed_layers: tuple[Tensor, ...] = ()
    """L+1 entries, embedding first, if asked for."""
    attentions: tuple[Tensor, ...] = ()
    """L entries (B,H,T,T), if asked for."""

    @property
    def last(self) -> Tensor:
        """(B,T,D), zeros at padding."""
        assert self.selection is None, "only selected slots were computed"
        return self.layout.unpack(self.packed)

    @property
    def layers(self) -> tuple[Tensor, ...]:
        return tuple(self.layout.unpack(layer) for layer in self.packed_layers)

    def select(self, index: Tensor) -> Tensor:
        """(n,) flat slots -> (n,D). One gather: quickest, and bitwise repeatable backwards."""
        places = self.layout.places(index)
        if self.selection is not None:
            places = self.selection.place.index_select(0, places)
        return self.packed.index_select(0, places)


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
        return x if self.projection is None else self.projection(x).to(x.dtype)


class Network(nn.Module):
    def __init__(self, shape: Shape, *, pooler: bool) -> None:
        super().__init__()
        self.shape = shape
        self.visibility = VISIBILITIES.get(shape.visibility)()
        self.embeddings = Embeddings(shape)
        self.layers = nn.ModuleList(Block(shape, number) for number in range(shape.layers))
        self.norm = Norm(shape.width, shape.eps) if shape.norm == "pre" else None
        self.pooler = Linear(shape.width, shape.width) if pooler else None

    def forward(
        self, inputs: Inputs, *, layers: bool = False, attentions: bool = False, reads: Tensor | None = None
    ) -> Hidden:
        """The states of all slots, or of the flat slots `reads` alone where that saves work."""
        layout = inputs.layout
        selection = None if reads is None or layers or attentions else self._selection(layout, reads)
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
        for number, block in enumerate(self.layers, start=1):
            last = selection if number == len(self.layers) else None
            x, weights = block(x, plan, self.embeddings.positions, last)
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
            selection=selection,
            pooled=self._pool(x, layout, selection),
            packed_layers=tuple(states) if layers else (),
            attentions=tuple(captured),
        )

    def _selection(self, layout: Layout, reads: Tensor) -> Selection | None:
        """What the last layer has to compute; None when that is most of the slots."""
        places = layout.places(reads)
        if self.pooler is not None:
            places = torch.cat((places, layout.first_places()))
        places = torch.unique(places)
        return select(layout, places) if 0 < 2 * len(places) <= layout.count else None

    def _pool(self, x: Tensor, layout: Layout, selection: Selection | None) -> Tensor | None:
        if self.pooler is None:
            return None
        first = layout.first_places()
        if selection is not None:
            first = selection.place.index_select(0, first)
        if not layout.empty:
            return torch.tanh(self.pooler(x.index_select(0, first))).to(x.dtype)
        filled = layout.order[layout.empty :]
        pooled = torch.tanh(self.pooler(x.index_select(0, first[filled]))).to(x.dtype) if len(filled) else x
        return x.new_zeros(layout.rows, x.shape[1]).index_copy(0, filled, pooled)
