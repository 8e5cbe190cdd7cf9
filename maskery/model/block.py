"""One layer of the Transformer.

post-norm (BERT):   x = norm(x + attention(x));   x = norm(x + feedforward(x))
pre-norm (GPT-2):   x = x + attention(norm(x));   x = x + feedforward(norm(x))
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from maskery.model.attention import Attention, AttentionPlan
from maskery.model.config import Shape
from maskery.model.dropout import add_dropout
from maskery.model.linear import Linear, Norm
from maskery.model.positions import PositionScheme
from maskery.model.selection import Selection

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
}


class Block(nn.Module):
    def __init__(self, shape: Shape, layer: int) -> None:
        super().__init__()
        self.before = shape.norm == "pre"
        self.dropout = shape.dropout
        self.activation = ACTIVATIONS[shape.activation]
        self.attention = Attention(shape, layer)
        self.attention_norm = Norm(shape.width, shape.eps)
        self.up = Linear(shape.width, shape.feedforward)
        self.down = Linear(shape.feedforward, shape.width)
        self.feedforward_norm = Norm(shape.width, shape.eps)

    def forward(
        self, x: Tensor, plan: AttentionPlan, scheme: PositionScheme, selection: Selection | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """(N,D) -> (N,D), or (M,D) where only selected slots are asked for; and captured weights."""
        p = self.dropout if self.training else 0.0
        read = self.attention_norm(x) if self.before else x
        mixed, weights = self.attention(read, plan, scheme, selection)
        if selection is not None:
            x = x.index_select(0, selection.index)
        x = add_dropout(x, mixed, p)
        if not self.before:
            x = self.attention_norm(x)
        read = self.feedforward_norm(x) if self.before else x
        x = add_dropout(x, self.down(self.activation(self.up(read))), p)
        return (x if self.before else self.feedforward_norm(x)), weights
