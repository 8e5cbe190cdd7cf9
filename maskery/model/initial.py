"""Published initial weights: matrices from a truncated normal (cut at two standard deviations), norms one, biases zero.

Each tensor draws from a key of its own name, so adding a head or a layer changes no other tensor. Learned positions may
have a deviation of their own, and the last product of each half layer one that is smaller by the square root of their
number (GPT-2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import nn

from maskery import randomness
from maskery.model.config import Shape

_ENDS = (".output.weight", ".down.weight")
"""The last products of the halves of a layer: what they give is added to what came in."""


def deviations(module: nn.Module, shape: Shape) -> dict[str, float]:
    """The standard deviation of each tensor of `module` that has not the shape's own."""
    found: dict[str, float] = {}
    for name, _ in module.named_parameters():
        if shape.position_std and name.endswith("positions.table"):
            found[name] = shape.position_std
        if shape.residual_init and name.endswith(_ENDS):
            halves = 3 * shape.decoder if ".decoder." in f".{name}" else 2 * shape.layers
            found[name] = shape.init_std / math.sqrt(halves)
    return found


def initialise(
    module: nn.Module, std: float, seed: int, prefix: str = "", own: Mapping[str, float] | None = None
) -> None:
    """Fill every parameter of `module` in place; `own` are the deviations of those that differ."""
    deviation = own or {}
    with torch.no_grad():
        for name, parameter in module.named_parameters(prefix=prefix):
            last = name.rpartition(".")[2]
            if "norm" in name and last == "weight":
                parameter.fill_(1.0)
            elif last.endswith("bias"):
                parameter.zero_()
            else:
                draws = randomness.torch_generator(randomness.key(seed, f"init {name}"))
                wide = deviation.get(name, std)
                nn.init.trunc_normal_(parameter, 0.0, wide, -2 * wide, 2 * wide, generator=draws)
