"""Layers one upon another: embeddings, blocks, a last norm. A network is one stack, or two where one of them writes.

Shapes: B rows, T slots, N packed slots, P slots of a second stream, D width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from maskery.batches import Memory
from maskery.model.block import Block
from maskery.model.config import Shape
from maskery.model.dropout import dropout
from maskery.model.embeddings import Embeddings
from maskery.model.layout import Layout
from maskery.model.linear import Norm, with_room
from maskery.model.past import Cache, from_the_right, joined, lengths_of
from maskery.model.plan import AttentionPlan, plan_attention
from maskery.model.products import Products
from maskery.model.selection import Selection
from maskery.model.source import Source
from maskery.model.visibility import Visibility
from maskery.model.xl import XL


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a stack reads: rows of ids and where they are real."""

    ids: Tensor
    """(B,T)"""
    layout: Layout
    segments: Tensor
    positions: Tensor
    slots: Mapping[str, Tensor] = field(default_factory=dict)
    visibility: Visibility | None = None
    """Who sees whom in these rows, where that is not the network's own."""
    past: Memory | Cache | None = None
    """What stands in front of the rows."""
    remember: int = 0
    """How many of the first slots of a row go into memory; 0 = all."""
    asked: Tensor | None = None
    """(n,) flat slots, ascending, that have a second stream."""
    decoder: Inputs | None = None
    """What a decoder reads, row by row beside these."""
    products: Products | None = None
    """What the layers multiply with instead of their own weights, where that is quicker."""


class Run(NamedTuple):
    """What a stack made of its rows."""

    first: Tensor
    """(N,D) last states, or (M,D) of the selected slots."""
    second: Tensor | None
    """(P,D)"""
    states: tuple[Tensor, ...]
    """L+1 entries (N,D): what each layer was given, and the last states."""
    second_states: tuple[Tensor, ...]
    weights: tuple[Tensor, ...]
    """L entries (B,H,T,S), if they are captured."""
    second_weights: tuple[Tensor, ...]
    cache: Cache | None


class Stack(nn.Module):
    embeddings: Embeddings
    layers: nn.ModuleList
    norm: Norm | None

    def __init__(self, shape: Shape, visibility: Visibility, embeddings: Embeddings, *, across: bool = False) -> None:
        super().__init__()
        self.shape = shape
        self.visibility = visibility
        self.embeddings = embeddings
        self.layers = nn.ModuleList()
        for number in range(shape.layers):
            first = number - number % (shape.layers // shape.groups)
            lender = cast(Block, self.layers[first]) if first < number else None
            self.layers.append(Block(shape, number, lender, across=across))
        self.norm = Norm(shape.width, shape.eps, bias=shape.norm_bias) if shape.norm == "pre" else None

    def run(
        self,
        inputs: Inputs,
        *,
        layers: bool = False,
        attentions: bool = False,
        selection: Selection | None = None,
        second: Selection | None = None,
        source: Source | None = None,
        keep: bool = False,
    ) -> Run:
        """`selection`: what the last layer computes of the first stream; `second`: the slots that have a second one;
        `keep`: what is needed to read on behind these rows."""
        count = inputs.layout.count
        plan = self._plan(inputs, attentions, second, keep)
        x = self._embed(inputs, second)
        if plan.plain and source is None and inputs.products is None and not isinstance(self.embeddings.positions, XL):
            x = with_room(x)
        wanted = layers or self.shape.memory > 0  # what nobody reads again is not held while the next layers work
        states = [x] if wanted else []
        weights = []
        for number, block in enumerate(self.layers, start=1):
            last = selection if number == len(self.layers) else None
            x, seen = block(x, plan, self.embeddings.positions, last, source)
            if wanted:
                states.append(x)
            if seen is not None:
                weights.append(seen)
        if self.norm is not None:
            x = self.norm(x)
            if wanted:
                states[-1] = x
        asking = 0 if second is None else len(second.index)
        behind = asking if asking or selection is not None else len(x) - count
        return Run(
            first=x[: len(x) - behind] if behind else x,
            second=x[len(x) - asking :] if asking else None,
            states=tuple(each[:count] if len(each) > count else each for each in states),
            second_states=tuple(each[len(each) - asking :] for each in states) if asking and layers else (),
            weights=tuple(weights),
            second_weights=tuple(plan.seen),
            cache=_cache(plan, inputs) if keep else None,
        )

    def _plan(self, inputs: Inputs, attentions: bool, second: Selection | None, keep: bool) -> AttentionPlan:
        return plan_attention(
            inputs.layout,
            inputs.visibility or self.visibility,
            inputs.slots,
            inputs.positions,
            inputs.segments,
            dropout=self.shape.attention_dropout if self.training else 0.0,
            capture=attentions,
            past=inputs.past,
            second=second,
            keep=keep,
            products=inputs.products,
            reach=self.shape.reach if self.shape.local else None,
        )

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(cast(Block, layer) for layer in self.layers)

    def _embed(self, inputs: Inputs, second: Selection | None) -> Tensor:
        """(N,D), or (N+P,D): a second stream begins with one vector, whatever it is asked for."""
        layout, tasks = inputs.layout, inputs.slots.get("task")
        x: Tensor = self.embeddings(
            layout.pack(inputs.ids),
            layout.pack(inputs.segments),
            layout.pack(inputs.positions),
            None if tasks is None else layout.pack(tasks),
        )
        if second is None or self.embeddings.start is None:
            return x
        start = self.embeddings.start.to(x.dtype).expand(len(second.index), -1)
        return torch.cat((x, dropout(start, self.shape.dropout if self.training else 0.0)))


def _cache(plan: AttentionPlan, inputs: Inputs) -> Cache:
    """All that was read so far, as keys and values."""
    assert plan.kept is not None
    layout, device = inputs.layout, inputs.ids.device
    length = lengths_of(layout, device)
    facts = {"positions": inputs.positions, "segments": inputs.segments, **inputs.slots}
    now = {name: from_the_right(layout, layout.pack(fact)) for name, fact in facts.items()}
    if isinstance(plan.past, Cache):
        old = {"positions": plan.past.positions, "segments": plan.past.segments, **plan.past.slots}
        now = {name: joined(old[name], plan.past.length, fact, length) for name, fact in now.items()}
        length = length + plan.past.length
    return Cache(
        keys=tuple(keys for keys, _ in plan.kept),
        values=tuple(values for _, values in plan.kept),
        length=length,
        positions=now.pop("positions"),
        segments=now.pop("segments"),
        slots=now,
    )
