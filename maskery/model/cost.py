"""Floating-point operations of a network for one real position: what a machine's measured peak is compared with.

A product with a matrix of n numbers costs 2n; attention multiplies with every key twice. Norms, activations and
softmax are left out: they are no matrix products, and the peak is that of products. Training costs three times the
forward pass.
"""

from __future__ import annotations

from maskery.model.config import Shape


def layer_flops(shape: Shape, length: float, computed: float = 1.0) -> float:
    """One layer in rows of `length` slots, of which the share `computed` asks and all are read as keys and values."""
    read = 4 * shape.width**2
    asking = 4 * shape.width**2 + 4 * shape.width * shape.feedforward + 4 * length * shape.width
    return read + computed * asking


def forward_flops(shape: Shape, length: float, asked: float = 0.0) -> float:
    """All layers, and a token head for the share `asked` of the positions; 0 means that every state is read.

    The last layer computes only what is asked for, where that is at most half (see `selection`).
    """
    last = asked if 0 < asked <= 0.5 else 1.0
    layers = (shape.layers - 1) * layer_flops(shape, length) + layer_flops(shape, length, last)
    projection = 2 * shape.embedding * shape.width if shape.embedding != shape.width else 0
    head = 2 * shape.embedding * (shape.vocabulary + shape.width)
    return layers + projection + asked * head
