"""What is read off an encoder: one vector for each row, from the packed states, without padding.

    pooler      the pooler's state                        first, last     the first or last slot's
    mean, max   over the row's slots, marks counted       firsts          the first slot of every layer, side by side
    cls_last_four          the first slot of the last four layers, summed with learned weights
    cls_last_four_concat   the first slot of the last four layers, side by side
    mean_last_four         all slots of the last four layers: layers summed with learned weights, then the mean
    mix         all layers and the embeddings, with learned weights and a scale (ELMo), mean over slots or first slot
    attention   over the row's slots, by a learned query

Rows of one length lie beside each other, so whatever goes over slots is one view and one operation a length. A row
without slots gives zeros. Learned weights of layers start equal, and the scale at 1: their parameters are called biases
because they start at 0.

Shapes: B rows, N packed slots, b rows of t slots of one length, D width, L layers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from maskery.errors import InputError, UnknownName
from maskery.model.config import Shape
from maskery.model.layout import Layout
from maskery.model.transformer import Hidden

Slots = Literal["first", "mean"]


def first_of(hidden: Hidden, states: Tensor) -> Tensor:
    """(N,D) -> (B,D) the states of the first slots."""
    return _at(hidden, states, hidden.layout.first_places())


def last_of(hidden: Hidden, states: Tensor) -> Tensor:
    return _at(hidden, states, hidden.layout.last_places())


def _at(hidden: Hidden, states: Tensor, places: Tensor) -> Tensor:
    layout = hidden.layout
    if not layout.count:
        return states.new_zeros(layout.rows, states.shape[1])
    if hidden.selection is not None and states is hidden.packed:
        places = hidden.selection.place.index_select(0, places)
    if not layout.empty:
        return states.index_select(0, places)
    filled = layout.order[layout.empty :]
    found = states.index_select(0, places.index_select(0, filled))
    return states.new_zeros(layout.rows, states.shape[1]).index_copy(0, filled, found)


def over_slots(hidden: Hidden, states: Tensor, reduce: Callable[[Tensor], Tensor]) -> Tensor:
    """(N,D) -> (B,D) by a function (b,t,D) -> (b,D) of rows of one length."""
    layout = hidden.layout
    assert hidden.selection is None or states is not hidden.packed, "all slots are needed"
    parts = [reduce(states[g.start : g.stop].view(g.rows, g.length, states.shape[1])) for g in layout.groups]
    if not parts:
        return states.new_zeros(layout.rows, states.shape[1])
    packed = torch.cat(parts)
    return packed.new_zeros(layout.rows, packed.shape[1]).index_copy(0, layout.order[layout.empty :], packed)


def mean_of(hidden: Hidden, states: Tensor) -> Tensor:
    return over_slots(hidden, states, lambda x: x.mean(1))


class Pool(nn.Module):
    """`Hidden` -> (B,width)."""

    needs_pooler: ClassVar[bool] = False
    needs_layers: ClassVar[bool] = False
    """Whether the network has to give the states of all layers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def reads(self, layout: Layout) -> Tensor | None:
        """The flat slots whose last states are looked at, so that the last layer computes no other; None: all."""
        return None

    def forward(self, hidden: Hidden) -> Tensor:
        raise AssertionError("every pool has its own")


def _flat(layout: Layout, places: Tensor) -> Tensor:
    if not layout.count:
        return places.new_empty(0)
    return places if layout.source is None else layout.source.index_select(0, places)


class Pooler(Pool):
    needs_pooler = True

    def reads(self, layout: Layout) -> Tensor | None:
        return layout.order.new_empty(0)

    def forward(self, hidden: Hidden) -> Tensor:
        if hidden.pooled is None:
            raise InputError("this model has no pooler", repair='read the first slot: read.pool = "first"')
        return hidden.pooled


class First(Pool):
    def reads(self, layout: Layout) -> Tensor | None:
        return _flat(layout, layout.first_places())

    def forward(self, hidden: Hidden) -> Tensor:
        return first_of(hidden, hidden.packed)


class Last(Pool):
    def reads(self, layout: Layout) -> Tensor | None:
        return _flat(layout, layout.last_places())

    def forward(self, hidden: Hidden) -> Tensor:
        return last_of(hidden, hidden.packed)


class Mean(Pool):
    def forward(self, hidden: Hidden) -> Tensor:
        return mean_of(hidden, hidden.packed)


class Max(Pool):
    def forward(self, hidden: Hidden) -> Tensor:
        return over_slots(hidden, hidden.packed, lambda x: x.amax(1))


def _layers(hidden: Hidden, many: int) -> tuple[Tensor, ...]:
    """The states of the last `many` layers, the embeddings being the lowest."""
    assert len(hidden.packed_layers) >= many, "the network was not asked for its layers"
    return hidden.packed_layers[len(hidden.packed_layers) - many :]


class Firsts(Pool):
    needs_layers = True

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape.layers * shape.width)
        self.layers = shape.layers

    def forward(self, hidden: Hidden) -> Tensor:
        return torch.cat([first_of(hidden, states) for states in _layers(hidden, self.layers)], 1)


class FirstsOfLastFour(Pool):
    needs_layers = True

    def __init__(self, shape: Shape) -> None:
        self.layers = min(4, shape.layers)
        super().__init__(self.layers * shape.width)

    def forward(self, hidden: Hidden) -> Tensor:
        return torch.cat([first_of(hidden, states) for states in _layers(hidden, self.layers)], 1)


class LastFour(Pool):
    needs_layers = True

    def __init__(self, shape: Shape, of: Slots = "first") -> None:
        super().__init__(shape.width)
        self.layer_bias = nn.Parameter(torch.empty(min(4, shape.layers)))
        self.pool = {"first": first_of, "mean": mean_of}[of]

    @property
    def weights(self) -> Tensor:
        """Of the layers, the lowest first; their sum is 1."""
        return torch.softmax(self.layer_bias, 0)

    def forward(self, hidden: Hidden) -> Tensor:
        # Weighing the pooled layers is weighing, then pooling: both are sums.
        pooled = [self.pool(hidden, states) for states in _layers(hidden, len(self.layer_bias))]
        return torch.einsum("l,lbd->bd", self.weights, torch.stack(pooled))


class Mix(Pool):
    needs_layers = True

    def __init__(self, shape: Shape, of: Slots = "mean") -> None:
        super().__init__(shape.width)
        self.layer_bias = nn.Parameter(torch.empty(shape.layers + 1))
        self.scale_bias = nn.Parameter(torch.empty(1))
        self.pool = {"first": first_of, "mean": mean_of}[of]

    @property
    def weights(self) -> Tensor:
        """Of the embeddings and the layers; their sum is 1."""
        return torch.softmax(self.layer_bias, 0)

    @property
    def scale(self) -> Tensor:
        return 1 + self.scale_bias

    def forward(self, hidden: Hidden) -> Tensor:
        # Mixing the pooled layers is mixing, then pooling: both are sums.
        pooled = [self.pool(hidden, states) for states in _layers(hidden, len(self.layer_bias))]
        return self.scale * torch.einsum("l,lbd->bd", self.weights, torch.stack(pooled))


class AttentionPool(Pool):
    def __init__(self, shape: Shape) -> None:
        super().__init__(shape.width)
        self.query = nn.Parameter(torch.empty(shape.width))

    def forward(self, hidden: Hidden) -> Tensor:
        return over_slots(hidden, hidden.packed, self._attend)

    def _attend(self, x: Tensor) -> Tensor:
        weights = torch.softmax(torch.einsum("btd,d->bt", x, self.query) / math.sqrt(self.width), 1)
        return torch.einsum("bt,btd->bd", weights, x)


POOLS: dict[str, Callable[[Shape], Pool]] = {
    "pooler": lambda shape: Pooler(shape.width),
    "first": lambda shape: First(shape.width),
    "last": lambda shape: Last(shape.width),
    "mean": lambda shape: Mean(shape.width),
    "max": lambda shape: Max(shape.width),
    "firsts": Firsts,
    "cls_last_four": LastFour,
    "cls_last_four_concat": FirstsOfLastFour,
    "mean_last_four": lambda shape: LastFour(shape, "mean"),
    "mix": Mix,
    "attention": AttentionPool,
}


def pool_of(name: str, shape: Shape) -> Pool:
    """What is read, by its name; its numbers, if it has any, are not yet set."""
    if name not in POOLS:
        raise UnknownName("pooling", name, POOLS)
    return POOLS[name](shape)
