"""The linear products of a network that is only used, laid out for speed. They cannot be trained.

A network multiplies with its own weights unless it is handed these with what it reads (`Inputs.products`): nothing of
the network changes, and whoever trains it never meets them. They are made from the weights as they are at that moment.

float32  weights in the order in which the processor's kernels read them: oneDNN's, with bias and activation inside of
         the product, where there is AVX-512; elsewhere MKL's, which were a tenth quicker with AVX2
int8     (maskery.model.int8) a quarter of the bytes, sums of whole numbers

Shapes: N packed slots, D width, F width of the feed-forward half.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from maskery.model.config import Shape
    from maskery.model.stack import Stack

Product = Callable[[Tensor], Tensor]
"""(N,inputs) -> (N,outputs)"""
Make = Callable[[Tensor, Tensor | None, str], Product]
"""Weight (outputs,inputs), bias, the name of the activation or "none" -> a product."""


@dataclass(frozen=True)
class LayerProducts:
    inputs: Product
    """(N,D) -> (N,3*D): queries, keys and values side by side."""
    output: Product
    """(N,D) -> (N,D): what attention has mixed."""
    up: Product
    """(N,D) -> (N,F), the activation included."""
    down: Product
    """(N,F) -> (N,D)"""


Products = tuple[LayerProducts, ...]
"""One a layer."""

ROWS = 1024
"""Slots for which the layout of weights is chosen; any number of them can be multiplied."""
BATCH = 4096
"""Slots of a usual batch: for just this number MKL's weights are laid out; any other is multiplied as in training."""
POST = {"none": ("none", ""), "gelu": ("gelu", "none"), "gelu_tanh": ("gelu", "tanh"), "relu": ("relu", "")}
"""Activation -> the kernels' name of it, and of its formula."""


def why_not(network: Stack) -> str | None:
    """The reason why a network has to multiply with its own weights; None: there is none."""
    weight = network.embeddings.tokens
    if weight.device.type != "cpu":
        return f"the model is on {weight.device}, and these products are a CPU's"
    if weight.dtype != torch.float32:
        return f"the weights are {str(weight.dtype).removeprefix('torch.')}, and these products begin with float32"
    return None if has_kernels() else "this build of torch has no oneDNN"


def has_kernels() -> bool:
    return bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]


def products_of(network: Stack, make: Make) -> Products:
    """The products of all layers; those of layers that share weights are made once."""
    known: dict[int, Product] = {}

    def made(weight: Tensor, bias: Tensor | None, activation: str) -> Product:
        name = weight.data_ptr()
        if name not in known:
            known[name] = make(weight.detach(), None if bias is None else bias.detach(), activation)
        return known[name]

    layers = []
    for block in network.blocks:
        mixing, turning = block.halves
        attention = mixing.attention
        width = attention.inputs.shape[2]
        bias = None if attention.inputs_bias is None else attention.inputs_bias.reshape(-1)
        layers.append(
            LayerProducts(
                inputs=made(attention.inputs.reshape(-1, width), bias, "none"),
                output=made(attention.output.weight, attention.output.bias, "none"),
                up=_up(made, turning.up.weight, turning.up.bias, network.shape),
                down=made(turning.down.weight, turning.down.bias, "none"),
            )
        )
    return tuple(layers)


def _up(made: Make, weight: Tensor, bias: Tensor | None, shape: Shape) -> Product:
    """With the activation; of a gated layer it is of one half, and so no part of the product."""
    if not shape.gated:
        return made(weight, bias, shape.activation)
    product, activation = made(weight, bias, "none"), IN_PLACE[shape.activation]

    def up(x: Tensor) -> Tensor:
        inner, gate = product(x).chunk(2, -1)
        return activation(inner.contiguous()).mul_(gate)

    return up


class FloatProduct:
    """x W' + b, and what the activation makes of it, in one pass over the result."""

    def __init__(self, weight: Tensor, bias: Tensor | None, activation: str) -> None:
        self.outputs = len(weight)
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight, ROWS)
        self.bias = bias
        self.post, self.formula = POST[activation]

    def __call__(self, x: Tensor) -> Tensor:
        if not len(x):
            return x.new_empty(0, self.outputs)
        found: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, self.post, [], self.formula)
        return found


class PackedProduct:
    """The same by MKL, the activation in a pass of its own over what it brought."""

    def __init__(self, weight: Tensor, bias: Tensor | None, activation: str) -> None:
        self.outputs = len(weight)
        self.weight, self.bias = weight.contiguous(), bias
        self.packed = torch.ops.mkl._mkl_reorder_linear_weight(self.weight, BATCH)
        self.activation = IN_PLACE[activation]

    def __call__(self, x: Tensor) -> Tensor:
        if not len(x):
            return x.new_empty(0, self.outputs)
        found: Tensor = torch.ops.mkl._mkl_linear(x, self.packed, self.weight, self.bias, BATCH)
        return self.activation(found)


IN_PLACE: dict[str, Product] = {
    "none": lambda x: x,
    "gelu": torch.ops.aten.gelu_,
    "gelu_tanh": partial(torch.ops.aten.gelu_, approximate="tanh"),
    "relu": torch.relu_,
}


def float_product() -> Make:
    """What is the quickest on this processor."""
    packs: bool = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
    return PackedProduct if packs and torch.backends.cpu.get_cpu_capability() == "AVX2" else FloatProduct
