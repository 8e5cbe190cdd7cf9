"""The one Attention. Position scheme, visibility and kernel are objects it is given; it holds projections only.

Shapes: N packed slots, D width, H heads, K head width, b rows and t slots of one group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maskery.model import kernels
from maskery.model.config import Shape
from maskery.model.layout import Group, Layout
from maskery.model.linear import Linear
from maskery.model.positions import PositionScheme
from maskery.model.visibility import Predicate, Visibility, dense, view_of_rows


@dataclass(frozen=True)
class AttentionPlan:
    """Everything about a batch that all layers share: made once, before the first layer."""

    layout: Layout
    predicates: tuple[Predicate, ...]
    """One bound visibility for each group of rows."""
    allowed: tuple[Tensor | None, ...]
    """The same as arrays (b,1,t,t); None where everything is visible."""
    positions: tuple[Tensor, ...]
    """Position numbers (b,t) of each group, for schemes that act inside attention."""
    dropout: float
    capture: bool


def plan_attention(
    layout: Layout,
    visibility: Visibility,
    slots: Mapping[str, Tensor],
    positions: Tensor,
    *,
    dropout: float,
    capture: bool,
) -> AttentionPlan:
    predicates, allowed, places = [], [], []
    for group in layout.groups:
        facts = {name: _of_group(layout, group, slots[name]) for name in visibility.needs}
        view = view_of_rows(group.length, facts, group.rows, positions.device)
        predicate = visibility.bind(view)
        predicates.append(predicate)
        allowed.append(None if predicate.sees_all else dense(predicate, view))
        places.append(_of_group(layout, group, positions))
    return AttentionPlan(layout, tuple(predicates), tuple(allowed), tuple(places), dropout, capture)


def _of_group(layout: Layout, group: Group, x: Tensor) -> Tensor:
    """(B,T) facts -> (b,t) of the group's rows, padding left out."""
    return layout.pack(x)[group.start : group.stop].view(group.rows, group.length)


class Attention(nn.Module):
    """Self-attention over packed slots. Queries, keys and values are one parameter whose first axis names them."""

    def __init__(self, shape: Shape, layer: int) -> None:
        super().__init__()
        self.heads, self.layer = shape.heads, layer
        self.inputs = nn.Parameter(torch.empty(3, shape.width, shape.width))
        self.inputs_bias = nn.Parameter(torch.empty(3, shape.width))
        self.output = Linear(shape.width, shape.width)

    def forward(self, x: Tensor, plan: AttentionPlan, scheme: PositionScheme) -> tuple[Tensor, Tensor | None]:
        """(N,D) -> (N,D), and the weights (B,H,T,T) if the plan captures them."""
        width = x.shape[1]
        qkv = F.linear(x, self.inputs.view(3 * width, width), self.inputs_bias.view(3 * width))
        names = {
            kernels.choose(group.length, x.device, plan.dropout, scheme.in_attention, plan.capture)
            for group in plan.layout.groups
        }
        if names == {"packed"}:
            mixed: Tensor = kernels.PackedAttention.apply(  # type: ignore[no-untyped-call]
                qkv, plan.layout.groups, plan.allowed, self.heads, plan.dropout
            )
            return self.output(mixed), None
        mixed, weights = self._by_group(qkv, plan, scheme)
        return self.output(mixed), weights

    def _by_group(
        self, qkv: Tensor, plan: AttentionPlan, scheme: PositionScheme
    ) -> tuple[Tensor, Tensor | None]:
        parts, captured = [], []
        for number, group in enumerate(plan.layout.groups):
            q, k, v = kernels.split_heads(qkv[group.start : group.stop], group.rows, 3, self.heads).unbind()
            allowed, positions = plan.allowed[number], plan.positions[number]
            kernel = kernels.choose(group.length, q.device, plan.dropout, scheme.in_attention, plan.capture)
            if kernel == "sdpa" or (kernel == "packed" and plan.dropout == 0):
                out = kernels.sdpa(q, k, v, allowed)
            elif kernel == "flex":
                out = kernels.flex(q, k, v, plan.predicates[number])
            else:
                out, weights = kernels.explicit(
                    q, k, v, allowed, plan.dropout, scheme, self.layer, positions, positions
                )
                captured.append(weights)
            parts.append(out.transpose(1, 2).reshape(group.rows * group.length, -1))
        mixed = torch.cat(parts) if len(parts) > 1 else parts[0]
        return mixed, _unpack_weights(captured, plan.layout) if plan.capture else None


def _unpack_weights(captured: list[Tensor], layout: Layout) -> Tensor:
    """Weights of the groups -> (B,H,T,T), zeros at padding."""
    full = captured[0].new_zeros(layout.rows, captured[0].shape[1], layout.slots, layout.slots)
    for group, weights in zip(layout.groups, captured, strict=True):
        rows = layout.group_rows(group)
        if layout.source is None:
            slots = torch.arange(group.length, device=rows.device).expand(group.rows, -1)
        else:
            slots = layout.source[group.start : group.stop].view(group.rows, group.length) % layout.slots
        full[rows[:, None, None], :, slots[:, :, None], slots[:, None, :]] = weights.permute(0, 2, 3, 1)
    return full
