"""What is done with a pooled vector: a layer, unit length, a flow. Whitening and centring are a layer without bends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maskery.errors import ArgumentError
from maskery.model.linear import Linear
from maskery.vectors.after.affine import Affine
from maskery.vectors.after.base import After
from maskery.vectors.after.flow import Flow

Bend = Literal["tanh", "relu", "gelu", "identity"]
BENDS = {"tanh": nn.Tanh, "relu": nn.ReLU, "gelu": nn.GELU, "identity": nn.Identity}


class Dense(nn.Module):
    def __init__(self, inputs: int, outputs: int, *, bias: bool = True, bend: Bend = "tanh") -> None:
        super().__init__()
        self.linear = Linear(inputs, outputs, bias=bias)
        self.inputs, self.outputs, self.bend = inputs, outputs, bend
        self.activation = BENDS[bend]()

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.activation(self.linear(x))
        return found


class Normalize(nn.Module):
    """To length 1; a vector of zeros stays one."""

    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=-1)


class FlowStep(nn.Module):
    """A fitted flow as it is: in double precision and on the processor, whatever the network does, and never trained
    further."""

    def __init__(self, flow: Flow) -> None:
        super().__init__()
        self.flow = flow
        self.inputs = self.outputs = flow.taken
        flow.glow.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.flow.glow(x.cpu().double())[0]
        return found.to(x)


def step_of(after: After) -> nn.Module:
    """A fitted post-processing as a step."""
    if isinstance(after, Flow):
        return FlowStep(after)
    if not isinstance(after, Affine):
        raise ArgumentError(
            f"{type(after).__name__} is no fitted post-processing", repair="After.load(FILE), or Whitening.fit(vectors)"
        )
    matrix, bias = after.affine()
    step = Dense(after.taken, after.given, bend="identity")
    step.load_state_dict(
        {"linear.weight": torch.from_numpy(matrix.T.copy()).float(), "linear.bias": torch.from_numpy(bias).float()}
    )
    return step.requires_grad_(False)


def first_of(width: int, kept: int) -> Dense:
    """A step that keeps the first dimensions, and is never trained: a layer that everyone has."""
    step = Dense(width, kept, bias=False, bend="identity")
    step.load_state_dict({"linear.weight": torch.eye(kept, width)})
    return step.requires_grad_(False)


def width_after(width: int, steps: Iterable[nn.Module]) -> int:
    """How many dimensions come out; a step that takes another number than it gets is refused."""
    for number, step in enumerate(steps, 1):
        if not isinstance(step, Dense | FlowStep):
            continue
        if step.inputs != width:
            raise ArgumentError(
                f"step {number} behind the pooling takes {step.inputs} dimensions, and {width} come to it",
                repair="pool as the step was made for, or fit or train the step anew",
            )
        width = step.outputs
    return width
