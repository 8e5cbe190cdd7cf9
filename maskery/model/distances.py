"""Attention with positions told by distance, for packed rows whose position numbers count up by one.

The distance k - q of a pair of slots then depends on the slots alone. With the queries of a row in reversed order,
query number i and key number j are i + j - (t - 1) apart: the vectors that query i adds to the keys are rows
i .. i + t - 1 of one table of all 2t - 1 distances, a window that moves on by one row from query to query. So the whole
three-dimensional array of vectors is a view of that table, and products with it are matrix products, one for each query
and all rows and heads at once: no gather, no scatter, and nothing larger than the scores is written.

Shapes: N packed slots, D width, H heads, K head width, b rows and t slots of one group, T slots of the longest row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from maskery.model.blocks import room
from maskery.model.dropout import draw, keep_scale, kept, level
from maskery.model.kernels import merge, product, softmax, split_heads, thinned
from maskery.model.layout import Group

_BLOCK = 32
"""Queries whose share of a table's gradient is added up at once."""


def window(table: Tensor, length: int) -> Tensor:
    """(2T-1,K) of all distances -> (t,t,K): what query i of the reversed ones and key j have; a view."""
    longest = (len(table) + 1) // 2
    width, step = table.shape[1], table.stride(0)
    start = table.storage_offset() + (longest - length) * step
    return table.as_strided((length, length, width), (step, step, table.stride(1)), start)


def _by_query(x: Tensor) -> Tensor:
    """(b*H,t,...) -> (t,b*H,...), a view."""
    return x.transpose(0, 1)


def _skewed(block: Tensor, columns: int) -> Tensor:
    """(..,n,n+columns-1,K) -> (..,n,columns,K): row i from its column i on; a view, for writing."""
    *outer, rows, _, width = block.shape
    *steps, row, column, one = block.stride()
    return block.as_strided((*outer, rows, columns, width), (*steps, row + column, column, one))


@dataclass(frozen=True)
class _Known:
    """The tables of one group: windows (t,t,K) for keys and values, and the bias (H,t,t)."""

    keys: Tensor | None
    values: Tensor | None
    bias: Tensor | None


def _known(tables: Sequence[Tensor | None], length: int) -> _Known:
    bias, keys, values = tables
    return _Known(
        keys=None if keys is None else window(keys, length),
        values=None if values is None else window(values, length),
        bias=None if bias is None else window(bias, length).permute(2, 0, 1).contiguous(),
    )


def _weights(q: Tensor, k: Tensor, known: _Known, allowed: Tensor | None, rows: int, scale: float) -> Tensor:
    scores = product(q, k.transpose(1, 2), scale)
    if known.keys is not None:
        _by_query(scores).baddbmm_(_by_query(q), known.keys.transpose(1, 2), alpha=scale)
    if known.bias is not None:
        scores.view(rows, *known.bias.shape).add_(known.bias)
    return softmax(scores, None if allowed is None else allowed.flip(2), rows)


def _mixed(weights: Tensor, v: Tensor, known: _Known, p: float, saved: list[Tensor]) -> Tensor:
    used, keep = weights, 1.0
    if level(p):
        numbers = draw(weights.shape)
        saved.append(numbers)
        used, keep = kept(numbers, p, weights.dtype).mul_(weights), keep_scale(p)
    out = product(used, v, keep)
    if known.values is not None:
        _by_query(out).baddbmm_(_by_query(used), known.values, alpha=keep)
    return out


def _of_window(left: Tensor, right: Tensor, alpha: float) -> Tensor:
    """(b*H,t,t) and (b*H,t,K) -> (2t-1,K): the gradient of a table whose window was multiplied with `left`."""
    _, length, width = right.shape
    found = right.new_zeros(2 * length - 1, width)
    for start in range(0, length, _BLOCK):
        asking = slice(start, min(start + _BLOCK, length))
        rows = asking.stop - start
        block = right.new_zeros(rows, rows + length - 1, width)
        _skewed(block, length).baddbmm_(_by_query(left)[asking].transpose(1, 2), _by_query(right)[asking], alpha=alpha)
        found[start : start + rows + length - 1] += block.sum(0)
    return found


def _of_bias(grad_scores: Tensor, rows: int, heads: int, alpha: float) -> Tensor:
    """(b*H,t,t) -> (2t-1,H)"""
    length = grad_scores.shape[1]
    summed = grad_scores.view(rows, heads, length, length).sum(0)
    block = summed.new_zeros(heads, length, 2 * length - 1, 1)
    _skewed(block, length).copy_(summed.unsqueeze(-1))
    return block.sum(1).squeeze(-1).t().mul(alpha)


@dataclass(frozen=True)
class _Gradients:
    q: Tensor
    k: Tensor
    v: Tensor
    tables: tuple[Tensor | None, Tensor | None, Tensor | None]
    """Of bias, keys and values, where they are wanted; (2t-1, ·) each."""


def _group_backward(
    grad: Tensor,
    q: Tensor,
    kv: Tensor,
    weights: Tensor,
    drawn: Tensor | None,
    known: _Known,
    wanted: Sequence[bool],
    heads: int,
    p: float,
) -> _Gradients:
    """As in kernels; `grad` and the queries are reversed."""
    k, v = kv.unbind()
    keep = 1.0 if drawn is None else keep_scale(p)
    grad_weights = torch.bmm(grad, v.transpose(1, 2))
    if known.values is not None:
        _by_query(grad_weights).baddbmm_(_by_query(grad), known.values.transpose(1, 2))
    used = thinned(weights, grad_weights, drawn, p)
    grad_v = product(used.transpose(1, 2), grad, keep)
    of_values = _of_window(used, grad, keep) if wanted[2] else None
    torch.ops.aten._softmax_backward_data.out(grad_weights, weights, -1, weights.dtype, grad_input=grad_weights)
    scale = q.shape[-1] ** -0.5 * keep
    grad_q = product(grad_weights, k, scale)
    if known.keys is not None:
        _by_query(grad_q).baddbmm_(_by_query(grad_weights), known.keys, alpha=scale)
    grad_k = product(grad_weights.transpose(1, 2), q, scale)
    of_keys = _of_window(grad_weights, q, scale) if wanted[1] else None
    of_bias = _of_bias(grad_weights, len(q) // heads, heads, keep) if wanted[0] else None
    return _Gradients(grad_q.flip(1), grad_k, grad_v, (of_bias, of_keys, of_values))


class DistanceAttention(torch.autograd.Function):
    """Self-attention of packed rows: (N, 3*D) queries, keys and values -> (N, D). The three tables have a row for each
    distance from 1 - T to T - 1: a bias (2T-1,H), and vectors for keys and values (2T-1,K); in the numbers of qkv."""

    @staticmethod
    def forward(
        ctx: Any,
        qkv: Tensor,
        bias: Tensor | None,
        keys: Tensor | None,
        values: Tensor | None,
        groups: Sequence[Group],
        allowed: Sequence[Tensor | None],
        heads: int,
        p: float,
    ) -> Tensor:
        width = qkv.shape[1] // 3
        out = room(qkv, width, groups[-1].stop if groups else 0)
        ctx.groups, ctx.heads, ctx.p = groups, heads, p
        tables = (bias, keys, values)
        saved: list[Tensor] = []
        for group, mask in zip(groups, allowed, strict=True):
            slots = qkv[group.start : group.stop]
            q = split_heads(slots[:, :width], group.rows, 1, heads)[0].flatten(0, 1).flip(1)
            kv = split_heads(slots[:, width:], group.rows, 2, heads).flatten(1, 2)
            k, v = kv.unbind()
            known = _known(tables, group.length)
            weights = _weights(q, k, known, mask, group.rows, q.shape[-1] ** -0.5)
            saved += [q, kv, weights]
            merge(out[group.start : group.stop], _mixed(weights, v, known, p, saved).flip(1), group.rows, heads)
        ctx.save_for_backward(*tables, *saved)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (grad_out,) = gradients
        grad_qkv = room(grad_out, 3 * grad_out.shape[1], ctx.groups[-1].stop if ctx.groups else 0)
        tables, wanted = ctx.saved_tensors[:3], ctx.needs_input_grad[1:4]
        of_tables = [torch.zeros_like(each) if need else None for each, need in zip(tables, wanted, strict=True)]
        saved = iter(ctx.saved_tensors[3:])
        for group in ctx.groups:
            q, kv, weights = next(saved), next(saved), next(saved)
            drawn = next(saved) if level(ctx.p) else None
            grad = split_heads(grad_out[group.start : group.stop], group.rows, 1, ctx.heads)[0].flatten(0, 1).flip(1)
            known = _known(tables, group.length)
            found = _group_backward(grad, q, kv, weights, drawn, known, wanted, ctx.heads, ctx.p)
            target = grad_qkv[group.start : group.stop].view(group.rows, group.length, 3, -1)
            for part, value in enumerate((found.q, found.k, found.v)):
                merge(target[:, :, part], value, group.rows, ctx.heads)
            for total, more in zip(of_tables, found.tables, strict=True):
                if total is not None and more is not None:
                    outside = (len(total) - len(more)) // 2
                    total[outside : outside + len(more)] += more
        return grad_qkv, *of_tables, None, None, None, None
