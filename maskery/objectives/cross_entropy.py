"""Cross-entropy over the vocabulary, where most of a small model's arithmetic is.

`TiedCrossEntropy` never holds the scores of more than a few hundred targets at once: a chunk's scores become its
loss, then (in the same buffer) their own gradient, which is multiplied into the gradients of states, matrix and bias
on the spot. So the backward pass is a multiplication by one number, and the memory is one chunk. Where a token is to be
drawn for each target, it is drawn on the way, from the same scores.

Under autocast the three products are computed in its numbers; scores, losses and gradients stay in those of the bias.

Shapes: n targets, E embedding width, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from maskery.objectives import sampling

CHUNK_BYTES = 64 << 20
"""The scores held at once."""


def chunks(targets: int, vocabulary: int) -> list[slice]:
    """Slices of equal size (within one) whose scores fit the chunk."""
    pieces = -(-targets // max(1, CHUNK_BYTES // (4 * vocabulary)))
    return [slice(targets * part // pieces, targets * (part + 1) // pieces) for part in range(pieces)]


def _products_in(device: str, otherwise: torch.dtype) -> torch.dtype:
    """The numbers in which matrices are multiplied."""
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else otherwise


def _scores(bias: Tensor, states: Tensor, matrix: Tensor) -> Tensor:
    """(n,V) in the bias's numbers."""
    if states.dtype == bias.dtype:
        return torch.addmm(bias, states, matrix.t())
    return torch.mm(states, matrix.t()).to(bias.dtype).add_(bias)


def _write_product(target: Tensor, a: Tensor, b: Tensor) -> None:
    """target = a @ b"""
    if target.dtype == a.dtype:
        torch.mm(a, b, out=target)
    else:
        target.copy_(torch.mm(a, b))


def _add_product(target: Tensor, a: Tensor, b: Tensor) -> None:
    """target += a @ b"""
    if target.dtype == a.dtype:
        target.addmm_(a, b)
    else:
        target.add_(torch.mm(a, b))


class TiedCrossEntropy(torch.autograd.Function):
    """States (n,E), matrix (V,E), bias (V,), labels (n,) -> the summed loss, and tokens (n,) drawn by numbers (n,) in
    [0, 1); without such numbers no tokens. `smoothing` is the share of a target that all tokens have alike."""

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        matrix: Tensor,
        bias: Tensor,
        labels: Tensor,
        uniform: Tensor | None,
        smoothing: float = 0.0,
    ) -> tuple[Tensor, Tensor]:
        wanted = any(ctx.needs_input_grad[:3])
        device = states.device.type
        dtype = _products_in(device, matrix.dtype)
        grad_states = torch.empty_like(states) if wanted else None
        grad_matrix = torch.zeros_like(matrix) if wanted else None
        grad_bias = torch.zeros_like(bias) if wanted else None
        total = torch.zeros((), dtype=torch.float64)
        drawn = torch.empty_like(labels) if uniform is not None else labels.new_empty(0)
        narrow_states, narrow_matrix = states.to(dtype), matrix.to(dtype)
        with torch.autocast(device, enabled=False):
            for part in chunks(states.shape[0], matrix.shape[0]):
                scores = _scores(bias, narrow_states[part], narrow_matrix)
                picked = labels[part].unsqueeze(1)
                answer = scores.gather(1, picked).squeeze(1)
                if smoothing:
                    answer = torch.lerp(answer, scores.mean(1), smoothing)
                highest = scores.amax(1, keepdim=True)
                scores.sub_(highest).exp_()
                mass = scores.sum(1, keepdim=True)
                losses = mass.squeeze(1).log() + highest.squeeze(1) - answer
                total += losses.sum(dtype=torch.float64).cpu()
                if uniform is not None:
                    drawn[part] = sampling.draw(scores, uniform[part])
                if grad_states is None or grad_matrix is None or grad_bias is None:
                    continue
                gradient = scores.div_(mass)
                gradient.scatter_add_(1, picked, torch.full_like(mass, smoothing - 1.0))
                if smoothing:
                    gradient.sub_(smoothing / matrix.shape[0])
                grad_bias.add_(gradient.sum(0))
                gradient = gradient.to(dtype)
                _write_product(grad_states[part], gradient, narrow_matrix)
                _add_product(grad_matrix, gradient.t(), narrow_states[part])
        if wanted:
            ctx.save_for_backward(grad_states, grad_matrix, grad_bias)
        ctx.mark_non_differentiable(drawn)
        return total.to(states.device, bias.dtype), drawn

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        grad_states, grad_matrix, grad_bias = ctx.saved_tensors
        outer = gradients[0]
        return grad_states * outer, grad_matrix * outer, grad_bias * outer, None, None, None


def _or_none(bias: Tensor | None, matrix: Tensor) -> Tensor:
    """A head without a bias has one that is always zero."""
    return matrix.new_zeros(matrix.shape[0]) if bias is None else bias


def tied_cross_entropy(
    states: Tensor, matrix: Tensor, bias: Tensor | None, labels: Tensor, smoothing: float = 0.0
) -> Tensor:
    bias = _or_none(bias, matrix)
    loss: Tensor = TiedCrossEntropy.apply(states, matrix, bias, labels, None, smoothing)[0]  # type: ignore[no-untyped-call]
    return loss


def tied_cross_entropy_and_draws(
    states: Tensor, matrix: Tensor, bias: Tensor | None, labels: Tensor, uniform: Tensor
) -> tuple[Tensor, Tensor]:
    """The loss, and for each target a token (n,) drawn from what its scores say; no gradient goes through the draw."""
    bias = _or_none(bias, matrix)
    found: tuple[Tensor, Tensor] = TiedCrossEntropy.apply(states, matrix, bias, labels, uniform)  # type: ignore[no-untyped-call]
    return found


def losses_and_hits(states: Tensor, matrix: Tensor, bias: Tensor | None, labels: Tensor) -> tuple[Tensor, Tensor]:
    """For evaluation: each target's loss (n,) and whether its highest score is the label (n,)."""
    bias = _or_none(bias, matrix)
    losses, hits = [], []
    for part in chunks(states.shape[0], matrix.shape[0]):
        scores = torch.addmm(bias, states[part], matrix.t())
        losses.append(torch.nn.functional.cross_entropy(scores, labels[part], reduction="none"))
        hits.append(scores.argmax(1) == labels[part])
    if not losses:
        return states.new_zeros(0), torch.zeros(0, dtype=torch.bool, device=states.device)
    return torch.cat(losses), torch.cat(hits)
