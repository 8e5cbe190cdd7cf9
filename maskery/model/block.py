"""One layer of the Transformer.

post-norm (BERT):   x = norm(x + attention(x));   x = norm(x + feedforward(x))
pre-norm (GPT-2):   x = x + attention(norm(x));   x = x + feedforward(norm(x))

A layer of a decoder looks at the rows that it writes about between the two, in the same way.

A layer has two halves, attention and feed-forward, each with its norm. A half that several layers share belongs to the
first of them; the others read it there, so that it is counted, saved and trained once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maskery.batches import Memory
from maskery.model.attention import Attention
from maskery.model.config import Shape
from maskery.model.dropout import add_dropout
from maskery.model.linear import Linear, Norm
from maskery.model.plan import AttentionPlan
from maskery.model.positions import PositionScheme
from maskery.model.selection import Selection
from maskery.model.source import Source

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
}


def gated(name: str) -> Callable[[Tensor], Tensor]:
    """(N,2F) -> (N,F): the activation of the first half times the second."""
    activation = ACTIVATIONS[name]

    def both(x: Tensor) -> Tensor:
        inner, gate = x.chunk(2, -1)
        return activation(inner) * gate

    return both


class Block(nn.Module):
    def __init__(self, shape: Shape, layer: int, lender: Block | None = None, *, across: bool = False) -> None:
        """`lender` is the first layer of the group, if this is a later one of a group that shares weights; `across`:
        the layer looks at other rows as well."""
        super().__init__()
        self.layer = layer
        self.before = shape.norm == "pre"
        self.local = shape.is_local(layer)
        self.dropout = shape.dropout
        self.activation = gated(shape.activation) if shape.gated else ACTIVATIONS[shape.activation]
        mixes = lender if lender is not None and shape.share in ("all", "attention") else None
        turns = lender if lender is not None and shape.share in ("all", "feedforward") else None
        # In a tuple, because a module held as an attribute would be counted as this layer's own.
        self._halves = (mixes, turns)
        if mixes is None:
            self.attention = Attention(shape)
            normed = layer > 0 or shape.first_norm
            self.attention_norm = Norm(shape.width, shape.eps, bias=shape.norm_bias) if normed else None
        self.across = across
        if across and mixes is None:
            self.source = Attention(shape)
            self.source_norm = Norm(shape.width, shape.eps, bias=shape.norm_bias)
        if turns is None:
            bias, inner = shape.feedforward_bias, shape.feedforward
            self.up = Linear(shape.width, 2 * inner if shape.gated else inner, bias=bias)
            self.down = Linear(inner, shape.width, bias=bias)
            self.feedforward_norm = Norm(shape.width, shape.eps, bias=shape.norm_bias)

    @property
    def lenders(self) -> tuple[Block, ...]:
        """The layers whose weights this one uses."""
        return tuple(half for half in self._halves if half is not None)

    @property
    def halves(self) -> tuple[Block, Block]:
        """The layers that own what this one mixes and turns with: itself, or its lenders."""
        mixes, turns = self._halves
        return mixes or self, turns or self

    def normed(self, x: Tensor) -> Tensor:
        """By the norm of attention, which the first layer may not have."""
        return x if self.attention_norm is None else self.attention_norm(x)

    def forward(
        self,
        x: Tensor,
        plan: AttentionPlan,
        scheme: PositionScheme,
        selection: Selection | None = None,
        source: Source | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """(N,D) -> (N,D), or (M,D) where only selected slots are asked for; and captured weights.

        A second stream lies behind the slots of the first and goes the same way."""
        p = self.dropout if self.training else 0.0
        mixing, turning = self.halves
        plan = plan.of_layer(self.local)
        read = mixing.normed(x) if self.before else x
        before = self._remembered(plan, mixing)
        mixed, weights = mixing.attention(read, plan, scheme, self.layer, selection, before)
        if selection is not None:
            first = x.index_select(0, selection.index)
            x = torch.cat((first, x[plan.layout.count :])) if plan.second else first
        slots = plan.layout.count if selection is None and not plan.second else None
        x = add_dropout(x, mixed, p, slots)
        if not self.before:
            x = mixing.normed(x)
        if source is not None:
            x = self._look(x, mixing, plan, source, p)
        read = turning.feedforward_norm(x) if self.before else x
        quick = plan.quick(self.layer)
        turned = turning.down(self.activation(turning.up(read))) if quick is None else quick.down(quick.up(read))
        x = add_dropout(x, turned, p, slots)
        return (x if self.before else turning.feedforward_norm(x)), weights

    def _remembered(self, plan: AttentionPlan, mixing: Block) -> Tensor | None:
        """(B,M,D) what the layer was given for the rows before, read as it reads these."""
        if not isinstance(plan.past, Memory):
            return None
        states = plan.past.states[self.layer].to(mixing.attention.inputs.dtype)
        return mixing.normed(states) if self.before else states

    def _look(self, x: Tensor, mixing: Block, plan: AttentionPlan, source: Source, p: float) -> Tensor:
        read = mixing.source_norm(x) if self.before else x
        looked, weights = source.look(read, mixing.source, self.layer, plan.layout, plan.dropout, plan.capture)
        if weights is not None:
            source.captured.append(weights)
        x = add_dropout(x, looked, p)
        return x if self.before else mixing.source_norm(x)
