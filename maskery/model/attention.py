"""The one Attention. Position scheme, visibility and kernel are objects it is given; it holds projections only.

Shapes: N packed slots, D width, H heads, K head width, b rows and t slots of one group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maskery.model import kernels
from maskery.model.config import Shape
from maskery.model.distances import DistanceAttention
from maskery.model.layout import Group, Layout
from maskery.model.linear import Linear
from maskery.model.positions import PositionScheme
from maskery.model.relative import Relative
from maskery.model.selection import Selection
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

    @cached_property
    def counting(self) -> bool:
        """Whether the position numbers of every row count up by one, wherever they begin."""
        return all(bool((each.diff(dim=1) == 1).all()) for each in self.positions)


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


def _kernel(group: Group, plan: AttentionPlan, scheme: PositionScheme, device: torch.device) -> str:
    by_distance = scheme.by_distance and device.type == "cpu" and plan.counting
    return kernels.choose(group.length, device, plan.dropout, scheme.in_attention, plan.capture, by_distance)


class Attention(nn.Module):
    """Self-attention over packed slots. Queries, keys and values are one parameter whose first axis names them."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.inputs = nn.Parameter(torch.empty(3, shape.width, shape.width))
        self.inputs_bias = nn.Parameter(torch.empty(3, shape.width))
        self.output = Linear(shape.width, shape.width)

    def forward(
        self, x: Tensor, plan: AttentionPlan, scheme: PositionScheme, layer: int, selection: Selection | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """(N,D) -> (N,D), or (M,D) of the selected slots; and the weights (B,H,T,T) if the plan captures them."""
        if selection is not None:
            return self.output(self._selected(x, plan, scheme, layer, selection)), None
        width = x.shape[1]
        qkv = F.linear(x, self.inputs.view(3 * width, width), self.inputs_bias.view(3 * width))
        names = {_kernel(group, plan, scheme, x.device) for group in plan.layout.groups}
        if names <= {"packed"} and not plan.capture:
            mixed: Tensor = kernels.PackedAttention.apply(  # type: ignore[no-untyped-call]
                qkv, plan.layout.groups, plan.allowed, self.heads, plan.dropout
            )
            return self.output(mixed), None
        if names == {"distance"} and isinstance(scheme, Relative):
            tables = scheme.along(layer, plan.layout.groups[-1].length, qkv)
            mixed = DistanceAttention.apply(  # type: ignore[no-untyped-call]
                qkv,
                tables.bias,
                tables.keys,
                tables.values,
                plan.layout.groups,
                plan.allowed,
                self.heads,
                plan.dropout,
            )
            return self.output(mixed), None
        mixed, weights = self._by_group(qkv, plan, scheme, layer)
        return self.output(mixed), weights

    def _selected(
        self, x: Tensor, plan: AttentionPlan, scheme: PositionScheme, layer: int, selection: Selection
    ) -> Tensor:
        width = x.shape[1]
        queries = F.linear(x.index_select(0, selection.index), self.inputs[0], self.inputs_bias[0])
        kv = F.linear(x, self.inputs[1:].reshape(2 * width, width), self.inputs_bias[1:].reshape(2 * width))
        allowed = [
            None if mask is None else mask.gather(2, slots[:, None, :, None].expand(-1, -1, -1, mask.shape[3]))
            for mask, slots in zip(plan.allowed, selection.slots, strict=True)
        ]
        if x.device.type == "cpu" and not scheme.in_attention:
            mixed: Tensor = kernels.SelectedAttention.apply(  # type: ignore[no-untyped-call]
                queries, kv, selection.groups, plan.layout.groups, allowed, self.heads, plan.dropout
            )
            return mixed
        parts = []
        for number, (ask, group) in enumerate(zip(selection.groups, plan.layout.groups, strict=True)):
            if not ask.length:
                continue
            q = kernels.split_heads(queries[ask.start : ask.stop], group.rows, 1, self.heads)[0]
            k, v = kernels.split_heads(kv[group.start : group.stop], group.rows, 2, self.heads).unbind()
            k_pos = plan.positions[number]
            q_pos = k_pos.gather(1, selection.slots[number])
            out, _ = kernels.explicit(q, k, v, allowed[number], plan.dropout, scheme, layer, q_pos, k_pos)
            parts.append(out.transpose(1, 2).reshape(ask.rows * ask.length, -1))
        return torch.cat(parts)

    def _by_group(
        self, qkv: Tensor, plan: AttentionPlan, scheme: PositionScheme, layer: int
    ) -> tuple[Tensor, Tensor | None]:
        parts, captured = [], []
        for number, group in enumerate(plan.layout.groups):
            q, k, v = kernels.split_heads(qkv[group.start : group.stop], group.rows, 3, self.heads).unbind()
            allowed, positions = plan.allowed[number], plan.positions[number]
            kernel = _kernel(group, plan, scheme, q.device)
            if kernel == "sdpa" or (kernel == "packed" and plan.dropout == 0):
                out = kernels.sdpa(q, k, v, allowed)
            elif kernel == "flex":
                out = kernels.flex(q, k, v, plan.predicates[number])
            else:
                out, weights = kernels.explicit(q, k, v, allowed, plan.dropout, scheme, layer, positions, positions)
                captured.append(weights)
            parts.append(out.transpose(1, 2).reshape(group.rows * group.length, -1))
        if not parts:  # every row is empty
            parts.append(qkv.chunk(3, 1)[0])
        mixed = torch.cat(parts) if len(parts) > 1 else parts[0]
        return mixed, _unpack_weights(captured, plan.layout, qkv, self.heads) if plan.capture else None


def _unpack_weights(captured: list[Tensor], layout: Layout, like: Tensor, heads: int) -> Tensor:
    """Weights of the groups -> (B,H,T,T), zeros at padding."""
    full = like.new_zeros(layout.rows, heads, layout.slots, layout.slots)
    for group, weights in zip(layout.groups, captured, strict=True):
        rows = layout.group_rows(group)
        if layout.source is None:
            slots = torch.arange(group.length, device=rows.device).expand(group.rows, -1)
        else:
            slots = layout.source[group.start : group.stop].view(group.rows, group.length) % layout.slots
        full[rows[:, None, None], :, slots[:, :, None], slots[:, None, :]] = weights.permute(0, 2, 3, 1)
    return full
