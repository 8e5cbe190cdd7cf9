"""Products of float32 matrices in training, by the library that is the quickest on this processor.

torch hands them to MKL. MKL has its AVX-512 code for Intel's processors alone; AMD's get the AVX2 code, which is all
that they could do up to Zen 4. From Zen 5 on they multiply sixteen numbers at a time, and MKL uses half of that: 240
GFLOP/s on two cores, forwards and back. oneDNN, which torch has as well, asks the processor what it can: 480 to 550
forwards and for the gradient of the input, 350 to 490 for that of the weight. Both round in float32.

Shapes: N packed slots, D inputs, E outputs.
"""

from __future__ import annotations

import platform
import re
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

SLOTS = 64
"""oneDNN compiles code for each new shape, so nothing but multiples of so many slots is multiplied by it."""
LAID_OUT = 1024
"""From so many slots on it pays to lay the weight out first, in the order in which it is read."""
_ZEN_5 = 26


@cache
def by_onednn() -> bool:
    """Whether training multiplies float32 by oneDNN here. A fact of the processor, never a measurement: a run that goes
    on has to round as it did."""
    torch_has_both = bool(
        torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    )
    return torch_has_both and torch.backends.cpu.get_cpu_capability() == "AVX512" and amd_family(_told()) >= _ZEN_5


def library() -> str:
    """Which it is, by name."""
    return "oneDNN" if by_onednn() else "as torch chooses"


def _told() -> str:
    """What the system says of its processor: Linux in a file, Windows in one line."""
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else platform.processor()


def amd_family(told: str) -> int:
    """The family of one of AMD's processors; 0: of another maker, or not told."""
    found = re.search(r"family\s*:?\s*(\d+)", told, re.IGNORECASE)
    return int(found.group(1)) if found is not None and "AuthenticAMD" in told else 0


def times(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """(N,D), (E,D) -> (N,E) x W' + b; the matrices may lie in memory either way."""
    if len(x) >= LAID_OUT and weight.is_contiguous():
        weight = torch.ops.mkldnn._reorder_linear_weight(weight, LAID_OUT)
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return found


def filled(x: Tensor) -> Tensor:
    """(N,D) -> with zeros behind it up to a multiple of SLOTS."""
    missing = -len(x) % SLOTS
    if not missing:
        return x.contiguous()
    wider = x.new_empty(len(x) + missing, x.shape[1])
    wider[: len(x)].copy_(x)
    wider[len(x) :].zero_()
    return wider


class Product(torch.autograd.Function):
    """x W' + b by oneDNN, forwards and both ways back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        wide = filled(x)
        ctx.save_for_backward(wide, weight)
        ctx.count = len(x)
        return times(wide, weight, bias)[: ctx.count]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        wide = filled(gradients[0])
        wants_x, wants_weight, wants_bias = ctx.needs_input_grad
        return (
            times(wide, weight.t())[: ctx.count] if wants_x else None,
            times(wide.t(), x.t()) if wants_weight else None,
            gradients[0].sum(0) if wants_bias else None,
        )
