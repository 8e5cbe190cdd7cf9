"""A vocabulary in bands (adaptive softmax, Grave et al. 2017), in Transformer-XL's form: the token vectors stay those
of the embedding, all of one width.

    p(w) = softmax(first band; one score a later band)[w]                                    w in the first band
    p(w) = softmax(first band; one score a later band)[band of w] * softmax(that band)[w]    otherwise

Bands are ranges of ids. Whatever they hold this is a distribution over all tokens; it saves work where the ids go by
frequency, so that most tokens are of the first band and the large last ones are seldom read.

Shapes: n states, E embedding width, V vocabulary, G bands behind the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class Part(NamedTuple):
    """What is chosen from at once: all of the first band and the later bands as wholes, or the tokens of one band."""

    matrix: Tensor
    bias: Tensor | None


def parts_of(
    tokens: Tensor, bias: Tensor | None, bands: Tensor, bands_bias: Tensor | None, cutoffs: Sequence[int]
) -> list[Part]:
    """The first choice, then the tokens of each later band."""
    edges = [0, *cutoffs, len(tokens)]
    sizes = [stop - start for start, stop in pairwise(edges)]
    first, *later = torch.split(tokens, sizes)  # one backward pass for all, where slices would have one each
    biases = [None] * len(sizes) if bias is None else list(torch.split(bias, sizes))
    both = None if biases[0] is None or bands_bias is None else torch.cat((biases[0], bands_bias))
    return [Part(torch.cat((first, bands)), both), *(Part(*each) for each in zip(later, biases[1:], strict=True))]


def log_probabilities(states: Tensor, parts: Sequence[Part]) -> Tensor:
    """(...,E) -> (...,V)"""
    first, *later = (F.linear(states, part.matrix, part.bias).log_softmax(-1) for part in parts)
    bands = first[..., first.shape[-1] - len(later) :].unbind(-1)
    said = [each + band.unsqueeze(-1) for each, band in zip(later, bands, strict=True)]
    return torch.cat((first[..., : first.shape[-1] - len(later)], *said), -1)


def band_of(labels: Tensor, cutoffs: Sequence[int]) -> Tensor:
    """(n,) tokens -> (n,) the numbers of their bands."""
    return torch.bucketize(labels, torch.tensor(cutoffs, device=labels.device), right=True)
