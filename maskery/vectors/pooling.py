"""One vector a text from the packed states of its slots.

    first, last     the first or last slot              pooler      the first slot through the pooler
    mean, max       over the slots, marks counted       sqrt_mean   the sum over the root of their number
    weighted        slot n of the text counts n         attention   by a learned query
    first_last      the mean over the slots of the first layer's states and the last one's, as BERT-flow and SimCSE have
                    it: the first layer's, not the embeddings'
    last_two        the same of the last two layers

A prompt that is not pooled is left out at the front: the first slot is then the first behind it (but the pooler's is
that of the row, which it was trained with); positions count from the first slot all the same.
Shapes: B rows, N packed slots, b rows of t slots of one length, D width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from maskery.errors import ArgumentError, UnknownName
from maskery.model.config import Shape
from maskery.model.transformer import Hidden
from maskery.tasks.pools import AttentionPool, first_of, last_of, over_slots
from maskery.vectors.settings import POOLINGS

Reduce = Callable[[Tensor, int], Tensor]
"""(b,t,D) and how many slots of the front are left out -> (b,D)"""


def _first(x: Tensor, skip: int) -> Tensor:
    return x[:, skip]


def _mean(x: Tensor, skip: int) -> Tensor:
    return x[:, skip:].mean(1)


def _sqrt_mean(x: Tensor, skip: int) -> Tensor:
    return x[:, skip:].sum(1) / math.sqrt(x.shape[1] - skip)


def _max(x: Tensor, skip: int) -> Tensor:
    return x[:, skip:].amax(1)


def _weighted(x: Tensor, skip: int) -> Tensor:
    weight = torch.arange(1, x.shape[1] + 1, device=x.device, dtype=x.dtype)[skip:]
    return torch.einsum("t,btd->bd", weight / weight.sum(), x[:, skip:])


REDUCE: Mapping[str, Reduce] = {
    "first": _first,
    "mean": _mean,
    "sqrt_mean": _sqrt_mean,
    "max": _max,
    "weighted": _weighted,
}
LAYERS: Mapping[str, Callable[[int], tuple[int, int]]] = {
    "first_last": lambda layers: (1, layers),
    "last_two": lambda layers: (layers - 1, layers),
}
"""Which two layers' states are averaged; 0 are the embeddings."""


def _over(hidden: Hidden, states: Tensor, reduce: Reduce, skip: int) -> Tensor:
    return over_slots(hidden, states, lambda x: reduce(x, min(skip, x.shape[1] - 1)))


class Attention(AttentionPool):
    """Before it has learned anything it is the mean."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        nn.init.zeros_(self.query)

    def over(self, x: Tensor, skip: int) -> Tensor:
        return self._attend(x[:, skip:])


class Pooling(nn.Module):
    """`Hidden` -> (B,width), the poolings side by side."""

    def __init__(self, names: tuple[str, ...], shape: Shape, *, has_pooler: bool) -> None:
        super().__init__()
        for name in names:
            if name not in POOLINGS:
                raise UnknownName("pooling", name, POOLINGS)
        if "pooler" in names and not has_pooler:
            raise ArgumentError("the model has no pooler", repair="pool the first slot: pool = first")
        if "last_two" in names and shape.layers < 2:
            raise ArgumentError("the model has one layer, and last_two needs two", repair="pool = mean")
        self.names, self.layers = names, shape.layers
        self.width = len(names) * shape.width
        self.attention: Attention | None = Attention(shape) if "attention" in names else None

    @property
    def needs_layers(self) -> bool:
        return any(name in LAYERS for name in self.names)

    @property
    def needs_one_slot(self) -> bool:
        """Whether the last layer's states of the first slots are all that is looked at, where no slot is skipped."""
        return all(name in ("first", "pooler") for name in self.names)

    def forward(self, hidden: Hidden, skip: int = 0) -> Tensor:
        """`skip`: how many slots of the front are not pooled."""
        parts = [self._one(name, hidden, skip) for name in self.names]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def _one(self, name: str, hidden: Hidden, skip: int) -> Tensor:
        if name == "first" and not skip:
            return first_of(hidden, hidden.packed)
        if name == "last":
            return last_of(hidden, hidden.packed)
        if name == "pooler":
            assert hidden.pooled is not None
            return hidden.pooled
        if name == "attention":
            assert self.attention is not None
            return _over(hidden, hidden.packed, self.attention.over, skip)
        if name in LAYERS:
            one, other = (hidden.packed_layers[layer] for layer in LAYERS[name](self.layers))
            return _over(hidden, (one + other) / 2, _mean, skip)
        return _over(hidden, hidden.packed, REDUCE[name], skip)
