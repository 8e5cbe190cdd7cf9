"""Optimisers: fused on the CPU, their state plain tensors by parameter name.

BERT's Adam has no bias correction. torch's fused kernel has it built in through the step number, so without it the
kernel is given a step so large that the correction is exactly 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import torch
from torch import Tensor, nn

from maskery.train.config import TrainingConfig
from maskery.train.replicas import fill

_UNCORRECTED = 1.0e9


class Optimizer(Protocol):
    def __init__(self, named: Iterable[tuple[str, nn.Parameter]], training: TrainingConfig) -> None: ...

    def step(self, lr: float, number: int) -> None:
        """Apply the gradients; `number` counts updates from 1."""
        ...

    def state(self) -> dict[str, Tensor]: ...

    def restore(self, state: Mapping[str, Tensor]) -> None: ...


def decays(name: str, parameter: Tensor) -> bool:
    """Weight decay goes to matrices, not to biases and norms."""
    return "norm" not in name and not name.endswith("bias")


class AdamW:
    """Adam with decoupled weight decay, one fused call for each group of parameters."""

    def __init__(self, named: Iterable[tuple[str, nn.Parameter]], training: TrainingConfig) -> None:
        self.training = training
        self.parameters = dict(named)
        self.first = {name: torch.zeros_like(value) for name, value in self.parameters.items()}
        self.second = {name: torch.zeros_like(value) for name, value in self.parameters.items()}

    @torch.no_grad()
    def step(self, lr: float, number: int) -> None:
        training = self.training
        steps = torch.tensor(float(number) if training.bias_correction else _UNCORRECTED)
        for decaying in (True, False):
            names = [
                name
                for name, value in self.parameters.items()
                if value.grad is not None and decays(name, value) is decaying
            ]
            if not names:
                continue
            torch._fused_adamw_(
                [self.parameters[name] for name in names],
                [_gradient(self.parameters[name]) for name in names],
                [self.first[name] for name in names],
                [self.second[name] for name in names],
                [],
                [steps.to(self.first[name].device) for name in names],
                lr=lr,
                beta1=training.betas[0],
                beta2=training.betas[1],
                weight_decay=training.weight_decay if decaying else 0.0,
                eps=training.eps,
                amsgrad=False,
                maximize=False,
            )

    def state(self) -> dict[str, Tensor]:
        first = {f"first.{name}": value for name, value in self.first.items()}
        return first | {f"second.{name}": value for name, value in self.second.items()}

    @torch.no_grad()
    def restore(self, state: Mapping[str, Tensor]) -> None:
        for name in self.parameters:
            fill(self.first[name], state[f"first.{name}"])
            fill(self.second[name], state[f"second.{name}"])


def _gradient(parameter: nn.Parameter) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad
