"""Tokens, positions, segments and tasks, added up, normalised and projected: what the first layer reads.

Shapes: N packed slots, E embedding width, D width.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maskery.model.config import POSITIONS, Shape
from maskery.model.dropout import dropout
from maskery.model.linear import Linear, Norm

LENT = ("tokens", "segments", "tasks", "positions", "norm")
"""Parts of the embeddings that a second network may read at their owner."""


class Embeddings(nn.Module):
    def __init__(self, shape: Shape, lender: Embeddings | None = None, lent: tuple[str, ...] = LENT) -> None:
        """`lender` owns what two networks have in common, by default all of `LENT`; here is then only a projection, and
        positions if they act in attention, whose heads are this network's."""
        super().__init__()
        self.dropout = shape.dropout
        self.scale = shape.embedding**0.5 if shape.embedding_scale else 1.0
        self.tokens = nn.Parameter(torch.empty(shape.vocabulary, shape.embedding))
        self.segments = nn.Parameter(torch.empty(shape.segments, shape.embedding)) if shape.segments else None
        self.tasks = nn.Parameter(torch.empty(shape.tasks, shape.embedding)) if shape.tasks else None
        self.positions = POSITIONS.get(shape.positions)(shape)
        self.norm = Norm(shape.embedding, shape.eps, bias=shape.norm_bias) if shape.embedding_norm == "yes" else None
        self.projection = Linear(shape.embedding, shape.width) if shape.embedding != shape.width else None
        self.start = nn.Parameter(torch.empty(shape.width)) if shape.streams == 2 else None
        """What a second stream begins with, wherever it stands."""
        # In a tuple, because a module held as an attribute would be counted as this network's own.
        self._lender: tuple[Embeddings, ...] = () if lender is None else (lender,)
        self._lent = lent if lender is not None else ()
        for name in self._lent:
            if hasattr(self, name) and not (name == "positions" and self.positions.in_attention):
                delattr(self, name)

    def __getattr__(self, name: str) -> Any:
        """What is borrowed is read at its owner, so that it is counted, saved and trained once."""
        if name in LENT and name in self.__dict__.get("_lent", ()) and not self._has(name):
            return getattr(self._lender[0], name)
        return super().__getattr__(name)

    def _has(self, name: str) -> bool:
        return name in self._parameters or name in self._modules

    def borrowed(self) -> dict[str, nn.Parameter]:
        """The borrowed parameters by the names that they would have here."""
        every = [pair for lender in self._lender for pair in lender.named_parameters()]
        lent = [name for name in self._lent if name not in self._modules]
        return {name: value for name, value in every if name.partition(".")[0] in lent}

    def forward(self, ids: Tensor, segments: Tensor, positions: Tensor, tasks: Tensor | None = None) -> Tensor:
        """(N,) each -> (N,D); without `tasks` every slot is of the first task."""
        x = F.embedding(ids, self.tokens)
        if self.scale != 1.0:
            x = x * self.scale
        place = self.positions.embed(positions)
        if place is not None:
            x = x + place
        if self.segments is not None:
            x = x + F.embedding(segments, self.segments)
        if self.tasks is not None:
            x = x + (self.tasks[0] if tasks is None else F.embedding(tasks, self.tasks))
        if self.norm is not None:
            x = self.norm(x)
        if self.training:
            x = dropout(x, self.dropout)
        return x if self.projection is None else self.projection(x).to(x.dtype)
