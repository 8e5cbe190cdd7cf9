"""Floating-point operations of training, for one token: what a machine's measured peak is compared with."""

from __future__ import annotations

from maskery.model.config import Shape


def training_flops(shape: Shape, length: float, targets: float) -> float:
    """Operations a real position in rows of `length`, when the share `targets` of positions is asked for a token.

    A product with a matrix of n numbers costs 2n forward and 4n backward. Attention multiplies with every key twice.
    Norms, activations and softmax are left out: they are no matrix products, and the peak is that of products.
    """
    layer = 4 * shape.width**2 + 2 * shape.width * shape.feedforward
    projection = shape.embedding * shape.width if shape.embedding != shape.width else 0
    head = shape.vocabulary * shape.embedding + shape.width * shape.embedding
    matrices = shape.layers * layer + projection + targets * head
    return 6 * matrices + 12 * shape.layers * length * shape.width
