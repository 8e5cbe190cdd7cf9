"""What stands on top of the network: one small module for each kind of question.

Shapes: n selected slots, D width, E embedding width, V vocabulary, C classes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maskery.model.bands import Part, log_probabilities, parts_of
from maskery.model.block import ACTIVATIONS
from maskery.model.config import Shape
from maskery.model.linear import Linear, Norm


class TokenHead(nn.Module):
    """States -> scores over the vocabulary: dense, activation, norm, then the token embeddings themselves and a bias,
    as far as the shape has them (`token_head`). With `cutoffs` the vocabulary is in bands (`maskery/model/bands.py`).

    The embedding matrix stays the network's: it is handed to `forward`, so it is counted, saved and trained once.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[shape.activation]
        self.dense, self.norm, self.bias = None, None, None
        if shape.token_head == "transform" or shape.embedding != shape.width:
            self.dense = Linear(shape.width, shape.embedding, bias=shape.head_bias)
            self.norm = Norm(shape.embedding, shape.eps, bias=shape.norm_bias)
        if shape.token_head != "plain":
            self.bias = nn.Parameter(torch.empty(shape.target_vocabulary or shape.vocabulary))
        self.cutoffs = shape.cutoffs
        self.bands, self.bands_bias = None, None
        if self.cutoffs:
            self.bands = nn.Parameter(torch.empty(len(self.cutoffs), shape.embedding))
        if self.cutoffs and self.bias is not None:
            self.bands_bias = nn.Parameter(torch.empty(len(self.cutoffs)))

    def transform(self, x: Tensor) -> Tensor:
        """(n,D) -> (n,E)"""
        if self.dense is None or self.norm is None:
            return x
        y: Tensor = self.norm(self.activation(self.dense(x)))
        return y

    def forward(self, x: Tensor, tokens: Tensor) -> Tensor:
        """(...,D) and the embedding matrix (V,E) -> (...,V); in bands these are log-probabilities"""
        parts = self.parts(tokens)
        if parts is None:
            return F.linear(self.transform(x), tokens, self.bias)
        return log_probabilities(self.transform(x), parts)

    def parts(self, tokens: Tensor) -> list[Part] | None:
        """What is chosen from, where the vocabulary is in bands."""
        if self.bands is None:
            return None
        return parts_of(tokens, self.bias, self.bands, self.bands_bias, self.cutoffs)


class ClassHead(nn.Module):
    """States -> scores over C classes."""

    def __init__(self, width: int, classes: int, *, bias: bool = True) -> None:
        super().__init__()
        self.dense = Linear(width, classes, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.dense(x)
        return y


class NormedHead(nn.Module):
    """States -> a layer of their width with an activation and a norm -> scores over C classes (ModernBERT)."""

    def __init__(self, shape: Shape, classes: int) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[shape.activation]
        self.dense = Linear(shape.width, shape.width, bias=shape.head_bias)
        self.norm = Norm(shape.width, shape.eps, bias=shape.norm_bias)
        self.answer = Linear(shape.width, classes)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.answer(self.norm(self.activation(self.dense(x))))
        return y


class TwoLayerHead(nn.Module):
    """States -> a layer of their width with an activation -> scores over C classes."""

    def __init__(self, width: int, classes: int, activation: str) -> None:
        super().__init__()
        self.activation = torch.tanh if activation == "tanh" else ACTIVATIONS[activation]
        self.dense = Linear(width, width)
        self.answer = Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.answer(self.activation(self.dense(x)))
        return y
