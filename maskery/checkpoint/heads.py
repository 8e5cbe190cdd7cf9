"""Heads by name: those of objectives, and the classifiers of tasks, whose number of classes the tensors tell."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from maskery.model.config import Shape
from maskery.model.heads import ClassHead
from maskery.objectives.config import OBJECTIVES

CLASSIFIERS = ("sequence_class", "token_class")


def names_of_heads(state: Mapping[str, Tensor]) -> list[str]:
    return list(dict.fromkeys(name.split(".")[1] for name in state if name.startswith("heads.")))


def build_head(name: str, shape: Shape, tensors: Mapping[str, Tensor]) -> nn.Module | None:
    """A head for `tensors` (named inside the head); None for a name that we do not know."""
    if name in CLASSIFIERS:
        weight = tensors.get("dense.weight")
        return None if weight is None or weight.ndim != 2 else ClassHead(shape.width, int(weight.shape[0]))
    return OBJECTIVES.get(name)().head(shape) if name in OBJECTIVES.names() else None
