"""Attention with the positions of Transformer-XL, for one stream or two, behind a past: the quick kernel on a CPU.

    score = ((q + u) k + (q + v) r + (q + s) d [segments differ]) / sqrt(K)

The softmax does not feel what all keys of a query have in common, so of XLNet's two vectors of segments only their
difference d counts. It is told by further columns of queries and keys: a key has a 1 in the column of its segment.

Query i and key j of a row that counts up have row j + t-1 - i of a table of falling distances. So all products with the
table are one product a head, and what belongs to (i, j) is a view of it whose rows are one shorter. For rows that count
down the table has rising distances.

Shapes: N packed slots, P slots that ask alone, D width, H heads, K head width, B rows of the batch, R distances; b, t,
m, Q, M, S, G as in maskery.model.parts. Heads come first: the rows of one head share its table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from maskery.model.dropout import draw, keep_scale, kept, level
from maskery.model.kernels import product
from maskery.model.layout import Group
from maskery.model.parts import Part


class Learned(NamedTuple):
    """What a layer knows of distances and segments."""

    content: Tensor
    """(H,K) u"""
    place: Tensor
    """(H,K) v"""
    up: Tensor | None
    """(H,R,K) for rows that count up: from the farthest back to the farthest on."""
    down: Tensor | None
    """(H,R,K) the same for rows that count down."""
    segment: Tensor | None = None
    """(H,K) s"""
    other: Tensor | None = None
    """(H,K) d: the vector of another segment minus that of the same."""

    def table(self, part: Part) -> Tensor:
        """(H,R,K) the rows that a part needs."""
        found = self.down if part.down else self.up
        assert found is not None
        longest = (found.shape[1] - part.before + 1) // 2
        return found.narrow(1, longest - part.keys.length, part.distances)


@dataclass(frozen=True)
class _Met:
    """Queries, keys and values of a part."""

    q: Tensor
    """(H,b,Q,K+G), u added."""
    k: Tensor
    """(H,b,S,K+G)"""
    v: Tensor
    """(H,b,S,K)"""
    placed: Tensor
    """(H,b,Q,K) queries with v."""


def _slots(x: Tensor, group: Group, members: Tensor | None, count: int, heads: int) -> Tensor:
    """(N,n*D) -> (n,H,b,t,K) of a group's slots; a view where all its rows are members."""
    rows = x[group.start : group.stop].view(group.rows, group.length, count, heads, -1)
    chosen = rows if members is None else rows.index_select(0, members)
    return chosen.permute(2, 3, 0, 1, 4)


def _write(target: Tensor, group: Group, members: Tensor | None, value: Tensor) -> None:
    """(H,b,t,K) into the slots of a group, (N,D)."""
    rows = target[group.start : group.stop].view(group.rows, group.length, len(value), -1)
    if members is None:
        rows.copy_(value.permute(1, 2, 0, 3))
    else:
        rows[members] = value.permute(1, 2, 0, 3)


def _meet(part: Part, first: Tensor, second: Tensor | None, before: Tensor | None, learned: Learned) -> _Met:
    heads, head = learned.content.shape
    mine = _slots(first, part.keys, part.members, 3 if part.own else 2, heads)
    size, keys, apart = part.first + part.asking.length, part.before + part.keys.length, part.segments
    told = 0 if apart is None or learned.other is None else apart[0].shape[-1]
    q = first.new_empty(heads, len(part.rows), size, head + told)
    k = first.new_empty(heads, len(part.rows), keys, head + told)
    v = first.new_empty(heads, len(part.rows), keys, head)
    plain = q[..., :head]
    if part.own:
        plain[:, :, : part.first] = mine[0]
    if second is not None and part.asking.length:
        plain[:, :, part.first :] = _slots(second, part.asking, part.members, 1, heads)[0]
    k[:, :, part.before :, :head], v[:, :, part.before :] = mine[-2], mine[-1]
    if before is not None:
        past = before.view(-1, part.before, 2, heads, head).index_select(0, part.rows).permute(2, 3, 0, 1, 4)
        k[:, :, : part.before, :head], v[:, :, : part.before] = past[0], past[1]
    placed = plain + learned.place[:, None, None]
    if told and apart is not None and learned.other is not None and learned.segment is not None:
        own = (learned.segment * learned.other).sum(-1)
        differs = (plain * learned.other[:, None, None]).sum(-1) + own[:, None, None]
        q[..., head:] = differs.unsqueeze(-1) * apart[0]
        k[..., head:] = apart[1]
    plain += learned.content[:, None, None]
    return _Met(q, k, v, placed)


def _skewed(x: Tensor, keys: int) -> Tensor:
    """(H,b,t,R) -> (H,b,t,S): row i from its column t-1 - i on; a view."""
    heads, rows, length, _ = x.shape
    *outer, row, column = x.stride()
    return x.as_strided(
        (heads, rows, length, keys), (*outer, row - column, column), x.storage_offset() + (length - 1) * column
    )


def _weights(part: Part, met: _Met, table: Tensor) -> Tensor:
    """(H*b,Q,S)"""
    heads, rows, size, head = met.placed.shape
    scale, keys = head**-0.5, met.k.shape[2]
    far = product(met.placed.flatten(1, 2), table.transpose(1, 2), scale).view(heads, rows, size, -1)
    scores = far.new_empty(heads, rows, size, keys)
    if part.own:
        # Where nobody sees what comes later, these rows run on into the next; what is read there is hidden.
        scores[:, :, : part.first] = _skewed(far[:, :, : part.first], keys)
    if part.asking.length:
        columns = part.columns.clamp(max=far.shape[3] - 1).expand(heads, -1, -1, -1)
        scores[:, :, part.first :] = far[:, :, part.first :].gather(3, columns)
    del far
    flat = scores.flatten(0, 1).baddbmm_(met.q.flatten(0, 1), met.k.flatten(0, 1).transpose(1, 2), alpha=scale)
    if part.hidden is not None:
        scores.masked_fill_(part.hidden, -torch.inf)
    torch.softmax(flat, -1, out=flat)
    if part.blind is not None:
        scores.masked_fill_(part.blind, 0.0)
    return flat


class _Gradients(NamedTuple):
    q: Tensor
    """(H,b,Q,K)"""
    k: Tensor
    v: Tensor
    """(H,b,S,K)"""
    table: Tensor
    """(H,R,K)"""
    content: Tensor
    place: Tensor
    segment: Tensor | None
    other: Tensor | None
    """(H,K)"""


def _part_backward(
    part: Part, learned: Learned, grad: Tensor, met: _Met, weights: Tensor, drawn: Tensor | None, p: float
) -> _Gradients:
    """`grad` (H,b,Q,K)"""
    heads, rows, size, head = grad.shape
    keep = 1.0 if drawn is None else keep_scale(p)
    factor = head**-0.5 * keep
    flat = grad.flatten(0, 1)
    scores = torch.bmm(flat, met.v.flatten(0, 1).transpose(1, 2))
    used = weights
    if drawn is not None:
        used = kept(drawn, p, weights.dtype)
        scores.mul_(used)
        used.mul_(weights)
    v = product(used.transpose(1, 2), flat, keep)
    torch.ops.aten._softmax_backward_data.out(scores, weights, -1, weights.dtype, grad_input=scores)
    q = product(scores, met.k.flatten(0, 1), factor).view(heads, rows, size, -1)
    k = product(scores.transpose(1, 2), met.q[..., :head].flatten(0, 1), factor)
    far = _by_distance(part, scores.view(heads, rows, size, -1)).flatten(1, 2)[..., : part.distances]
    placed = product(far, learned.table(part), factor).view(heads, rows, size, head)
    table = product(far.transpose(1, 2), met.placed.flatten(1, 2), factor)
    plain = q[..., :head]
    content, place = plain.sum((1, 2)), placed.sum((1, 2))
    total, segment, other = placed.add_(plain), None, None
    if q.shape[3] > head and part.segments is not None and learned.other is not None and learned.segment is not None:
        differs = (q[..., head:] * part.segments[0]).sum(-1)
        whole = differs.sum((1, 2)).unsqueeze(-1)
        asked = met.placed.flatten(1, 2)
        other = (differs.flatten(1, 2).unsqueeze(1) @ asked).squeeze(1) + whole * (learned.segment - learned.place)
        segment = whole * learned.other
        total.addcmul_(differs.unsqueeze(-1), learned.other[:, None, None])
    return _Gradients(
        total, k.view(heads, rows, -1, head), v.view(heads, rows, -1, head), table, content, place, segment, other
    )


def _by_distance(part: Part, scores: Tensor) -> Tensor:
    """(H,b,Q,S) -> (H,b,Q,S+t-1): each where its distance has its column, zeros elsewhere."""
    heads, rows, size, keys = scores.shape
    far = scores.new_zeros(heads, rows, size, keys + part.keys.length - 1)
    if part.own:
        _skewed(far[:, :, : part.first], keys).copy_(scores[:, :, : part.first])
    if part.asking.length:
        columns = part.columns.expand(heads, -1, -1, -1)
        far[:, :, part.first :].scatter_(3, columns, scores[:, :, part.first :])
    return far


class StreamAttention(torch.autograd.Function):
    """(N,3*D) queries, keys and values of the rows, or (N,2*D) keys and values; (P,D) queries that ask alone; (B*M,2*D)
    keys and values of the past; then what was learned -> (N+P,D), or (P,D)."""

    @staticmethod
    def forward(
        ctx: Any,
        first: Tensor,
        second: Tensor | None,
        before: Tensor | None,
        content: Tensor,
        place: Tensor,
        up: Tensor | None,
        down: Tensor | None,
        segment: Tensor | None,
        other: Tensor | None,
        parts: Sequence[Part],
        own: bool,
        p: float,
    ) -> Tensor:
        learned = Learned(content, place, up, down, segment, other)
        start = len(first) if own else 0
        out = first.new_empty(start + (0 if second is None else len(second)), content.numel())
        saved: list[Tensor] = []
        for part in parts:
            met = _meet(part, first, second, before, learned)
            weights = _weights(part, met, learned.table(part))
            saved += [met.q, met.k, met.v, met.placed, weights]
            used, keep = weights, 1.0
            if level(p):
                saved.append(draw(weights.shape))
                used, keep = kept(saved[-1], p, weights.dtype).mul_(weights), keep_scale(p)
            mixed = product(used, met.v.flatten(0, 1), keep).view(*met.q.shape[:3], -1)
            for target, group, value in _streams(part, out, start, mixed):
                _write(target, group, part.members, value)
        ctx.parts, ctx.own, ctx.p, ctx.start = parts, own, p, start
        ctx.sizes = [None if each is None else each.shape for each in (first, second, before)]
        ctx.save_for_backward(content, place, up, down, segment, other, *saved)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        grad_out = gradients[0].contiguous()
        learned = Learned(*ctx.saved_tensors[:6])
        of_learned = [None if each is None else torch.zeros_like(each) for each in learned]
        first, second, before = (None if size is None else grad_out.new_zeros(size) for size in ctx.sizes)
        saved = iter(ctx.saved_tensors[6:])
        for part in ctx.parts:
            met, weights = _Met(*(next(saved) for _ in range(4))), next(saved)
            drawn = next(saved) if level(ctx.p) else None
            grad = torch.empty_like(met.placed)
            for source, group, value in _streams(part, grad_out, ctx.start, grad):
                value.copy_(_slots(source, group, part.members, 1, len(grad))[0])
            found = _part_backward(part, learned, grad, met, weights, drawn, ctx.p)
            _spread(part, found, first, second, before)
            _add(of_learned, part, found)
        return first, second, before, *of_learned, None, None, None


def _streams(part: Part, slots: Tensor, start: int, value: Tensor) -> Iterator[tuple[Tensor, Group, Tensor]]:
    """What belongs to the rows' own slots and to those that ask alone, which lie from `start` on."""
    if part.own:
        yield slots[:start], part.keys, value[:, :, : part.first]
    if part.asking.length:
        yield slots[start:], part.asking, value[:, :, part.first :]


def _spread(part: Part, found: _Gradients, first: Tensor | None, second: Tensor | None, before: Tensor | None) -> None:
    """Write the gradients of queries, keys and values to where these came from."""
    assert first is not None
    width = first.shape[1] // (3 if part.own else 2)
    own = [found.q[:, :, : part.first]] if part.own else []
    for number, value in enumerate((*own, found.k[:, :, part.before :], found.v[:, :, part.before :])):
        _write(first[:, number * width : (number + 1) * width], part.keys, part.members, value)
    if second is not None and part.asking.length:
        _write(second, part.asking, part.members, found.q[:, :, part.first :])
    if before is not None:
        past = torch.stack((found.k[:, :, : part.before], found.v[:, :, : part.before]))
        before.view(-1, part.before, 2 * width)[part.rows] = past.permute(2, 3, 0, 1, 4).flatten(2)


def _add(totals: list[Tensor | None], part: Part, found: _Gradients) -> None:
    """To the gradients of what was learned, in the order of `Learned`."""
    table = totals[3 if part.down else 2]
    assert table is not None
    longest = (table.shape[1] - part.before + 1) // 2
    table.narrow(1, longest - part.keys.length, part.distances).add_(found.table)
    for number, more in ((0, found.content), (1, found.place), (4, found.segment), (5, found.other)):
        total = totals[number]
        if total is not None and more is not None:
            total.add_(more)
