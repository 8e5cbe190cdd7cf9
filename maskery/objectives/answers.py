"""How wrong a token head is: one softmax over the vocabulary, or one over the first band and one over a later band.

In bands a target is asked twice at most: for its band (or itself, where it is of the first), and among that band's
tokens. Both are the cross-entropy of `cross_entropy.py`, so no scores of the whole vocabulary are ever made.

Shapes: n targets, E embedding width, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from maskery.errors import InputError
from maskery.model.bands import Part, band_of, log_probabilities
from maskery.model.heads import TokenHead
from maskery.objectives.cross_entropy import chunks, losses_and_hits, tied_cross_entropy


def token_loss(head: TokenHead, states: Tensor, tokens: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
    """The sum over all targets; `states` (n,E) are those that the head has transformed."""
    parts = head.parts(tokens)
    if parts is None:
        return tied_cross_entropy(states, tokens, head.bias, labels, smoothing)
    if smoothing:
        raise InputError(
            "answers are smoothed over the whole vocabulary, and this model's is in bands (model.cutoffs)",
            where="smoothing",
            repair="set it to 0, or take a model without cutoffs",
        )
    return _banded(states, parts, labels, head.cutoffs)


def _banded(states: Tensor, parts: list[Part], labels: Tensor, cutoffs: tuple[int, ...]) -> Tensor:
    band = band_of(labels, cutoffs)
    first = torch.where(band == 0, labels, band + (cutoffs[0] - 1))
    total = tied_cross_entropy(states, *parts[0], first)
    for number, (part, start) in enumerate(zip(parts[1:], cutoffs, strict=True), 1):
        chosen = (band == number).nonzero().squeeze(1)
        total = total + tied_cross_entropy(states.index_select(0, chosen), *part, labels[chosen] - start)
    return total


def token_losses_and_hits(head: TokenHead, states: Tensor, tokens: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """For evaluation: each target's loss (n,) and whether the likeliest token is the label (n,)."""
    parts = head.parts(tokens)
    if parts is None or not len(labels):
        return losses_and_hits(states, tokens, head.bias, labels)
    losses, hits = [], []
    for some in chunks(len(states), len(tokens)):
        said = log_probabilities(states[some], parts)
        losses.append(-said.gather(1, labels[some].unsqueeze(1)).squeeze(1))
        hits.append(said.argmax(1) == labels[some])
    return torch.cat(losses), torch.cat(hits)
