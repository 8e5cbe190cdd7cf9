"""The pseudo-log-probability of a text under a model that fills masks (Salazar et al. 2020): every token is masked in
turn, and the log-probabilities that the model gives the true ones are summed.

Several masks at once take fewer passes and hide more: the sum is then smaller. Shapes: B rows, T slots, n masks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from maskery.checkpoint.calls import prepare
from maskery.checkpoint.model import Model
from maskery.model.transformer import Hidden
from maskery.writing.forms import tokenizer_of
from maskery.writing.left import chosen, grid


def hidden_places(size: int, masks: int) -> list[list[int]]:
    """The places that are masked together: each once, at most `masks` at a time, far apart."""
    rounds = -(-size // masks)
    return [list(range(first, size, rounds)) for first in range(rounds)]


@torch.inference_mode()
def told(model: Model, texts: Sequence[Sequence[int]], masks: int, slots: int) -> Iterator[tuple[int, Tensor]]:
    """For each text its number and the log-probability of each token; `slots` are read in one pass."""
    specials = tokenizer_of(model).specials
    assert specials.mask is not None
    for number, text in enumerate(texts):
        row = [specials.cls, *text, specials.sep]
        rounds = hidden_places(len(text), masks)
        found = torch.zeros(len(text), dtype=torch.float64)
        at_once = max(1, slots // len(row))
        for start in range(0, len(rounds), at_once):
            part = rounds[start : start + at_once]
            ids, real = grid([row] * len(part))
            flat = torch.tensor([turn * len(row) + 1 + place for turn, places in enumerate(part) for place in places])
            ids.view(-1)[flat] = specials.mask
            hidden: Hidden = model.network(prepare(model.network, ids, real, None, None), reads=flat)
            places = torch.tensor([place for places in part for place in places])
            tokens = torch.tensor(text)[places]
            found[places] = chosen(model, "masked_token", model.network, hidden.select(flat), tokens)
        yield number, found
