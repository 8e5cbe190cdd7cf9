"""Products of whole numbers: weights of eight bits with a step for each output, inputs with one for each slot.

The step of a slot is taken from the slot itself when it is read. So nothing has to be fitted on texts beforehand, an
outlier in one text costs no other text its digits, and a text's vector does not depend on what is read beside it. Sums
are exact in 32 bits; what is lost is in the rounding of both sides.

Shapes: N packed slots, I inputs, O outputs.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from maskery.model.block import ACTIVATIONS
from maskery.model.products import ROWS

LEAST = 1e-30
"""A step of zero would divide nothing by nothing."""


@cache
def levels() -> int:
    """How far whole inputs go to each side: 127, or 63 where the processor adds two products in 16 bits, which 127
    would overflow; 0 where it has no such product."""
    for most in (127, 63):
        whole = torch.full((8, 64), 2 * most + 1, dtype=torch.uint8)
        weight = torch.full((16, 64), 127, dtype=torch.int8)
        try:
            found = _multiply(whole, _laid_out(weight), torch.ones(16), most + 1)
        except (RuntimeError, AttributeError):
            return 0
        if bool((found == 64 * 127 * most).all()):
            return most
    return 0


def why_not() -> str | None:
    """The reason why this processor cannot; None: it can."""
    return None if levels() else "this processor, or this build of torch, has no products of eight bits"


class BytesProduct:
    """x W' + b and the activation, with the product in whole numbers."""

    def __init__(self, weight: Tensor, bias: Tensor | None, activation: str) -> None:
        self.outputs = len(weight)
        self.levels = levels()
        self.step = (weight.abs().amax(1) / 127).clamp_min(LEAST)
        self.weight = _laid_out((weight / self.step[:, None]).round().to(torch.int8))
        self.bias = weight.new_zeros(self.outputs) if bias is None else bias
        self.activation = ACTIVATIONS.get(activation)
        self.middle = self.levels + 1.5
        """Of the whole numbers, and a half more: turning into bytes cuts off, and so rounds to the nearest."""

    def __call__(self, x: Tensor) -> Tensor:
        if not len(x):
            return x.new_empty(0, self.outputs)
        # Each of these is one pass of vector instructions; aminmax of a dimension and addcmul are not.
        largest = torch.maximum(x.amax(1, keepdim=True), x.amin(1, keepdim=True).neg_()).clamp_min_(LEAST)
        whole = torch.mul(x, self.levels / largest).add_(self.middle).to(torch.uint8)
        found = _multiply(whole, self.weight, self.step, self.levels + 1)
        found.mul_(largest.div_(self.levels)).add_(self.bias)
        return found if self.activation is None else self.activation(found)


def _laid_out(weight: Tensor) -> Tensor:
    """(O,I) int8, as the processor's kernels read it."""
    found: Tensor = torch.ops.onednn.qlinear_prepack(weight, [ROWS, weight.shape[1]])
    return found


def _multiply(whole: Tensor, weight: Tensor, step: Tensor, zero: int) -> Tensor:
    """(N,I) bytes around `zero` and (O,I) -> (N,O): sums of whole numbers by the step of each output."""
    none = torch.zeros(len(step), dtype=torch.int32)
    found: Tensor = torch.ops.onednn.qlinear_pointwise(
        whole, 1.0, zero, weight, step, none, None, 1.0, 0, torch.float32, "none", [], ""
    )
    return found
