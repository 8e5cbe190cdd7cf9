"""Published initial weights: matrices from a truncated normal (cut at two standard deviations), norms one, biases zero.

Each tensor draws from a key of its own name, so adding a head or a layer changes no other tensor.
"""

from __future__ import annotations

import torch
from torch import nn

from maskery import randomness


def initialise(module: nn.Module, std: float, seed: int, prefix: str = "") -> None:
    """Fill every parameter of `module` in place."""
    with torch.no_grad():
        for name, parameter in module.named_parameters(prefix=prefix):
            last = name.rpartition(".")[2]
            if "norm" in name and last == "weight":
                parameter.fill_(1.0)
            elif last.endswith("bias"):
                parameter.zero_()
            else:
                draws = randomness.torch_generator(randomness.key(seed, f"init {name}"))
                nn.init.trunc_normal_(parameter, 0.0, std, -2 * std, 2 * std, generator=draws)
