"""Floating-point operations of a network for one real position: what a machine's measured peak is compared with.

A product with a matrix of n numbers costs 2n; attention multiplies with every key twice, and twice more where positions
are told as vectors of the distance. Norms, activations and softmax are left out: they are no matrix products, and the
peak is that of products. Training costs three times the forward pass. A layer whose weights others share costs as much
as any.
"""

from __future__ import annotations

from maskery.model.config import Shape

_VECTORS_OF_DISTANCE = ("nezha", "shaw")
"""Positions that add a vector to every key and every value of a query."""


def layer_flops(shape: Shape, length: float, computed: float = 1.0) -> float:
    """One layer in rows of `length` slots, of which the share `computed` asks and all are read as keys and values."""
    read = 4 * shape.width**2
    met = 8 if shape.positions in _VECTORS_OF_DISTANCE else 4
    asking = 4 * shape.width**2 + 4 * shape.width * shape.feedforward + met * length * shape.width
    return read + computed * asking


def forward_flops(shape: Shape, length: float, asked: float = 0.0, tokens: float | None = None) -> float:
    """All layers, and a token head for the share `tokens` of the positions; `asked` is the share that some question
    reads, by default the same, and 0 means that every state is read.

    The last layer computes only what is asked for, where that is at most half (see `selection`).
    """
    last = asked if 0 < asked <= 0.5 else 1.0
    layers = (shape.layers - 1) * layer_flops(shape, length) + layer_flops(shape, length, last)
    projection = 2 * shape.embedding * shape.width if shape.embedding != shape.width else 0
    head = 2 * shape.embedding * (shape.vocabulary + shape.width)
    return layers + projection + (asked if tokens is None else tokens) * head
