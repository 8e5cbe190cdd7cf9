"""How one of our tensors is called by others: a rule that runs both ways.

- `same`: one tensor, two names.
- `stack3`: their query, key and value are the three slices of our one parameter.
- `tied`: their second copy of a tensor that we hold once; checked on the way in.
- `ignore`: a buffer without information, kept only to be written back.

Names hold `{layer}` where a rule stands for every layer. Where their name holds `{group}` instead, a group of layers
has its weights once, and ours are those of the group's first layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from maskery.errors import CheckpointError
from maskery.model.config import Shape

Op = Literal["same", "stack3", "tied", "ignore"]

OLD_ENDINGS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
"""Names of the first releases, understood on the way in and never written."""


@dataclass(frozen=True)
class Rule:
    ours: str
    theirs: tuple[str, ...]
    op: Op = "same"

    def at(self, layer: int, group: int = 0) -> Rule:
        return Rule(
            self.ours.replace("{layer}", str(layer)),
            tuple(name.replace("{layer}", str(layer)).replace("{group}", str(group)) for name in self.theirs),
            self.op,
        )

    def read(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """Their tensors -> ours."""
        found = [tensors[name] for name in self.theirs]
        if self.op != "stack3":
            return found[0]
        if len({tensor.shape for tensor in found}) > 1:
            sizes = ", ".join(f"{name} {tuple(tensors[name].shape)}" for name in self.theirs)
            raise CheckpointError(
                f"query, key and value differ in size: {sizes}",
                repair="the weights do not belong to this config.json; fetch or save the folder again",
            )
        return torch.stack(found)

    def write(self, tensor: Tensor) -> dict[str, Tensor]:
        """Our tensor -> theirs."""
        if self.op == "stack3":
            return dict(zip(self.theirs, tensor.unbind(), strict=True))
        return {self.theirs[0]: tensor}


def same(ours: str, theirs: str) -> Rule:
    return Rule(ours, (theirs,))


def both(ours: str, theirs: str) -> tuple[Rule, Rule]:
    """A weight and its bias."""
    return same(f"{ours}.weight", f"{theirs}.weight"), same(f"{ours}.bias", f"{theirs}.bias")


def stacked(ours: str, theirs: tuple[str, str, str]) -> tuple[Rule, Rule]:
    """Query, key and value: weights and biases."""
    weight, bias = (tuple(f"{name}.{kind}" for name in theirs) for kind in ("weight", "bias"))
    return Rule(ours, weight, "stack3"), Rule(f"{ours}_bias", bias, "stack3")


def tied(ours: str, theirs: str) -> Rule:
    return Rule(ours, (theirs,), "tied")


def ignore(theirs: str) -> Rule:
    return Rule("", (theirs,), "ignore")


def expand(rules: Iterable[Rule], shape: Shape) -> tuple[Rule, ...]:
    """One rule for each layer or group in place of a pattern; those for tensors that the shape has none of left out."""
    every: list[Rule] = []
    for rule in rules:
        if "{layer}" in rule.theirs[0]:
            every += [rule.at(layer) for layer in range(shape.layers)]
        elif "{group}" in rule.theirs[0]:
            size = shape.layers // shape.groups
            every += [rule.at(group * size, group) for group in range(shape.groups)]
        elif not rule.ours.startswith(_absent(shape)):
            every.append(rule)
    return tuple(every)


def _absent(shape: Shape) -> tuple[str, ...]:
    """Beginnings of our names that a network of this shape has no tensors of."""
    projection = ("embeddings.projection.",) if shape.embedding == shape.width else ()
    return (*projection, *(() if shape.tasks else ("embeddings.tasks",)))


def modern(name: str) -> str:
    """The name of today for a name of the first releases."""
    for old, new in OLD_ENDINGS.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name
