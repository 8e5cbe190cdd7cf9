"""All that a model is made of: a network, the heads on it, and a generator beside it; of a recipe or of a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn

from maskery.checkpoint.model import Model
from maskery.checkpoint.parts import Part, count, parameters_by_part, parts_of
from maskery.model.transformer import Network
from maskery.recipes.recipe import Recipe
from maskery.system import System


@dataclass(frozen=True)
class Whole:
    network: Network
    heads: Mapping[str, nn.Module]
    generator: Whole | None = None

    @property
    def modules(self) -> nn.ModuleList:
        beside = [] if self.generator is None else [self.generator.modules]
        return nn.ModuleList([self.network, *self.heads.values(), *beside])

    @property
    def own(self) -> int:
        """Parameters of the network and its heads, each once."""
        return count(nn.ModuleList([self.network, *self.heads.values()]).parameters())

    def parameters(self) -> dict[str, int]:
        return parameters_by_part(self.network, self.heads, self.generator.modules if self.generator else None)

    def parts(self) -> list[Part]:
        return parts_of(self.network, self.heads)


def whole_of(source: Model | Recipe, vocabulary: int) -> Whole:
    """A loaded model as it is. Of a recipe no weight is made: modules of the meta device have sizes only."""
    if isinstance(source, Model):
        beside = source.generator
        return Whole(source.network, source.heads, None if beside is None else Whole(beside.network, beside.heads))
    with torch.device("meta"):
        system = System(source, vocabulary)
    small = system.generator
    second = None if small is None else Whole(small, system.heads_of(small))
    return Whole(system.network, system.heads_of(system.network), second)
