"""The one Attention. Position scheme, visibility and kernel are objects it is given; it holds projections only.

Queries are the slots that ask: all, the selected ones, or a second stream. Keys are the rows' own slots behind a past,
or the slots of another network. Rows without a past and a second stream take the quick kernels.

Shapes: N packed slots, P slots of a second stream, D width, H heads, K head width, b rows and t slots of one group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maskery.batches import Memory
from maskery.model import kernels
from maskery.model.config import Shape
from maskery.model.distances import DistanceAttention
from maskery.model.layout import Group, Layout
from maskery.model.linear import Linear
from maskery.model.meeting import Meeting, facts_before, meetings
from maskery.model.past import Cache, from_the_right, joined, lengths_of
from maskery.model.positions import PositionScheme
from maskery.model.relative import Relative
from maskery.model.selection import Selection
from maskery.model.visibility import Visibility


@dataclass(frozen=True)
class AttentionPlan:
    """Everything about a batch that all layers share: made once, before the first layer."""

    layout: Layout
    content: tuple[Meeting, ...]
    """For each group of rows: its slots, and what they see."""
    second: tuple[Meeting, ...]
    """The same for the slots of a second stream; empty where there is none."""
    dropout: float
    capture: bool
    past: Memory | Cache | None = None
    kept: list[tuple[Tensor, Tensor]] | None = field(default=None)
    """Where layers put the keys and values that a cache is made of, if one is wanted."""

    @property
    def allowed(self) -> tuple[Tensor | None, ...]:
        return tuple(each.allowed for each in self.content)

    @property
    def plain(self) -> bool:
        """Whether rows see nothing but themselves, in one stream."""
        return self.past is None and not self.second and self.kept is None

    @cached_property
    def counting(self) -> bool:
        """Whether the position numbers of every row count up by one, wherever they begin."""
        return all(bool((each.places.k_pos.diff(dim=1) == 1).all()) for each in self.content)


def plan_attention(
    layout: Layout,
    visibility: Visibility,
    slots: Mapping[str, Tensor],
    positions: Tensor,
    segments: Tensor,
    *,
    dropout: float,
    capture: bool,
    past: Memory | Cache | None = None,
    second: Selection | None = None,
    keep: bool = False,
) -> AttentionPlan:
    before = facts_before(past, positions, visibility.needs)
    common = (layout, visibility, slots, positions, segments, before)
    asked = () if second is None else meetings(*common, second, asks=True)
    return AttentionPlan(layout, meetings(*common), asked, dropout, capture, past, [] if keep else None)


def _kernel(group: Group, plan: AttentionPlan, scheme: PositionScheme, device: torch.device) -> str:
    by_distance = scheme.by_distance and device.type == "cpu" and plan.counting
    return kernels.choose(group.length, device, plan.dropout, scheme.in_attention, plan.capture, by_distance)


class Attention(nn.Module):
    """Attention over packed slots. Queries, keys and values are one parameter whose first axis names them."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.inputs = nn.Parameter(torch.empty(3, shape.width, shape.width))
        self.inputs_bias = nn.Parameter(torch.empty(3, shape.width)) if shape.attention_bias else None
        self.output = Linear(shape.width, shape.width, bias=shape.attention_bias)

    def project(self, x: Tensor, first: int, last: int) -> Tensor:
        """Queries (0), keys (1) and values (2) from `first` to before `last`, side by side: (N,D) -> (N,n*D)"""
        width = x.shape[1]
        weight = self.inputs[first:last].reshape((last - first) * width, width)
        bias = None if self.inputs_bias is None else self.inputs_bias[first:last].reshape(-1)
        return F.linear(x, weight, bias)

    def forward(
        self, x: Tensor, plan: AttentionPlan, scheme: PositionScheme, layer: int, selection: Selection | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """(N,D) -> (N,D), or (M,D) of the selected slots; and the weights (B,H,T,S) if the plan captures them.

        A second stream lies behind the N slots, and what is made of it behind what is made of them."""
        if not plan.plain:
            return self._behind_past(x, plan, scheme, layer, selection)
        if selection is not None:
            return self.output(self._selected(x, plan, scheme, layer, selection)), None
        qkv = self.project(x, 0, 3)
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

    def across(
        self, x: Tensor, keys: Tensor, values: Tensor, layout: Layout, allowed: Tensor | None, p: float, capture: bool
    ) -> tuple[Tensor, Tensor | None]:
        """(N,D) packed slots that look at other rows: (B,H,S,K) their keys and values, (B,1,1,S) which are real."""
        queries, parts, captured = self.project(x, 0, 1), [], []
        for group in layout.groups:
            rows = layout.group_rows(group)
            q = kernels.split_heads(queries[group.start : group.stop], group.rows, 1, self.heads)[0]
            real = None if allowed is None else allowed[rows].expand(-1, -1, group.length, -1)
            out, weights = kernels.explicit(q, keys[rows], values[rows], real, p)
            captured.append(weights)
            parts.append(out.transpose(1, 2).reshape(group.rows * group.length, -1))
        mixed = torch.cat(parts) if parts else queries
        return self.output(mixed), _unpack_across(captured, layout, x, self.heads, keys.shape[2]) if capture else None

    def _behind_past(
        self, x: Tensor, plan: AttentionPlan, scheme: PositionScheme, layer: int, selection: Selection | None
    ) -> tuple[Tensor, Tensor | None]:
        """The plain way for everything else: a past, a second stream, or both; with a selection the slots that it names
        ask, and no other of the first stream."""
        count = plan.layout.count
        own = self.project(x[:count], 1, 3)
        past = self._past(plan, layer)
        if plan.kept is not None:
            plan.kept.append(self._extended(own, plan, past))
        first = plan.content if selection is None else ()
        if selection is not None and len(selection.index):
            raise AssertionError("some slots of rows with a past are not computed alone")
        parts, captured = [], []
        for stream, meets in enumerate((first, plan.second)):
            if not meets:
                continue
            queries = self.project(x[count:] if stream else x[:count], 0, 1)
            for meeting in meets:
                if not meeting.asking.length:
                    continue
                q = kernels.split_heads(
                    queries[meeting.asking.start : meeting.asking.stop], meeting.keys.rows, 1, self.heads
                )[0]
                k, v = self._met(own, meeting, past)
                out, weights = kernels.explicit(q, k, v, meeting.allowed, plan.dropout, scheme, layer, meeting.places)
                parts.append(out.transpose(1, 2).reshape(meeting.keys.rows * meeting.asking.length, -1))
                if not stream:
                    captured.append(weights)
        mixed = torch.cat(parts) if parts else x[:0]
        if not plan.capture:
            return self.output(mixed), None
        before = 0 if past is None else past[0].shape[2]
        return self.output(mixed), _unpack_weights(captured, plan.layout, x, self.heads, before)

    def _past(self, plan: AttentionPlan, layer: int) -> tuple[Tensor, Tensor] | None:
        """(B,H,S,K) keys and values in front of the rows."""
        if plan.past is None:
            return None
        if isinstance(plan.past, Cache):
            return plan.past.keys[layer], plan.past.values[layer]
        states = plan.past.states[layer]
        kv = self.project(states.flatten(0, 1).to(self.inputs.dtype), 1, 3)
        keys, values = kernels.split_heads(kv, states.shape[0], 2, self.heads).unbind()
        return keys, values

    def _met(self, own: Tensor, meeting: Meeting, past: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
        group = meeting.keys
        k, v = kernels.split_heads(own[group.start : group.stop], group.rows, 2, self.heads).unbind()
        if past is None:
            return k, v
        before = (each.index_select(0, meeting.rows) for each in past)
        k, v = (torch.cat((old, new), 2) for old, new in zip(before, (k, v), strict=True))
        return k, v

    def _extended(self, own: Tensor, plan: AttentionPlan, past: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
        """(B,H,S,K) keys and values of the past and of the rows, filled from the right."""
        rows = from_the_right(plan.layout, own)
        both = kernels.split_heads(rows.flatten(0, 1), plan.layout.rows, 2, self.heads).unbind()
        if past is None or plan.past is None:
            return both[0], both[1]
        added = lengths_of(plan.layout, own.device)
        keys, values = (joined(old, plan.past.length, new, added, axis=2) for old, new in zip(past, both, strict=True))
        return keys, values

    def _selected(
        self, x: Tensor, plan: AttentionPlan, scheme: PositionScheme, layer: int, selection: Selection
    ) -> Tensor:
        queries = self.project(x.index_select(0, selection.index), 0, 1)
        kv = self.project(x, 1, 3)
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
            places = plan.content[number].places.of(selection.slots[number])
            out, _ = kernels.explicit(q, k, v, allowed[number], plan.dropout, scheme, layer, places)
            parts.append(out.transpose(1, 2).reshape(ask.rows * ask.length, -1))
        return torch.cat(parts)

    def _by_group(
        self, qkv: Tensor, plan: AttentionPlan, scheme: PositionScheme, layer: int
    ) -> tuple[Tensor, Tensor | None]:
        parts, captured = [], []
        for meeting in plan.content:
            group, allowed = meeting.keys, meeting.allowed
            q, k, v = kernels.split_heads(qkv[group.start : group.stop], group.rows, 3, self.heads).unbind()
            kernel = _kernel(group, plan, scheme, q.device)
            if kernel == "sdpa" or (kernel == "packed" and plan.dropout == 0):
                out = kernels.sdpa(q, k, v, allowed)
            elif kernel == "flex":
                out = kernels.flex(q, k, v, meeting.predicate)
            else:
                out, weights = kernels.explicit(q, k, v, allowed, plan.dropout, scheme, layer, meeting.places)
                captured.append(weights)
            parts.append(out.transpose(1, 2).reshape(group.rows * group.length, -1))
        if not parts:  # every row is empty
            parts.append(qkv.chunk(3, 1)[0])
        mixed = torch.cat(parts) if len(parts) > 1 else parts[0]
        return mixed, _unpack_weights(captured, plan.layout, qkv, self.heads, 0) if plan.capture else None


def _unpack_weights(captured: list[Tensor], layout: Layout, like: Tensor, heads: int, before: int) -> Tensor:
    """Weights of the groups -> (B,H,T,S), zeros at padding; `before` keys stand in front of the rows' own."""
    full = like.new_zeros(layout.rows, heads, layout.slots, before + layout.slots)
    past = torch.arange(before, device=like.device)
    for group, weights in zip(layout.groups, captured, strict=True):
        slots = _slots(layout, group)
        seen = torch.cat((past.expand(group.rows, -1), slots + before), 1)
        rows = layout.group_rows(group)
        full[rows[:, None, None], :, slots[:, :, None], seen[:, None, :]] = weights.permute(0, 2, 3, 1)
    return full


def _unpack_across(captured: list[Tensor], layout: Layout, like: Tensor, heads: int, keys: int) -> Tensor:
    """Weights of the groups over other rows -> (B,H,T,S), zeros at padding."""
    full = like.new_zeros(layout.rows, heads, layout.slots, keys)
    for group, weights in zip(layout.groups, captured, strict=True):
        full[layout.group_rows(group)[:, None], :, _slots(layout, group)] = weights.transpose(1, 2)
    return full


def _slots(layout: Layout, group: Group) -> Tensor:
    """(b,t) the slots of a group's rows."""
    if layout.source is None:
        return torch.arange(group.length, device=layout.order.device).expand(group.rows, -1)
    return layout.source[group.start : group.stop].view(group.rows, group.length) % layout.slots
