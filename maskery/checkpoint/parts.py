"""What a model costs: parameters by part, the arithmetic of its embedding, memory and operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from maskery.model.config import Shape
from maskery.model.cost import forward_flops
from maskery.model.transformer import Network


def count(parameters: Iterable[nn.Parameter]) -> int:
    """Distinct numbers: a shared parameter counts once."""
    return sum(each.numel() for each in {id(each): each for each in parameters}.values())


def parameters_by_part(
    network: Network, heads: Mapping[str, nn.Module], generator: nn.Module | None = None
) -> dict[str, int]:
    """Encoder = embeddings and layers; generator = what it adds to the rest; total = distinct parameters."""
    pooler = list(network.pooler.parameters()) if network.pooler is not None else []
    of_heads = [each for head in heads.values() for each in head.parameters()]
    own = [*network.parameters(), *of_heads]
    every = [*own, *(generator.parameters() if generator is not None else ())]
    return {
        "total": count(every),
        "encoder": count(network.parameters()) - count(pooler),
        "pooler": count(pooler),
        "heads": count(of_heads),
        "generator": count(every) - count(own),
    }


def embedding_arithmetic(shape: Shape) -> dict[str, Any]:
    """Word embedding and projection weight (no bias) against one matrix of the full width."""
    words = shape.vocabulary * shape.embedding
    projection = shape.embedding * shape.width if shape.embedding != shape.width else 0
    undivided = shape.vocabulary * shape.width
    total = words + projection
    line = f"{shape.vocabulary:,} x {shape.embedding:,}"
    if projection:
        line += f" + {shape.embedding:,} x {shape.width:,}"
    line += f" = {total:,}"
    if projection:
        line += f"; undivided {undivided:,}, difference {undivided - total:,}"
    return {"words": words, "projection": projection, "total": total, "undivided": undivided, "line": line}


def memory(total: int) -> dict[str, int]:
    """Bytes in float32: the weights; weights, gradients and the two averages of Adam. Activations come on top."""
    return {"weights_bytes": 4 * total, "training_bytes": 16 * total}


def operations(shape: Shape, length: int) -> dict[str, int]:
    """Multiplications and additions a token in rows of `length`, no head; training takes three times as many."""
    forward = round(forward_flops(shape, length))
    return {"length": length, "forward_per_token": forward, "training_per_token": 3 * forward}
