"""Word vectors of a small text, from how much more often two words meet than by chance.

The positive pointwise mutual information of a word and a neighbour is max(0, log p(w, c) / (p(w) p(c)^a)); a = 0.75
keeps rare neighbours from weighing too much (Levy, Goldberg and Dagan 2015). Its largest singular vectors, each scaled
by the root of its value, are the words' vectors. Where there are only a few million words this gives more sensible
neighbours than vectors that are learnt by many passes, and takes seconds.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from maskery.words.cooccurrence import Pairs, count_pairs
from maskery.words.vocabulary import Told, Words

_SMOOTHING = 0.75
_ROUNDS = 4
"""Power iterations of the decomposition."""


def ppmi_vectors(
    words: Words, *, width: int = 100, window: int = 4, seed: int = 0, progress: Told | None = None
) -> NDArray[np.float32]:
    """(V, width) one vector a word."""
    size = len(words.words)
    matrix = _ppmi(count_pairs(words, window, progress), size)
    width = min(width, size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        left, values, _ = torch.svd_lowrank(matrix, q=width, niter=_ROUNDS)
    vectors: NDArray[np.float32] = (left * values.sqrt()).numpy().astype(np.float32)
    return vectors


def _ppmi(pairs: Pairs, size: int) -> torch.Tensor:
    """(V, V) sparse."""
    apart = pairs.one != pairs.other  # a pair is kept once, the matrix has it twice
    row = np.concatenate([pairs.one, pairs.other[apart]])
    column = np.concatenate([pairs.other, pairs.one[apart]])
    weight = np.concatenate([pairs.weight, pairs.weight[apart]]).astype(np.float64)
    of_word = np.bincount(row, weights=weight, minlength=size)
    of_context = np.bincount(column, weights=weight, minlength=size) ** _SMOOTHING
    chance = of_word[row] / of_word.sum() * of_context[column] / of_context.sum()
    value = np.log(weight / weight.sum() / chance)
    kept = value > 0
    places = torch.from_numpy(np.stack([row[kept], column[kept]]).astype(np.int64))
    return torch.sparse_coo_tensor(
        places, torch.from_numpy(value[kept].astype(np.float32)), (size, size), check_invariants=False
    ).coalesce()
