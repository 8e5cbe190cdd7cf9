"""What a model is made of: parameters by part, and the arithmetic of its embedding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from maskery.model.config import Shape
from maskery.model.stack import Stack
from maskery.model.transformer import Network


def count(parameters: Iterable[nn.Parameter]) -> int:
    """Distinct numbers: a shared parameter counts once."""
    return sum(each.numel() for each in {id(each): each for each in parameters}.values())


def parameters_by_part(
    network: Network, heads: Mapping[str, nn.Module], generator: nn.Module | None = None
) -> dict[str, int]:
    """Encoder = embeddings and layers; decoder and generator = what they add to it; total = distinct parameters."""
    decoder = count(network.decoder.parameters()) if network.decoder is not None else 0
    pooler = list(network.pooler.parameters()) if network.pooler is not None else []
    of_heads = [each for head in heads.values() for each in head.parameters()]
    own = [*network.parameters(), *of_heads]
    every = [*own, *(generator.parameters() if generator is not None else ())]
    return {
        "total": count(every),
        "encoder": count(network.parameters()) - count(pooler) - decoder,
        "decoder": decoder,
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


@dataclass(frozen=True, kw_only=True)
class Part:
    """Some of a network's own parameters; what it borrows is counted at the owner."""

    of: str
    """embeddings, layers, decoder, pooler or heads."""
    name: str
    each: int
    """Numbers in one of them."""
    held: int = 1
    """How many there are."""
    used: int = 1
    """How many layers use one."""

    @property
    def count(self) -> int:
        return self.each * self.held

    def plain(self) -> dict[str, Any]:
        return {"of": self.of, "name": self.name, "parameters": self.count, "held": self.held, "used": self.used}


_HALVES = {
    "attention": "attention",
    "attention_norm": "attention norm",
    "source": "attention to the source",
    "source_norm": "attention to the source norm",
    "up": "feed-forward",
    "down": "feed-forward",
    "feedforward_norm": "feed-forward norm",
}
"""The modules of a layer, and what they are called."""


def parts_of(network: Network, heads: Mapping[str, nn.Module]) -> list[Part]:
    """Everything of its own that a network and the heads on it have; together all parameters, each once."""
    parts = _stack(network, "embeddings", "layers")
    if network.decoder is not None:
        parts += _stack(network.decoder, "decoder", "decoder")
    if network.pooler is not None:
        parts.append(Part(of="pooler", name="pooler", each=count(network.pooler.parameters())))
    parts += [Part(of="heads", name=name, each=count(head.parameters())) for name, head in heads.items()]
    return parts


def _stack(stack: Stack, embeddings: str, layers: str) -> list[Part]:
    parts = [Part(of=embeddings, name=name, each=many) for name, many in _grouped(stack.embeddings).items()]
    parts += _layers(stack, layers)
    if stack.norm is not None:
        parts.append(Part(of=layers, name="last norm", each=count(stack.norm.parameters())))
    return parts


def _grouped(module: nn.Module) -> dict[str, int]:
    """Numbers below each name of a module's own."""
    found: dict[str, int] = {}
    for name, parameter in module.named_parameters():
        first = name.partition(".")[0]
        found[first] = found.get(first, 0) + parameter.numel()
    return found


def _layers(network: Stack, of: str) -> list[Part]:
    """Each half of a layer, by how many there are and how many layers use one."""
    sizes: dict[str, list[int]] = {name: [] for name in dict.fromkeys(_HALVES.values())}
    for block in network.layers:
        of_block: dict[str, int] = {}
        for module, many in _grouped(block).items():
            of_block[_HALVES[module]] = of_block.get(_HALVES[module], 0) + many
        for name, many in of_block.items():
            sizes[name].append(many)
    layers, shared = len(network.layers), network.shape.share != "none"
    return [
        # Without sharing, a part that one layer lacks is still no other layer's.
        Part(of=of, name=name, each=held[0], held=len(held), used=layers // len(held) if shared else 1)
        for name, held in sizes.items()
        if held
    ]
