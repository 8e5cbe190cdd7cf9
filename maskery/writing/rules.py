"""What is done to the scores of the next token before one is chosen: pure functions.

The penalty for repetition changes scores; everything else forbids tokens (score -inf), so that it does not matter
whether it acts before or after scores are made to log-probabilities.

Shapes: B rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from maskery.objectives.sampling import draw
from maskery.randomness import Keys, uniform

NONE = float("-inf")


def penalised(scores: Tensor, histories: Sequence[Sequence[int]], penalty: float) -> Tensor:
    """(B,V) scores, those of tokens that each history holds made smaller (Keskar et al. 2019)."""
    if penalty == 1.0:
        return scores
    out = scores.clone()
    for row, history in enumerate(histories):
        seen = torch.tensor(sorted(set(history)), dtype=torch.long, device=scores.device)
        mine = scores[row, seen]
        out[row, seen] = torch.where(mine > 0, mine / penalty, mine * penalty)
    return out


def repeating(history: Sequence[int], size: int) -> set[int]:
    """The tokens that would end a stretch of `size` tokens which the history holds already."""
    if size < 1 or len(history) < size - 1:
        return set()
    tail = tuple(history[len(history) - size + 1 :])
    starts = range(len(history) - size + 1)
    return {history[start + size - 1] for start in starts if tuple(history[start : start + size - 1]) == tail}


def forbidden(scores: Tensor, tokens: Sequence[set[int]]) -> Tensor:
    """(B,V) scores without the tokens of each row."""
    places = [(row, token) for row, mine in enumerate(tokens) for token in sorted(mine)]
    if not places:
        return scores
    out = scores.clone()
    row, token = torch.tensor(places, device=scores.device).unbind(1)
    out[row, token] = NONE
    return out


def most_probable(scores: Tensor, top_k: int) -> Tensor:
    """(B,V) scores of the `top_k` largest, and of those that equal the last of them; 0 = all."""
    if top_k < 1 or top_k >= scores.shape[1]:
        return scores
    least = scores.topk(top_k).values[:, -1:]
    return scores.masked_fill(scores < least, NONE)


def nucleus(scores: Tensor, top_p: float) -> Tensor:
    """(B,V) scores of the smallest set of most probable tokens that together have `top_p` (Holtzman et al. 2020)."""
    if top_p >= 1.0:
        return scores
    ordered, token = scores.sort(dim=1, descending=True, stable=True)
    share = ordered.softmax(1, dtype=torch.float64)
    before = share.cumsum(1) - share
    dropped = (before >= top_p).scatter(1, token, before >= top_p)
    return scores.masked_fill(dropped, NONE)


def drawn(scores: Tensor, row_keys: Keys, step: int) -> Tensor:
    """(B,) tokens: one number in [0, 1) for each row, which depends on the row's key and the step alone."""
    numbers = torch.from_numpy(uniform(row_keys, "next token", step)).to(scores.device)
    return draw(scores.softmax(1).nan_to_num(0.0), numbers)
