"""Disentangled attention of packed rows whose position numbers count up by one, with its own backward pass.

The distance of a pair of slots then depends on the slots alone. Products of the queries with what stands for all 2t - 1
distances are a grid (t, 2t-1) for each row and head, in which the key k of query q is found k - q columns from the
middle: the scores of all pairs are a view of it, and those of the keys with distances a view of theirs, turned. So
nothing is gathered, and nothing but the scores is kept for the way back.

Shapes: N packed slots, D width, H heads, K head width, b rows and t slots of one group, T slots of the longest row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from maskery.model.blocks import room
from maskery.model.dropout import draw, keep_scale, kept, level
from maskery.model.kernels import merge, product, softmax, split_heads, thinned
from maskery.model.layout import Group


class Crossed(NamedTuple):
    """What one layer makes of the distances 1 - T .. T - 1 (key's slot minus query's), (H,2T-1,K) each."""

    asked: Tensor
    """Of which queries ask."""
    asking: Tensor
    """Which ask keys; of the same distances, so that a key reads them from the last to the first."""

    def within(self, length: int) -> Crossed:
        """Of rows of `length`."""
        outside = (self.asked.shape[1] + 1) // 2 - length
        return Crossed(*(each[:, outside : outside + 2 * length - 1] for each in self))


def _by_heads(x: Tensor, rows: int) -> Tensor:
    """(b*H,t,K) -> (H,b*t,K)"""
    split = x.view(rows, -1, *x.shape[1:])
    return split.transpose(0, 1).reshape(split.shape[1], -1, x.shape[2])


def _pairs(grid: Tensor, rows: int, length: int) -> Tensor:
    """(H,b*t,2t-1) -> (b,H,t,t): slot i and, of all distances, that of slot j; a view."""
    heads, wide = len(grid), 2 * length - 1
    steps = (length * wide, rows * length * wide, wide - 1, 1)
    return grid.as_strided((rows, heads, length, length), steps, grid.storage_offset() + length - 1)


def _scores(q: Tensor, k: Tensor, table: Crossed, rows: int, scale: float) -> Tensor:
    """(b*H,t,K) -> (b*H,t,t)"""
    length = q.shape[1]
    scores = product(q, k.transpose(1, 2), scale)
    by_row = scores.view(rows, -1, length, length)
    met = product(_by_heads(q, rows), table.asked.transpose(1, 2), scale)
    by_row.add_(_pairs(met, rows, length))
    met = product(_by_heads(k, rows), table.asking.flip(1).transpose(1, 2), scale)
    by_row.add_(_pairs(met, rows, length).transpose(2, 3))
    return scores


def _back(grad_pairs: Tensor, x: Tensor, table: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Gradients of (b*H,t,K) slots and of a table (H,2t-1,K) from those of their pairs (b,H,t,t)."""
    rows, heads, length, _ = grad_pairs.shape
    grid = x.new_zeros(heads, rows * length, 2 * length - 1)
    _pairs(grid, rows, length).copy_(grad_pairs)
    of_slots = product(grid, table, scale).view(heads, rows, length, -1).transpose(0, 1)
    return of_slots.reshape(x.shape), product(grid.transpose(1, 2), _by_heads(x, rows), scale)


class CrossedAttention(torch.autograd.Function):
    """Self-attention of packed rows: (N,3*D) queries, keys and values -> (N,D). The tables are those of `Crossed`, in
    the numbers of qkv."""

    @staticmethod
    def forward(
        ctx: Any,
        qkv: Tensor,
        asked: Tensor,
        asking: Tensor,
        groups: Sequence[Group],
        allowed: Sequence[Tensor | None],
        heads: int,
        scale: float,
        p: float,
    ) -> Tensor:
        out = room(qkv, qkv.shape[1] // 3, groups[-1].stop if groups else 0)
        ctx.groups, ctx.heads, ctx.scale, ctx.p = groups, heads, scale, p
        saved: list[Tensor] = []
        for group, mask in zip(groups, allowed, strict=True):
            parts = split_heads(qkv[group.start : group.stop], group.rows, 3, heads).flatten(1, 2)
            q, k, v = parts.unbind()
            table = Crossed(asked, asking).within(group.length)
            weights = softmax(_scores(q, k, table, group.rows, scale), mask, group.rows)
            saved += [parts, weights]
            used, keep = weights, 1.0
            if level(p):
                saved.append(draw(weights.shape))
                used, keep = kept(saved[-1], p, weights.dtype).mul_(weights), keep_scale(p)
            merge(out[group.start : group.stop], product(used, v, keep), group.rows, heads)
        ctx.save_for_backward(asked, asking, *saved)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (grad_out,) = gradients
        grad_qkv = room(grad_out, 3 * grad_out.shape[1], ctx.groups[-1].stop if ctx.groups else 0)
        tables, saved = Crossed(*ctx.saved_tensors[:2]), iter(ctx.saved_tensors[2:])
        of_tables = Crossed(*(torch.zeros_like(each) for each in tables))
        for group in ctx.groups:
            (q, k, v), weights = next(saved).unbind(), next(saved)
            drawn = next(saved) if level(ctx.p) else None
            keep = 1.0 if drawn is None else keep_scale(ctx.p)
            grad = split_heads(grad_out[group.start : group.stop], group.rows, 1, ctx.heads)[0].flatten(0, 1)
            pairs = torch.bmm(grad, v.transpose(1, 2))
            used = thinned(weights, pairs, drawn, ctx.p)
            grad_v = product(used.transpose(1, 2), grad, keep)
            torch.ops.aten._softmax_backward_data.out(pairs, weights, -1, weights.dtype, grad_input=pairs)
            table, total = tables.within(group.length), of_tables.within(group.length)
            by_row, scale = pairs.view(group.rows, ctx.heads, *pairs.shape[1:]), ctx.scale * keep
            more_q, of_asked = _back(by_row, q, table.asked, scale)
            more_k, of_asking = _back(by_row.transpose(2, 3), k, table.asking.flip(1), scale)
            total.asked.add_(of_asked)
            total.asking.add_(of_asking.flip(1))
            grad_q = product(pairs, k, scale).add_(more_q)
            grad_k = product(pairs.transpose(1, 2), q, scale).add_(more_k)
            target = grad_qkv[group.start : group.stop].view(group.rows, group.length, 3, -1)
            for part, value in enumerate((grad_q, grad_k, grad_v)):
                merge(target[:, :, part], value, group.rows, ctx.heads)
        return grad_qkv, *of_tables, None, None, None, None, None
