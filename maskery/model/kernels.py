"""The ways to compute attention, all giving the same numbers. A query that may see nothing yields zeros in each.

- `PackedAttention`: matmul, softmax, matmul over packed rows in blocks of like length, with its own backward pass that
  works in place. The quick one on a CPU for rows up to a few hundred slots, and with attention dropout at any length.
- `in_use`: the same without a backward pass, and quicker.
- `SelectedAttention`: the same where only some slots ask, in the last layer.
- `DistanceAttention` (maskery.model.distances): the first with positions told by distance.
- `CrossedAttention` (maskery.model.crosswise): the first where content and distances meet crosswise.
- `StreamAttention` (maskery.model.streams): both with the positions of Transformer-XL, behind a past, for two streams.
- `sdpa`: torch's fused kernel: longer rows without dropout.
- `windowed`: the same in chunks, for local attention.
- `explicit`: plain differentiable operations; takes score and value terms of a position scheme and hands out weights.
- `flex`: flex_attention with a block mask, on a GPU (a CPU has its forward pass only).

Shapes: N packed slots, D width, H heads, K head width, b rows and t slots of one group, Q queries, S keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from maskery.model.blocks import Block, room
from maskery.model.dropout import draw, dropout, keep_scale, kept, level
from maskery.model.layout import Group
from maskery.model.positions import Places, PositionScheme, Project
from maskery.model.visibility import Predicate

SDPA_FROM = 256
"""Rows of at least this many slots go to torch's fused kernel when there is no attention dropout."""


def choose(
    length: int, device: torch.device, p: float, in_attention: bool, capture: bool, by_distance: bool = False
) -> str:
    """The kernel for a group of rows, by measured speed. `by_distance`: the positions that act in attention tell
    distances alone, and these are the same in every row."""
    if capture or (in_attention and not by_distance):
        return "explicit"
    if device.type != "cpu":
        return "explicit" if in_attention or level(p) else "flex"
    if by_distance:
        return "distance"
    return "sdpa" if length >= SDPA_FROM and level(p) == 0 else "packed"


def split_heads(x: Tensor, rows: int, parts: int, heads: int) -> Tensor:
    """(rows*t, parts*D) -> contiguous (parts, rows, H, t, K)."""
    split = x.view(rows, -1, parts, heads, x.shape[1] // (parts * heads))
    return split.permute(2, 0, 3, 1, 4).contiguous()


def product(a: Tensor, b: Tensor, alpha: float) -> Tensor:
    """alpha * a @ b without a pass over the result for alpha."""
    return torch.baddbmm(a.new_empty(1, 1, 1), a, b, beta=0.0, alpha=alpha)


def _weights(q: Tensor, k: Tensor, allowed: Tensor | None, rows: int, scale: float) -> Tensor:
    """(b*H,t,K) queries and keys -> (b*H,t,t) softmax weights, computed in one buffer."""
    return softmax(product(q, k.transpose(1, 2), scale), allowed, rows)


def softmax(scores: Tensor, allowed: Tensor | None, rows: int) -> Tensor:
    """(b*H,t,t) scores -> weights, written over them; zeros for a query that may see nothing."""
    if allowed is None:
        return torch.softmax(scores, -1, out=scores)
    by_row = scores.view(rows, -1, *scores.shape[1:])
    by_row.masked_fill_(~allowed, -torch.inf)
    torch.softmax(scores, -1, out=scores)
    return by_row.masked_fill_(~allowed.any(-1, keepdim=True), 0.0).view_as(scores)


def _mix(weights: Tensor, v: Tensor, p: float, saved: list[Tensor]) -> Tensor:
    """Weights times values with dropout on the weights; what was drawn is remembered."""
    if not level(p):
        return torch.bmm(weights, v)
    numbers = draw(weights.shape)
    saved.append(numbers)
    return product(kept(numbers, p, weights.dtype).mul_(weights), v, keep_scale(p))


def thinned(weights: Tensor, grad_weights: Tensor, drawn: Tensor | None, p: float) -> Tensor:
    """The weights that dropout left, but for its scale; their gradient is thinned in place."""
    if drawn is None:
        return weights
    used = kept(drawn, p, weights.dtype)
    grad_weights.mul_(used)
    return used.mul_(weights)


def _group_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, weights: Tensor, drawn: Tensor | None, scale: float, p: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of one group's queries, keys and values; all (b*H,·,·)."""
    keep = 1.0 if drawn is None else keep_scale(p)
    grad_weights = torch.bmm(grad, v.transpose(1, 2))
    used = thinned(weights, grad_weights, drawn, p)
    grad_v = product(used.transpose(1, 2), grad, keep)
    # dS = w * (dw - sum(dw * w)), written over dw; the scales are linear and go into the next products.
    torch.ops.aten._softmax_backward_data.out(grad_weights, weights, -1, weights.dtype, grad_input=grad_weights)
    grad_q = product(grad_weights, k, scale * keep)
    grad_k = product(grad_weights.transpose(1, 2), q, scale * keep)
    return grad_q, grad_k, grad_v


class PackedAttention(torch.autograd.Function):
    """Self-attention of packed rows: (N, 3*D) queries, keys and values -> (N, D)."""

    @staticmethod
    def forward(ctx: Any, qkv: Tensor, blocks: Sequence[Block], heads: int, p: float) -> Tensor:
        width = qkv.shape[1] // 3
        out = room(qkv, width, blocks[-1].stop if blocks else 0)
        ctx.blocks, ctx.heads, ctx.p = blocks, heads, p
        ctx.scale = (width // heads) ** -0.5
        saved: list[Tensor] = []
        for block in blocks:
            parts = split_heads(block.spread(qkv), block.rows, 3, heads).flatten(1, 2)
            q, k, v = parts.unbind()
            weights = _weights(q, k, block.allowed, block.rows, ctx.scale)
            saved += [parts, weights]
            block.put(out, _mix(weights, v, p, saved), heads)
        ctx.save_for_backward(*saved)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        (grad_out,) = gradients
        width = grad_out.shape[1]
        grad_qkv = room(grad_out, 3 * width, ctx.blocks[-1].stop if ctx.blocks else 0)
        saved = iter(ctx.saved_tensors)
        for block in ctx.blocks:
            (q, k, v), weights = next(saved).unbind(), next(saved)
            drawn = next(saved) if level(ctx.p) else None
            grad = split_heads(block.spread_gradient(grad_out), block.rows, 1, ctx.heads)[0].flatten(0, 1)
            parts = _group_backward(grad, q, k, v, weights, drawn, ctx.scale, ctx.p)
            for part, value in enumerate(parts):
                block.put(grad_qkv[:, part * width : (part + 1) * width], value, ctx.heads)
        return grad_qkv, None, None, None


STEEP = 80.0
"""Scores between its negative and this may be exponents as they are: float32 holds e to it, and sums of many such."""


def in_use(qkv: Tensor, blocks: Sequence[Block], heads: int) -> Tensor:
    """What `PackedAttention` gives, where nobody asks for a gradient and nothing is dropped."""
    out = room(qkv, qkv.shape[1] // 3, blocks[-1].stop if blocks else 0)
    scale = (out.shape[1] // heads) ** -0.5
    for block in blocks:
        q, k, v = split_heads(block.spread(qkv), block.rows, 3, heads).flatten(1, 2).unbind()
        block.put(out, _looked(product(q, k.transpose(1, 2), scale), v, block), heads)
    return out


def _looked(scores: Tensor, v: Tensor, block: Block) -> Tensor:
    """(b*H,t,t) scores and (b*H,t,K) values -> (b*H,t,K). A softmax of short rows costs more than the products around
    it. Powers of flat numbers are quick, and dividing the result by their sums is the same, as long as none of them is
    too large to hold; and every query has to see somebody."""
    low, high = torch.aminmax(scores) if scores.numel() else (0.0, 0.0)
    if block.blind or scores.dtype != torch.float32 or max(-float(low), float(high)) > STEEP:
        return torch.bmm(softmax(scores, block.allowed, block.rows), v)
    if block.allowed is not None:
        scores.view(block.rows, -1, *scores.shape[1:]).masked_fill_(~block.allowed, -torch.inf)
    scores.exp_()
    return torch.bmm(scores, v).div_(scores.sum(-1, keepdim=True))


class SelectedAttention(torch.autograd.Function):
    """Attention of some slots over all: (M, D) queries, (N, 2*D) keys and values -> (M, D)."""

    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, kv: Tensor, asking: Sequence[Group], blocks: Sequence[Block], heads: int, p: float
    ) -> Tensor:
        out = torch.empty_like(queries)
        ctx.asking, ctx.blocks, ctx.heads, ctx.p, ctx.slots = asking, blocks, heads, p, len(kv)
        ctx.scale = (queries.shape[1] // heads) ** -0.5
        saved: list[Tensor] = []
        for ask, block in zip(asking, blocks, strict=True):
            if not ask.length:
                continue
            q = split_heads(queries[ask.start : ask.stop], ask.rows, 1, heads)[0].flatten(0, 1)
            parts = split_heads(block.spread(kv), block.rows, 2, heads).flatten(1, 2)
            k, v = parts.unbind()
            weights = _weights(q, k, block.allowed, block.rows, ctx.scale)
            saved += [q, parts, weights]
            merge(out[ask.start : ask.stop], _mix(weights, v, p, saved), ask.rows, heads)
        ctx.save_for_backward(*saved)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (grad_out,) = gradients
        width = grad_out.shape[1]
        grad_queries = torch.empty_like(grad_out)
        grad_kv = grad_out.new_zeros(ctx.slots, 2 * width)
        saved = iter(ctx.saved_tensors)
        for ask, block in zip(ctx.asking, ctx.blocks, strict=True):
            if not ask.length:
                continue
            q, (k, v), weights = next(saved), next(saved).unbind(), next(saved)
            drawn = next(saved) if level(ctx.p) else None
            grad = split_heads(grad_out[ask.start : ask.stop], ask.rows, 1, ctx.heads)[0].flatten(0, 1)
            grad_q, grad_k, grad_v = _group_backward(grad, q, k, v, weights, drawn, ctx.scale, ctx.p)
            merge(grad_queries[ask.start : ask.stop], grad_q, ask.rows, ctx.heads)
            for part, value in enumerate((grad_k, grad_v)):
                block.put(grad_kv[:, part * width : (part + 1) * width], value, ctx.heads)
        return grad_queries, grad_kv, None, None, None, None


def merge(target: Tensor, x: Tensor, rows: int, heads: int) -> None:
    """Write (b*H,t,K) into the slots of a group, heads side by side."""
    by_head = x.view(rows, heads, x.shape[1], x.shape[2]).transpose(1, 2)
    target.view(rows, x.shape[1], heads, x.shape[2]).copy_(by_head)


def explicit(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    allowed: Tensor | None,
    p: float,
    scheme: PositionScheme | None = None,
    layer: int = 0,
    places: Places | None = None,
    project: Project | None = None,
) -> tuple[Tensor, Tensor]:
    """(b,H,Q,K), (b,H,S,K), (b,H,S,K) -> output (b,H,Q,K) and the weights (b,H,Q,S) before dropout."""
    acting = None if scheme is None or places is None or not scheme.in_attention else (scheme, places)
    if acting is not None:
        q = _or(acting[0].turn(layer, q, acting[1].q_pos), q)
        k = _or(acting[0].turn(layer, k, acting[1].k_pos), k)
    scale = (q.shape[-1] * (1 if acting is None else acting[0].terms)) ** -0.5
    lean = None if acting is None else acting[0].lean(layer)
    met = q if lean is None else q + lean.unsqueeze(1)
    scores = (met * scale) @ k.transpose(-1, -2)
    if acting is not None:
        term = acting[0].scores(layer, q * scale, acting[1])
        scores = scores if term is None else scores + term
        term = None if project is None else acting[0].meets(layer, q * scale, k, acting[1], project)
        scores = scores if term is None else scores + term
    if allowed is None:
        weights = torch.softmax(scores, -1)
    else:
        blind = ~allowed.any(-1, keepdim=True)
        # A blind query gets finite scores, then zero weights: no NaN enters the backward pass.
        scores = scores.masked_fill(~allowed & ~blind, -torch.inf)
        weights = torch.softmax(scores, -1).masked_fill(blind, 0.0)
    thinned = dropout(weights, p)
    out = thinned @ v
    if acting is not None:
        term = acting[0].values(layer, thinned, acting[1])
        out = out if term is None else out + term
    return out, weights


def _or(value: Tensor | None, otherwise: Tensor) -> Tensor:
    return otherwise if value is None else value


def sdpa(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)


def windowed(q: Tensor, k: Tensor, v: Tensor, reach: int) -> Tensor:
    """The same where each of all slots attends to `reach` slots on either side: queries in chunks, each with the keys
    that some of them attend to, so that the cost grows with the length of a row and not with its square."""
    length, size = q.shape[2], max(SDPA_FROM // 2, 2 * reach)
    place = torch.arange(length, device=q.device)
    parts = []
    for start in range(0, length, size):
        stop = min(start + size, length)
        first, last = max(0, start - reach), min(length, stop + reach)
        near = (place[start:stop, None] - place[first:last]).abs() <= reach
        parts.append(sdpa(q[:, :, start:stop], k[:, :, first:last], v[:, :, first:last], near))
    return torch.cat(parts, 2)


@cache
def _compiled_flex() -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention)


def flex(q: Tensor, k: Tensor, v: Tensor, predicate: Predicate) -> Tensor:
    """For a GPU: torch 2.13 refuses flex_attention's backward pass on a CPU (where its forward pass is only tested)."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    if predicate.sees_all:
        return F.scaled_dot_product_attention(q, k, v)
    block = create_block_mask(predicate.mask_mod, q.shape[0], None, q.shape[2], k.shape[2], device=str(q.device))
    kernel = _compiled_flex() if q.is_cuda else flex_attention
    out: Tensor = kernel(q, k, v, block_mask=block)
    return out
