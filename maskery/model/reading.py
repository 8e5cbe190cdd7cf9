"""Reading a long text in rows, behind a memory that may be longer than that of training (Transformer-XL).

Weights do not change while a text is scored, so what is remembered is kept as keys and values: the same numbers as from
the states themselves, without making them again for every row. Beside it stands what a network without memory has to
do for the same sight: read the last tokens anew for every token.

Shapes: B texts beside each other, N tokens, T slots of a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from maskery.errors import InputError
from maskery.model.config import RELATIVE
from maskery.model.heads import TokenHead
from maskery.model.layout import layout_of
from maskery.model.past import Cache
from maskery.model.stack import Inputs
from maskery.model.transformer import Hidden, Network
from maskery.model.visibility import Recent, Visibility
from maskery.model.xl import XL


@dataclass(frozen=True, kw_only=True)
class Reading:
    length: int
    """Slots of a row."""
    memory: int = 0
    """Slots before a row that it sees."""
    same_length: bool = False
    """Whether every slot sees `memory` slots that end with itself, instead of all that its row remembers."""
    clamp: int | None = None
    """Distances beyond it count as it; None: all are told apart."""

    def __post_init__(self) -> None:
        if self.length < 1 or self.memory < 0 or (self.clamp is not None and self.clamp < 0):
            raise InputError(
                f"length {self.length}, memory {self.memory}, clamp {self.clamp}: a row has a slot at least, and "
                "nothing is below 0",
                repair="--length 1 or more, --memory and --clamp 0 or more",
            )
        if self.same_length and not self.memory:
            raise InputError("equally far sight is that of the memory, and there is none", repair="--memory 1 or more")

    def require(self, network: Network) -> None:
        """Refuse what the network cannot do."""
        positions = network.shape.positions
        if self.memory and positions not in RELATIVE:
            raise InputError(
                f"what is remembered stands before the row, and positions {positions!r} cannot tell how far",
                repair="memory 0, or a model with relative positions, such as transformer-xl",
            )
        if self.clamp is not None and not isinstance(network.embeddings.positions, XL):
            raise InputError(
                f"distances are not clamped where positions are {positions!r}",
                repair="leave clamp out, or use a transformer-xl or xlnet",
            )
        limit = network.embeddings.positions.limit
        if limit is not None and self.length > limit:
            raise InputError(
                f"rows of {self.length}, but the model's positions end at {limit}", repair=f"--length {limit}"
            )

    @property
    def visibility(self) -> Visibility | None:
        return Recent(self.memory) if self.same_length else None


@contextmanager
def clamped(network: Network, clamp: int | None) -> Iterator[None]:
    """Within, distances beyond `clamp` count as it; None leaves them as they are."""
    positions = network.embeddings.positions
    if clamp is None or not isinstance(positions, XL):
        yield
        return
    before, positions.clamp = positions.clamp, clamp
    try:
        yield
    finally:
        positions.clamp = before


def read_stream(network: Network, ids: Tensor, reading: Reading) -> Iterator[tuple[slice, Hidden]]:
    """(B,N) texts -> the slots of each row of them, one row after another, and what the network says of it."""
    reading.require(network)
    past: Cache | None = None
    with clamped(network, reading.clamp):
        for start in range(0, ids.shape[1], reading.length):
            part = slice(start, min(start + reading.length, ids.shape[1]))
            hidden: Hidden = network(_inputs(network, ids[:, part], past, reading), keep=reading.memory > 0)
            past = _last(hidden.cache, reading.memory)
            yield part, hidden


def _inputs(network: Network, ids: Tensor, past: Cache | None, reading: Reading) -> Inputs:
    first = network.shape.position_offset
    if past is not None:
        first = int(past.positions[0, -1]) + 1
    places = torch.arange(first, first + ids.shape[1], device=ids.device).expand_as(ids)
    return Inputs(
        ids=ids,
        layout=layout_of(torch.ones_like(ids, dtype=torch.bool)),
        segments=torch.zeros_like(ids),
        positions=places,
        visibility=reading.visibility,
        past=past,
    )


def _last(cache: Cache | None, size: int) -> Cache | None:
    if cache is None:
        return None
    return cache if cache.size <= size else cache.part(cache.size - size, cache.size)


@torch.inference_mode()
def score_stream(network: Network, head: TokenHead, ids: Tensor, reading: Reading) -> Tensor:
    """(B,N) texts -> (B,N-1) the log-probability of every token but the first."""
    found = []
    for part, hidden in read_stream(network, ids, reading):
        stop = min(part.stop, ids.shape[1] - 1)
        if stop > part.start:
            states = hidden.last[:, : stop - part.start]
            found.append(_log_probabilities(network, head, states, ids[:, part.start + 1 : stop + 1]))
    return torch.cat(found, 1) if found else ids.new_zeros(ids.shape[0], 0, dtype=torch.float32)


@torch.inference_mode()
def score_windows(network: Network, head: TokenHead, ids: Tensor, reach: int, first: int = 1, rows: int = 1) -> Tensor:
    """(N,) one text -> (N-first,) the same of its tokens from `first` on, each from the `reach` tokens before it, read
    anew; `rows` at a time."""
    found = []
    places = range(first, len(ids))
    full = [place for place in places if place >= reach]
    groups = [[place] for place in places if place < reach]
    groups += [full[start : start + rows] for start in range(0, len(full), rows)]
    for group in groups:
        size = min(reach, group[0])
        window = torch.stack([ids[place - size : place] for place in group])
        inputs = _inputs(network, window, None, Reading(length=size))
        last = torch.arange(1, len(group) + 1, device=ids.device) * size - 1
        states = network(inputs, reads=last).select(last).unsqueeze(1)
        wanted = ids[torch.tensor(group, device=ids.device)].unsqueeze(1)
        found.append(_log_probabilities(network, head, states, wanted).flatten())
    return torch.cat(found) if found else ids.new_zeros(0, dtype=torch.float32)


def _log_probabilities(network: Network, head: TokenHead, states: Tensor, wanted: Tensor) -> Tensor:
    """(B,T,D) states and (B,T) tokens -> (B,T)"""
    scores = head(states, network.embeddings.tokens).float()
    chosen: Tensor = scores.gather(2, wanted.unsqueeze(2)).squeeze(2) - scores.logsumexp(2)
    return chosen
