"""One draw from each of many distributions, by a number in [0, 1) that the feed made: no generator of its own.

The number, times the whole weight, falls into the interval of one token (inverse of the distribution function). To find
it, tokens are taken in blocks: first the block, then the token in it, so that sums run over a few hundred numbers and
not over a vocabulary. All sums but those of blocks are in float64. The draw is always below the whole weight, because
u * s rounds to less than s for every u <= 1 - 2**-53; so a token without weight is never drawn. Weights that are no
numbers give some token: the loss, which is no number either, is what tells of them.

Shapes: n distributions, V tokens, b tokens of a block.
"""

from __future__ import annotations

import torch
from torch import Tensor

_BLOCK = 128


def draw(weights: Tensor, uniform: Tensor) -> Tensor:
    """Weights (n,V), not negative, of any positive sum, and numbers (n,) in [0, 1) of float64 -> (n,) tokens."""
    whole = weights.shape[1] // _BLOCK * _BLOCK
    parts = [weights[:, :whole].view(len(weights), -1, _BLOCK).sum(2)] if whole else []
    if whole < weights.shape[1]:
        parts.append(weights[:, whole:].sum(1, keepdim=True))
    reached = torch.cat(parts, dim=1).double().cumsum(1)
    wanted = uniform.unsqueeze(1) * reached[:, -1:]
    block = torch.searchsorted(reached, wanted, right=True).clamp(max=reached.shape[1] - 1)
    before = torch.where(block > 0, reached.gather(1, (block - 1).clamp(min=0)), 0.0)
    tokens = block * _BLOCK + torch.arange(_BLOCK, device=weights.device)
    inside = weights.gather(1, tokens.clamp(max=weights.shape[1] - 1)).double()
    inside = inside.masked_fill(tokens >= weights.shape[1], 0.0).cumsum(1)
    # A block's weight summed in float32, and in another order, may be a little more.
    last = torch.nextafter(inside[:, -1:], inside.new_zeros(()))
    place = torch.searchsorted(inside, torch.minimum(wanted - before, last), right=True)
    return (block * _BLOCK + place).squeeze(1).clamp(max=weights.shape[1] - 1)
