"""What a decoder looks at: the last states of other rows, with the keys and values that each layer makes of them.

Shapes: B rows, S slots of the source, H heads, K head width, D width.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from maskery.model import kernels
from maskery.model.layout import Layout

if TYPE_CHECKING:
    from maskery.model.attention import Attention


@dataclass(frozen=True)
class Source:
    packed: Tensor
    """(N,D)"""
    layout: Layout
    allowed: Tensor | None
    """(B,1,1,S) which slots are real; None where all are."""
    made: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """Keys and values (B,H,S,K) of the layers that have asked for them; kept where many steps ask for the same."""
    keep: bool = False
    captured: list[Tensor] = field(default_factory=list)
    """The weights of each layer (B,H,T,S), if they are captured."""

    def look(
        self, x: Tensor, attention: Attention, layer: int, layout: Layout, p: float, capture: bool
    ) -> tuple[Tensor, Tensor | None]:
        """(N,D) packed slots of the rows that look -> what they see; and the weights (B,H,T,S) if they are captured."""
        if self.keep or capture or not layout.groups or x.device.type != "cpu":
            keys, values = self._met(layer, attention)
            return attention.across(x, keys, values, layout, self.allowed, p, capture)
        both = self.layout.unpack(attention.project(self.packed, 1, 3))
        return attention.across_once(x, both, layout, self.allowed, p), None

    def _met(self, layer: int, attention: Attention) -> tuple[Tensor, Tensor]:
        if layer in self.made:
            return self.made[layer]
        both = self.layout.unpack(attention.project(self.packed, 1, 3))
        keys, values = kernels.split_heads(both.flatten(0, 1), self.layout.rows, 2, attention.heads).unbind()
        if self.keep:
            self.made[layer] = keys, values
        return keys, values

    def select(self, rows: Tensor) -> Source:
        """The same for the given rows, which may repeat; for a source that was kept and that every layer has seen."""
        made = {layer: (k.index_select(0, rows), v.index_select(0, rows)) for layer, (k, v) in self.made.items()}
        allowed = None if self.allowed is None else self.allowed.index_select(0, rows)
        return replace(self, made=made, allowed=allowed)


def source_of(packed: Tensor, layout: Layout, *, keep: bool = False) -> Source:
    """The states that an encoder's rows ended with. `keep`: they will be asked for again and again."""
    allowed = None
    if layout.source is not None:
        real = torch.zeros(layout.rows * layout.slots, dtype=torch.bool, device=packed.device)
        real[layout.source] = True
        allowed = real.view(layout.rows, 1, 1, layout.slots)
    return Source(packed, layout, allowed, keep=keep)
