"""The one Transformer: embeddings, layers, pooler. It works on packed slots; only attention knows rows.

Shapes: B rows, T slots, N packed slots, E embedding width, D width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

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
from maskery.model.visibility import Mixed, Visibility


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What the network reads: rows of ids and where they are real."""

    ids: Tensor
    """(B,T)"""
    layout: Layout
    segments: Tensor
    positions: Tensor
    slots: Mapping[str, Tensor] = field(default_factory=dict)
    visibility: Visibility | None = None
    """Who sees whom in these rows, where that is not the network's own."""


def visibility_of(batch: Batch) -> Visibility | None:
    """Rows that have a mode are read in it; None: as the network reads."""
    return Mixed() if "mode" in batch.slots else None


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
        visibility=visibility_of(batch),
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


LENT = ("tokens", "segments", "tasks", "positions", "norm")
"""Parts of the embeddings that a second network may read at their owner."""


class Embeddings(nn.Module):
    def __init__(self, shape: Shape, lender: Embeddings | None = None) -> None:
        """`lender` owns what two networks have in common; here is then only a projection, and positions if they act in
        attention, whose heads are this network's."""
        super().__init__()
        self.dropout = shape.dropout
        self.tokens = nn.Parameter(torch.empty(shape.vocabulary, shape.embedding))
        self.segments = nn.Parameter(torch.empty(shape.segments, shape.embedding)) if shape.segments else None
        self.tasks = nn.Parameter(torch.empty(shape.tasks, shape.embedding)) if shape.tasks else None
        self.positions = POSITIONS.get(shape.positions)(shape)
        self.norm = Norm(shape.embedding, shape.eps) if shape.norm == "post" else None
        self.projection = Linear(shape.embedding, shape.width) if shape.embedding != shape.width else None
        # In a tuple, because a module held as an attribute would be counted as this network's own.
        self._lender = () if lender is None else (lender,)
        for name in LENT if lender is not None else ():
            if hasattr(self, name) and not (name == "positions" and self.positions.in_attention):
                delattr(self, name)

    def __getattr__(self, name: str) -> Any:
        """What is borrowed is read at its owner, so that it is counted, saved and trained once."""
        if name in LENT and name not in self._parameters and name not in self._modules and self._lender:
            return getattr(self._lender[0], name)
        return super().__getattr__(name)

    def borrowed(self) -> dict[str, nn.Parameter]:
        """The borrowed parameters by the names that they would have here."""
        every = [pair for lender in self._lender for pair in lender.named_parameters()]
        lent = [name for name in LENT if name not in self._modules]
        return {name: value for name, value in every if name.partition(".")[0] in lent}

    def forward(self, ids: Tensor, segments: Tensor, positions: Tensor, tasks: Tensor | None = None) -> Tensor:
        """(N,) each -> (N,D); without `tasks` every slot is of the first task."""
        x = F.embedding(ids, self.tokens)
        place = self.positions.embed(positions)
        if place is not None:
            x = x + place
        if self.segments is not None:
            x = x + F.embedding(segments, self.segments)
        if self.tasks is not None:
            x = x + (self.tasks[0] if tasks is None else F.embedding(tasks, self.tasks))
        if self.norm is not None:
            x = self.norm(x)
        if self.training:
            x = dropout(x, self.dropout)
        return x if self.projection is None else self.projection(x).to(x.dtype)


class Network(nn.Module):
    def __init__(self, shape: Shape, *, pooler: bool, lender: Network | None = None) -> None:
        """`lender` owns the embeddings, if this is a second network that has them in common with it."""
        super().__init__()
        self.shape = shape
        self.visibility = VISIBILITIES.get(shape.visibility)()
        self.embeddings: Embeddings = Embeddings(shape, None if lender is None else lender.embeddings)
        self.layers = nn.ModuleList()
        for number in range(shape.layers):
            first = number - number % (shape.layers // shape.groups)
            self.layers.append(Block(shape, number, cast(Block, self.layers[first]) if first < number else None))
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
            inputs.visibility or self.visibility,
            inputs.slots,
            inputs.positions,
            dropout=self.shape.attention_dropout if self.training else 0.0,
            capture=attentions,
        )
        tasks = inputs.slots.get("task")
        x = self.embeddings(
            layout.pack(inputs.ids),
            layout.pack(inputs.segments),
            layout.pack(inputs.positions),
            None if tasks is None else layout.pack(tasks),
        )
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
