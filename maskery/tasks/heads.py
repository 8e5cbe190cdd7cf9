"""What stands on top of what was read: layers, dropout, and one matrix to the answers; columns beside the text.

    x -> [dropout, matrix, norm, activation] for each layer -> dropout -> matrix -> scores

A layer may have its norm after the activation, as ModernBERT's head has.

Several dropouts (`samples`) share all matrices: each thins what the last matrix reads in its own way, and the mean of
their losses is taken (multi-sample dropout). Without dropout they are one.

Shapes: n rows or slots, D what is read, C classes, S samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from maskery.errors import InputError
from maskery.model.config import Shape
from maskery.model.dropout import dropout, level
from maskery.model.linear import Linear, Norm
from maskery.tasks.settings import HeadConfig, LayerConfig

META_WIDTH = 32
"""Numbers that stand for a category."""
_EPS = 1e-12
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "none": lambda x: x,
}


class Layer(nn.Module):
    def __init__(self, width: int, config: LayerConfig, shape: Shape | None = None) -> None:
        """`shape`: of the model, whose epsilon and biases a norm after the activation has."""
        super().__init__()
        own = shape if config.norm == "after" else None
        self.after = config.norm == "after"
        self.dense = Linear(width, config.width, bias=own is None or own.head_bias)
        self.norm: Norm | None = None
        if config.norm:
            self.norm = Norm(config.width, own.eps if own else _EPS, bias=own is None or own.norm_bias)
        self.activation = _ACTIVATIONS[config.activation]
        self.dropout = config.dropout

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.dense(dropout(x, self.dropout if self.training else 0.0))
        if self.norm is None:
            return self.activation(y)
        found: Tensor = self.norm(self.activation(y)) if self.after else self.activation(self.norm(y))
        return found


class Head(nn.Module):
    def __init__(
        self, width: int, classes: int, config: HeadConfig, *, bias: bool = True, shape: Shape | None = None
    ) -> None:
        super().__init__()
        widths = [width, *(layer.width for layer in config.layers)]
        self.layers = nn.ModuleList(Layer(*each, shape) for each in zip(widths[:-1], config.layers, strict=True))
        self.answer = Linear(widths[-1], classes, bias=bias)
        self.dropout, self.samples = config.dropout, config.samples

    def draws(self, x: Tensor) -> tuple[Tensor, ...]:
        """(n,D) -> (n,C), one for each dropout; one alone where nothing is dropped."""
        for layer in self.layers:
            x = layer(x)
        p = self.dropout if self.training else 0.0
        return tuple(self.answer(dropout(x, p)) for _ in range(self.samples if level(p) else 1))

    def forward(self, x: Tensor) -> Tensor:
        """(n,D) -> (n,C), the mean of the dropouts."""
        return mean(self.draws(x))

    def total(self, x: Tensor, loss: Callable[[Tensor], Tensor]) -> Tensor:
        """The summed loss: the mean over the dropouts of what `loss` says of their scores (n,C)."""
        return mean([loss(scores) for scores in self.draws(x)])


def mean(several: Sequence[Tensor]) -> Tensor:
    return several[0] if len(several) == 1 else torch.stack(tuple(several)).mean(0)


def head_of(
    width: int, classes: int, config: HeadConfig | None = None, *, bias: bool = True, shape: Shape | None = None
) -> Head:
    """A head, its numbers not yet set; `shape` is that of the model below."""
    return Head(width, classes, config or HeadConfig(), bias=bias, shape=shape)


class MetaJoin(nn.Module):
    """Columns beside the text, put behind its vector: categories by an embedding, quantities as they are."""

    def __init__(self, sizes: Sequence[int], quantities: int = 0, width: int = META_WIDTH) -> None:
        """`sizes`: the number of categories of each such column."""
        super().__init__()
        self.tables = nn.ParameterList(nn.Parameter(torch.empty(size, width)) for size in sizes)
        self.quantities = quantities
        self.added = len(sizes) * width + quantities
        """By how much it makes a vector longer."""

    def forward(self, x: Tensor, categories: Tensor, quantities: Tensor) -> Tensor:
        """(n,D), (n,k) numbers of categories, (n,q) -> (n, D + added)"""
        if categories.shape[1] != len(self.tables) or quantities.shape[1] != self.quantities:
            raise InputError(
                f"{categories.shape[1]} categories and {quantities.shape[1]} quantities a row, and the model was made "
                f"for {len(self.tables)} and {self.quantities}",
                repair="give the columns of the training data",
            )
        found = [self._vectors(number, categories[:, number]) for number in range(len(self.tables))]
        return torch.cat([x, *(each.to(x.dtype) for each in found), quantities.to(x.dtype)], 1)

    def _vectors(self, column: int, numbers: Tensor) -> Tensor:
        return F.embedding(numbers, self.tables[column])


def with_language_model(task: Tensor, language: Tensor, weight: float) -> Tensor:
    """GPT's L3 = L2 + weight * L1, of means: each sum divided by its own count."""
    return task + weight * language
