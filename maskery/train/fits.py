"""Refuse a training that no memory of this machine can hold, before anything is allocated.

What is counted is what every way of training needs, so that nothing which could run is refused: the matrices of the
network with gradients and the optimiser's averages, one row at its longest, and the numbers of a step's rows.
"""

from __future__ import annotations

from maskery.errors import InputError
from maskery.model.config import Shape
from maskery.phases import phases_of
from maskery.recipes.recipe import Recipe
from maskery.train import machine
from maskery.train.memory import peak_bytes

_OF_A_ROW = 56
"""Bytes of a row of a step before it is read: its visit, its epoch, its number in the plan, and what drawing that needs
on the way (57.7 at the peak, measured)."""


def least_parameters(shape: Shape, *, borrowed: bool = False) -> int:
    """The matrices alone: of the layers, of tokens and of learned positions. `borrowed`: the embeddings are another
    network's."""
    attention, feedforward = 4 * shape.width**2, 2 * shape.width * shape.feedforward
    own_attention = shape.groups if shape.share in ("all", "attention") else shape.layers
    own_feedforward = shape.groups if shape.share in ("all", "feedforward") else shape.layers
    layers = own_attention * attention + own_feedforward * feedforward
    if shape.decoder and shape.share == "none":
        layers += shape.decoder * (2 * attention + feedforward)
    rows = shape.vocabulary + (shape.max_length if shape.positions == "learned" else 0)
    return layers + (0 if borrowed else rows * shape.embedding)


def require_memory(recipe: Recipe, vocabulary: int, target_vocabulary: int = 0, *, sharded: bool = False) -> None:
    """`sharded`: gradients and averages lie on several ranks."""
    shape = recipe.model.shape(vocabulary, recipe.visibility.kind, target_vocabulary)
    small = recipe.model.generator_shape(vocabulary, recipe.visibility.kind)
    parameters = least_parameters(shape) + (0 if small is None else least_parameters(small, borrowed=True))
    total = machine.total_memory()
    weights = (4 if sharded else 16) * parameters
    sizes = f"{shape.layers:,} layers of width {shape.width:,}"
    if weights > total:
        what = f"{sizes} and {vocabulary:,} tokens are {parameters:,} weights or more, which need {_size(weights)}"
        raise _too_large(recipe, what, total, "--size small, or fewer model.layers and a smaller model.width")
    for phase in phases_of(recipe.training):
        if phase.batch * _OF_A_ROW > total:
            what = f"the numbers of {phase.batch:,} rows a step need {_size(phase.batch * _OF_A_ROW)}"
            raise _too_large(recipe, what, total, "--batch 256")
        row = peak_bytes(shape, parameters, phase.length, 1, 0.0) - (16 * parameters - weights)
        if row > total:
            what = f"one row of {phase.length:,} slots through {sizes} needs about {_size(row)}"
            raise _too_large(recipe, what, total, "--length 512, or a smaller model")


def _too_large(recipe: Recipe, what: str, total: int, repair: str) -> InputError:
    return InputError(f"{what}, and this machine has {_size(total)}", where=f"recipe {recipe.name}", repair=repair)


def _size(count: int) -> str:
    return f"{count / 2**30:,.1f} GiB" if count < 2**50 else f"{count / 2**50:,.0f} PiB"
