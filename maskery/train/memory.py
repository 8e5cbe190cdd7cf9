"""Peak memory of a training step, estimated before the first one, and the micro-batch that fits."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from maskery.model import kernels
from maskery.model.config import Shape
from maskery.model.dropout import level
from maskery.objectives.cross_entropy import CHUNK_BYTES

_FLOAT, _NUMBER = 4, 8
"""Bytes of a float32 and of an id."""
_SHARE = 0.6
"""Part of the available memory that a run plans to use."""
_TOKENS = 8192
"""Beyond this many tokens a forward pass gains no speed on a CPU."""


def kept_bytes(shape: Shape, length: int, rate: float) -> int:
    """What the forward pass keeps for the backward pass, for one row of `length` slots, of which `rate` are asked."""
    embedding = shape.embedding
    asked = min(length, round(rate * length) + 1)  # and the slot that a pooler reads
    last = asked if 2 * asked <= length else length
    layers = (shape.layers - 1) * _layer_bytes(shape, length, length) + _layer_bytes(shape, length, last)
    inputs = (2 if embedding != shape.width else 1) * _FLOAT * embedding + _mask(shape.dropout, embedding) + 3 * _NUMBER
    head = _FLOAT * (shape.width + 3 * embedding)
    return layers + length * inputs + asked * head


def _layer_bytes(shape: Shape, length: int, asking: int) -> int:
    """One layer in which `asking` of the row's slots are computed and all are read."""
    width = shape.width
    fused = asking == length and kernel_for(shape, length) == "sdpa"
    floats = (
        (5 if asking == length else 6)
        * width  # queries, mixed heads, both sums, the state between; a copy of the input
        + 2 * shape.feedforward  # before and after the activation
        + 4  # mean and deviation of two norms
        + (width + shape.heads if fused else shape.heads * length)  # attention's output and log-sums, or its weights
    )
    masks = _mask(shape.dropout, 2 * width) + _mask(shape.attention_dropout, shape.heads * length)
    read = 3 * width  # input, keys and values
    return length * _FLOAT * read + asking * (_FLOAT * floats + masks)


def _mask(p: float, elements: int) -> int:
    """Dropout remembers a 16-bit number for each element."""
    return 2 * elements if level(p) else 0


def passing_bytes(shape: Shape, length: int) -> int:
    """The widest moment of the backward pass beside what is kept: one layer's feed-forward or its attention."""
    scores = 0 if kernel_for(shape, length) == "sdpa" else 2 * shape.heads * length
    return length * _FLOAT * max(2 * shape.feedforward + 3 * shape.width, 8 * shape.width + scores)


def row_bytes(shape: Shape, length: int, rate: float) -> int:
    """What one more row adds to the peak."""
    return kept_bytes(shape, length, rate) + passing_bytes(shape, length)


def kernel_for(shape: Shape, length: int) -> str:
    """The attention kernel that rows of `length` slots meet in training on a CPU."""
    return kernels.choose(length, torch.device("cpu"), shape.attention_dropout, in_attention=False, capture=False)


def fixed_bytes(shape: Shape, parameters: int) -> int:
    """Weights, gradients, two moments, and two more gradients of the tied matrix on their way."""
    return _FLOAT * (4 * parameters + 2 * shape.vocabulary * shape.embedding)


def peak_bytes(shape: Shape, parameters: int, length: int, rows: int, rate: float) -> int:
    """The peak of a step with micro-batches of `rows`. The scores are gone before the backward pass begins."""
    scores = min(CHUNK_BYTES, rows * round(rate * length) * _FLOAT * shape.vocabulary)
    kept = rows * kept_bytes(shape, length, rate)
    return fixed_bytes(shape, parameters) + kept + max(scores, rows * passing_bytes(shape, length))


@dataclass(frozen=True)
class MicroBatch:
    rows: int
    bytes: int
    reason: str


def choose_micro(
    shape: Shape, parameters: int, length: int, rows: int, rate: float, available: int, asked: int = 0
) -> MicroBatch:
    """Rows of one forward pass: as asked, or as many as are quick and fit the memory; always with its reason."""
    if asked:
        micro, reason = min(asked, rows), "as asked"
    else:
        micro, reason = _chosen(shape, parameters, length, rows, rate, available)
    return MicroBatch(micro, peak_bytes(shape, parameters, length, micro, rate), reason)


def _chosen(shape: Shape, parameters: int, length: int, rows: int, rate: float, available: int) -> tuple[int, str]:
    free = _SHARE * available - fixed_bytes(shape, parameters) - CHUNK_BYTES
    quick = max(1, _TOKENS // length)
    fitting = int(free // row_bytes(shape, length, rate))
    micro = max(1, min(rows, quick, fitting))
    memory = f"{_SHARE:.0%} of {available / 2**30:.1f} GiB available memory"
    if fitting < 1:
        reason = f"{memory} may not hold even one"
    elif micro == rows:
        reason = "the whole batch fits"
    elif micro == quick:
        reason = f"{_TOKENS} tokens fill the cores"
    else:
        reason = memory
    return -(-rows // -(-rows // micro)), reason  # micro-batches of equal size
