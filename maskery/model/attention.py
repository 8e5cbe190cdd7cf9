"""The one Attention. Position scheme, visibility and kernel are objects it is given; it holds projections only.

Queries are the slots that ask: all, the selected ones, or a second stream. Keys are the rows' own slots behind a past,
or the slots of another network. Rows that have neither a past nor a second stream take the quick kernels, and with the
positions of Transformer-XL the others do too.

Shapes: N packed slots, P slots of a second stream, D width, H heads, K head width, b rows and t slots of one group.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from maskery.model import kernels
from maskery.model.blocks import asking_of, exact
from maskery.model.config import Shape
from maskery.model.crosswise import CrossedAttention
from maskery.model.disentangled import Disentangled
from maskery.model.distances import DistanceAttention
from maskery.model.dropout import level
from maskery.model.layout import Group, Layout
from maskery.model.linear import Linear, linear
from maskery.model.meeting import Meeting
from maskery.model.parts import Part
from maskery.model.past import Cache, from_the_right, joined, lengths_of
from maskery.model.plan import AttentionPlan
from maskery.model.positions import PositionScheme
from maskery.model.relative import Relative
from maskery.model.rotary import Rotary, turned
from maskery.model.selection import Selection
from maskery.model.streams import StreamAttention
from maskery.model.xl import XL


def _kernel(group: Group, plan: AttentionPlan, scheme: PositionScheme, device: torch.device) -> str:
    by_distance = scheme.by_distance and device.type == "cpu" and plan.counting
    acts = scheme.in_attention and not scheme.turns_only
    if isinstance(scheme, Disentangled) and device.type == "cpu" and plan.counting and not plan.capture:
        return "crossed"
    return kernels.choose(group.length, device, plan.dropout, acts, plan.capture, by_distance)


def _turned(
    x: Tensor, width: int, plan: AttentionPlan, scheme: PositionScheme, layer: int, some: Tensor | None = None
) -> Tensor:
    """(N,D') queries and keys in the first `width` columns, turned where the scheme does so; `some`: which slots."""
    if not isinstance(scheme, Rotary) or plan.positions is None:
        return x
    base = scheme.bases[layer]
    if base not in plan.waves:
        plan.waves[base] = scheme.waves(layer, plan.positions)
    waves = plan.waves[base]
    return turned(x, waves if some is None else waves.of(some), scheme.head, width)


def _left(scheme: PositionScheme) -> PositionScheme | None:
    """What acts in attention on slots that are turned."""
    return None if scheme.turns_only else scheme


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
        return linear(x, weight, bias)

    def forward(
        self,
        x: Tensor,
        plan: AttentionPlan,
        scheme: PositionScheme,
        layer: int,
        selection: Selection | None = None,
        remembered: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """(N,D) -> (N,D), or (M,D) of the selected slots; and the weights (B,H,T,S) if the plan captures them.

        `remembered` (B,M,D) is read in front of the rows, if the plan's past is a memory. A second stream lies behind
        the N slots, and what is made of it behind what is made of them."""
        mixed, weights = self._mixed(x, plan, scheme, layer, selection, remembered)
        quick = plan.quick(layer)
        return (self.output if quick is None else quick.output)(mixed), weights

    def _mixed(
        self,
        x: Tensor,
        plan: AttentionPlan,
        scheme: PositionScheme,
        layer: int,
        selection: Selection | None,
        remembered: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """What the heads bring, side by side, by the quickest way that the plan allows."""
        if isinstance(scheme, XL) and x.device.type == "cpu" and plan.by_slots:
            parts = plan.parts if selection is None else plan.parts_alone(selection)
            if parts:
                return self._streams(x, plan, scheme, layer, selection, parts, remembered), None
        if not plan.plain:
            return self._behind_past(x, plan, scheme, layer, selection, remembered)
        if selection is not None:
            return self._selected(x, plan, scheme, layer, selection), None
        quick = plan.quick(layer)
        qkv = self.project(x, 0, 3) if quick is None else quick.inputs(x)
        qkv = _turned(qkv, 2 * x.shape[1], plan, scheme, layer)
        names = {_kernel(group, plan, scheme, x.device) for group in plan.layout.groups}
        if names <= {"packed"} and not plan.capture:
            blocks = plan.blocks(self.heads)
            if not (torch.is_grad_enabled() or level(plan.dropout)):
                return kernels.in_use(qkv, blocks, self.heads), None
            mixed: Tensor = kernels.PackedAttention.apply(  # type: ignore[no-untyped-call]
                qkv, blocks, self.heads, plan.dropout
            )
            return mixed, None
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
            return mixed, None
        if names == {"crossed"} and isinstance(scheme, Disentangled):
            table = scheme.along(plan.layout.groups[-1].length, qkv, self.project)
            mixed = CrossedAttention.apply(  # type: ignore[no-untyped-call]
                qkv, *table, plan.layout.groups, plan.allowed, self.heads, scheme.scale, plan.dropout
            )
            return mixed, None
        return self._by_group(qkv, plan, scheme, layer)

    def across(
        self, x: Tensor, keys: Tensor, values: Tensor, layout: Layout, allowed: Tensor | None, p: float, capture: bool
    ) -> tuple[Tensor, Tensor | None]:
        """(N,D) packed slots that look at other rows: (B,H,S,K) their keys and values, (B,1,1,S) which are real."""
        queries, parts, captured = self.project(x, 0, 1), [], []
        for group in layout.groups:
            rows = layout.group_rows(group)
            q = kernels.split_heads(queries[group.start : group.stop], group.rows, 1, self.heads)[0]
            k, v = keys.index_select(0, rows), values.index_select(0, rows)
            real = None if allowed is None else allowed.index_select(0, rows).expand(-1, -1, group.length, -1)
            if capture or level(p):
                out, weights = kernels.explicit(q, k, v, real, p)
                captured.append(weights)
            else:
                out = kernels.sdpa(q, k, v, real)
            parts.append(out.transpose(1, 2).reshape(group.rows * group.length, -1))
        mixed = torch.cat(parts) if parts else queries
        return self.output(mixed), _unpack_across(captured, layout, x, self.heads, keys.shape[2]) if capture else None

    def across_once(self, x: Tensor, kv: Tensor, layout: Layout, allowed: Tensor | None, p: float) -> Tensor:
        """The same on a CPU for (B,S,2*D) keys and values that are asked once: with a backward pass of its own."""
        slots = kv.shape[1]
        ordered = kv.index_select(0, layout.order).flatten(0, 1)
        groups = [Group(group.first, group.rows, slots, group.first * slots) for group in layout.groups]
        real = [
            None
            if allowed is None
            else allowed.index_select(0, layout.group_rows(group)).expand(-1, -1, group.length, -1)
            for group in layout.groups
        ]
        mixed: Tensor = kernels.SelectedAttention.apply(  # type: ignore[no-untyped-call]
            self.project(x, 0, 1), ordered, layout.groups, exact(groups, real), self.heads, p
        )
        looked: Tensor = self.output(mixed)
        return looked

    def _streams(
        self,
        x: Tensor,
        plan: AttentionPlan,
        scheme: XL,
        layer: int,
        selection: Selection | None,
        parts: tuple[Part, ...],
        remembered: Tensor | None,
    ) -> Tensor:
        count, own = plan.layout.count, selection is None
        slots, asking = torch.split_with_sizes(x, [count, len(x) - count]) if plan.second else (x, None)
        if selection is not None and asking is None:
            asking = x.index_select(0, selection.index)
        before = None if remembered is None else self.project(remembered.flatten(0, 1), 1, 3)
        first = self.project(slots, 0 if own else 1, 3)
        second = None if asking is None else self.project(asking, 0, 1)
        learned = scheme.learned(layer, parts, first)
        mixed: Tensor = StreamAttention.apply(  # type: ignore[no-untyped-call]
            first, second, before, *learned, parts, own, plan.dropout
        )
        return mixed

    def _behind_past(
        self,
        x: Tensor,
        plan: AttentionPlan,
        scheme: PositionScheme,
        layer: int,
        selection: Selection | None,
        remembered: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """The plain way for everything else: a past, a second stream, or both; with a selection the slots that it names
        ask, and no other of the first stream."""
        count = plan.layout.count
        own = self.project(x[:count], 1, 3)
        past = self._past(plan, layer, remembered)
        met = None
        if plan.kept is not None:
            plan.kept.append(self._extended(own, plan, past))
            # Rows of one length are kept as they meet: a step of writing joins past and row once.
            met = plan.kept[-1] if plan.layout.source is None else None
        assert selection is None or not len(selection.index), "some slots of rows with a past are not computed alone"
        streams: list[tuple[Tensor, tuple[Meeting, ...], tuple[Tensor, ...] | None]] = []
        if selection is None:
            streams.append((x[:count], plan.content, None))
        if plan.second:
            streams.append((x[count:], plan.second, plan.asked))
        mixed, seen = [x[:0]], []
        for states, meets, slots in streams:
            queries, captured = self.project(states, 0, 1), []
            for meeting in meets:
                q = kernels.split_heads(
                    queries[meeting.asking.start : meeting.asking.stop], meeting.keys.rows, 1, self.heads
                )[0]
                k, v = met or self._met(own, meeting, past)
                out, weights = self._one_meeting(q, k, v, meeting, plan, scheme, layer)
                mixed.append(out.transpose(1, 2).reshape(meeting.keys.rows * meeting.asking.length, x.shape[1]))
                captured.append(weights)
            if plan.capture:
                seen.append(_unpack_weights(captured, plan.layout, x, self.heads, slots))
        plan.seen.extend(seen[1:])
        return torch.cat(mixed), seen[0] if seen else None

    def _one_meeting(
        self, q: Tensor, k: Tensor, v: Tensor, meeting: Meeting, plan: AttentionPlan, scheme: PositionScheme, layer: int
    ) -> tuple[Tensor, Tensor]:
        """(b,H,Q,K), and the weights (b,H,Q,S) where these are captured."""
        if not q.shape[2]:
            return q, q.new_zeros(*q.shape[:3], k.shape[2])
        kernel = kernels.choose(k.shape[2], q.device, plan.dropout, scheme.in_attention, plan.capture)
        if kernel == "sdpa" or (kernel == "packed" and q.shape[2] == 1 and not level(plan.dropout)):
            return kernels.sdpa(q, k, v, meeting.allowed), q
        if kernel == "flex":
            return kernels.flex(q, k, v, meeting.predicate), q
        return kernels.explicit(q, k, v, meeting.allowed, plan.dropout, scheme, layer, meeting.places, self.project)

    def _past(self, plan: AttentionPlan, layer: int, remembered: Tensor | None) -> tuple[Tensor, Tensor] | None:
        """(B,H,S,K) keys and values in front of the rows."""
        if isinstance(plan.past, Cache):
            return plan.past.keys[layer], plan.past.values[layer]
        if remembered is None:
            return None
        kv = self.project(remembered.flatten(0, 1), 1, 3)
        keys, values = kernels.split_heads(kv, len(remembered), 2, self.heads).unbind()
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
        queries = _turned(queries, x.shape[1], plan, scheme, layer, selection.index)
        kv = _turned(self.project(x, 1, 3), x.shape[1], plan, scheme, layer)
        allowed = [
            None if mask is None else mask.gather(2, slots[:, None, :, None].expand(-1, -1, -1, mask.shape[3]))
            for mask, slots in zip(plan.allowed, selection.slots, strict=True)
        ]
        left = _left(scheme)
        if x.device.type == "cpu" and (left is None or not left.in_attention):
            blocks = plan.blocks(self.heads)
            asking = asking_of(blocks, selection.groups) if all(mask is None for mask in allowed) else None
            if asking is None:
                asking, blocks = selection.groups, exact(plan.layout.groups, allowed)
            mixed: Tensor = kernels.SelectedAttention.apply(  # type: ignore[no-untyped-call]
                queries, kv, asking, blocks, self.heads, plan.dropout
            )
            return mixed
        parts = []
        for number, (ask, group) in enumerate(zip(selection.groups, plan.layout.groups, strict=True)):
            if not ask.length:
                continue
            q = kernels.split_heads(queries[ask.start : ask.stop], group.rows, 1, self.heads)[0]
            k, v = kernels.split_heads(kv[group.start : group.stop], group.rows, 2, self.heads).unbind()
            places = plan.content[number].places.of(selection.slots[number])
            out, _ = kernels.explicit(q, k, v, allowed[number], plan.dropout, left, layer, places, self.project)
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
            if kernel == "sdpa" and meeting.reach is not None:
                out = kernels.windowed(q, k, v, meeting.reach)
            elif kernel == "sdpa" or (kernel == "packed" and plan.dropout == 0):
                out = kernels.sdpa(q, k, v, allowed)
            elif kernel == "flex":
                out = kernels.flex(q, k, v, meeting.predicate)
            else:
                out, weights = kernels.explicit(
                    q, k, v, allowed, plan.dropout, _left(scheme), layer, meeting.places, self.project
                )
                captured.append(weights)
            parts.append(out.transpose(1, 2).reshape(group.rows * group.length, -1))
        if not parts:  # every row is empty
            parts.append(qkv.chunk(3, 1)[0])
        if behind := len(qkv) - sum(map(len, parts)):
            parts.append(parts[0].new_zeros(behind, parts[0].shape[1]))
        mixed = torch.cat(parts) if len(parts) > 1 else parts[0]
        return mixed, _unpack_weights(captured, plan.layout, qkv, self.heads) if plan.capture else None


def _unpack_weights(
    captured: list[Tensor], layout: Layout, like: Tensor, heads: int, asked: tuple[Tensor, ...] | None = None
) -> Tensor:
    """Weights of the groups -> (B,H,T,S), keys of a past first, zeros at padding; `asked` (b,m) of each group are the
    slots that asked, where these are not all."""
    before = captured[0].shape[3] - layout.groups[0].length if captured else 0
    full = like.new_zeros(layout.rows, heads, layout.slots, before + layout.slots)
    past = torch.arange(before, device=like.device)
    for number, (group, weights) in enumerate(zip(layout.groups, captured, strict=True)):
        slots = _slots(layout, group)
        seen = torch.cat((past.expand(group.rows, -1), slots + before), 1)
        asking = slots if asked is None else slots.gather(1, asked[number])
        rows = layout.group_rows(group)
        full[rows[:, None, None], :, asking[:, :, None], seen[:, None, :]] = weights.permute(0, 2, 3, 1)
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
