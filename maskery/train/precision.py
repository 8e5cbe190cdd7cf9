"""In which numbers the forward and the backward pass are computed. Weights, moments and losses are always float32.

bfloat16 has the range of float32 and a third of its digits; products of matrices run in it, sums of losses do not.
float16 has few exponents: small gradients vanish in it. So the loss is multiplied by a large number first, and that
number is lowered when a gradient overflows (the update is then redone) and raised again after many that did not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from maskery.errors import InputError

_DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
_HIGHEST, _LOWEST, _PATIENCE = 65536.0, 1.0, 2000


def bfloat16_hardware() -> bool:
    """Whether this CPU multiplies bfloat16 numbers itself; without that every product is a detour."""
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


@dataclass(frozen=True)
class Choice:
    precision: str
    reason: str


def choose(asked: str, device: torch.device) -> Choice:
    """What `training.precision` comes to on this machine, and why; what cannot work is refused."""
    if device.type == "cpu":
        return _on_cpu(asked)
    if asked != "auto":
        return Choice(asked, "as asked")
    if torch.cuda.is_bf16_supported(including_emulation=False):
        return Choice("bfloat16", "this GPU computes in it")
    return Choice("float16", "this GPU has no bfloat16 arithmetic; losses are scaled")


def _on_cpu(asked: str) -> Choice:
    if asked == "float16":
        raise InputError(
            "training.precision = float16 needs a GPU: on a CPU it is slow and overflows",
            repair="--set training.precision=auto, or float32",
        )
    if asked == "bfloat16":
        slow = "" if bfloat16_hardware() else "; warning: this CPU has no arithmetic for it, float32 is quicker"
        return Choice(asked, f"as asked{slow}")
    if asked == "float32":
        return Choice(asked, "as asked")
    if bfloat16_hardware():
        return Choice("bfloat16", "this CPU computes in it")
    return Choice("float32", "this CPU has no bfloat16 arithmetic")


def exactly(device: torch.device) -> AbstractContextManager[Any]:
    """Out of autocast: heads and losses that stand on a network's states are computed in float32 in any case."""
    return torch.autocast(device.type, enabled=False)


def of_tuning(asked: str, device: torch.device, say: Callable[[str], None]) -> Precision:
    """Of a training that begins with a model: on a CPU float32 unless another is asked for, so that a short training
    comes to the same on every processor."""
    if asked == "float16":
        raise InputError(
            "training.precision = float16 is for pretraining, which keeps the scale of its loss with the run",
            where="training.precision",
            repair="--set training.precision=bfloat16, or leave it out: float32",
        )
    if asked == "auto" and device.type == "cpu":
        if bfloat16_hardware():
            say("precision: float32; this CPU is quicker with --set training.precision=bfloat16")
        return Precision()
    chosen = choose(asked, device)
    if chosen.precision != "float32":
        say(f"precision: {chosen.precision} ({chosen.reason}); heads and losses in float32")
    return Precision(chosen.precision)


class Precision:
    """Autocast around the forward pass, and for float16 the number that its loss is multiplied by."""

    def __init__(self, name: str = "float32") -> None:
        self.name = name
        self.scale = _HIGHEST if name == "float16" else 1.0
        self.good = 0
        """Updates since the scale was last changed."""

    def autocast(self, device: torch.device) -> AbstractContextManager[Any]:
        if self.name == "float32":
            return nullcontext()
        return torch.autocast(device.type, dtype=_DTYPES[self.name])

    def lowered(self) -> bool:
        """After a gradient that is not finite: whether a smaller scale is worth another try."""
        if self.name != "float16" or self.scale <= _LOWEST:
            return False
        self.scale, self.good = self.scale / 2, 0
        return True

    def went_well(self) -> None:
        """After a finite gradient: a larger scale once there were many."""
        if self.name != "float16":
            return
        self.good += 1
        if self.good == _PATIENCE:
            self.scale, self.good = self.scale * 2, 0

    def state(self) -> dict[str, float]:
        """For `state.json`: empty where nothing is scaled."""
        return {"scale": self.scale, "good": self.good} if self.name == "float16" else {}

    def restore(self, state: Mapping[str, float]) -> None:
        if state:
            self.scale, self.good = state["scale"], int(state["good"])
