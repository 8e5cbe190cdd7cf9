"""Peak memory of a training step, estimated before the first one, and the micro-batch that fits; and of reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from maskery.model import kernels
from maskery.model.config import POSITIONS, Shape
from maskery.model.dropout import level
from maskery.objectives.cross_entropy import CHUNK_BYTES

_FLOAT, _NUMBER = 4, 8
"""Bytes of a float32 and of an id."""
_SHARE = 0.6
"""Part of the available memory that a run plans to use."""
_TOKENS = 8192
"""Beyond this many tokens a forward pass gains no speed on a CPU."""


def kept_bytes(shape: Shape, length: int, rate: float) -> int:
    """What the forward pass keeps for the backward pass, for one row of `length` slots, of which `rate` are asked; of
    two streams the second has these. A decoder writes rows as long as those that it looks at, all of them asked."""
    embedding = shape.embedding
    asked = min(length, round(rate * length) + 1)  # and the slot that a pooler reads
    last, each = asked if 2 * asked <= length else length, length
    if shape.streams == 2:
        last, each = asked, length + asked
    elif shape.decoder:  # which looks at every slot
        last = length
    layers = (shape.layers - 1) * _layer_bytes(shape, length, each) + _layer_bytes(shape, length, last)
    inputs = (2 if embedding != shape.width else 1) * _FLOAT * embedding + _mask(shape.dropout, embedding) + 3 * _NUMBER
    head = _FLOAT * (shape.width + 3 * embedding)
    if shape.decoder:
        layers += shape.decoder * (_layer_bytes(shape, length, length) + _look_bytes(shape, length))
        inputs, asked = 2 * inputs, length
    return layers + length * inputs + asked * head


def _look_bytes(shape: Shape, length: int) -> int:
    """What a layer of a decoder keeps besides: queries, keys, values, mixed heads, the sum, its norm, and weights."""
    floats = 7 * shape.width + 2 + shape.heads * length
    masks = _mask(shape.dropout, shape.width) + _mask(shape.attention_dropout, shape.heads * length)
    return length * (_FLOAT * floats + masks)


def _layer_bytes(shape: Shape, length: int, asking: int) -> int:
    """One layer in which `asking` of the row's slots are computed and all are read, behind a full memory."""
    width, keys = shape.width, length + shape.memory
    fused = asking == length and not shape.memory and kernel_for(shape, length) == "sdpa"
    floats = (
        (5 if asking == length else 6)
        * width  # queries, mixed heads, both sums, the state between; a copy of the input
        + (4 if shape.gated else 2) * shape.feedforward  # before and after the activation; of both halves
        + 4  # mean and deviation of two norms
        + (width if shape.positions in ("xl", "xlnet") else 0)  # queries with what they lean to
        + (width + shape.heads if fused else shape.heads * keys)  # attention's output and log-sums, or its weights
    )
    masks = _mask(shape.dropout, 2 * width) + _mask(shape.attention_dropout, shape.heads * keys)
    read = 3 * width  # input, keys and values
    plain = _distance_bytes(shape, length) if asking < length else 0
    read += shape.heads * _buckets(shape, length) if asking < length else 0  # what distances ask of every key
    return keys * _FLOAT * read + asking * (_FLOAT * floats + masks + plain)


def _buckets(shape: Shape, length: int) -> int:
    """Of disentangled attention, as many as occur within a row."""
    return min(2 * length - 1, 2 * shape.buckets) if shape.positions == "disentangled" else 0


def table_bytes(shape: Shape, length: int) -> int:
    """What disentangled attention keeps for a batch, however many rows it has: in each layer the buckets that occur,
    normalised, and what is made of them for every distance within a row."""
    if shape.positions != "disentangled":
        return 0
    rows = _buckets(shape, length)
    numbers = (rows + 2 * (2 * length - 1)) * shape.width
    return (shape.layers + shape.decoder) * (_FLOAT * numbers + _mask(shape.dropout, rows * shape.width))


def _distance_bytes(shape: Shape, length: int) -> int:
    """What the plain operations of maskery.model.relative keep for each query beside its weights: the row of every
    key's distance, terms of all distances, and the weights that dropout left. Only some slots ask in this way."""
    keys, terms = {"nezha": (2, 1), "shaw": (2, 2), "t5": (1, 0), "mpnet": (1, 0)}.get(shape.positions, (0, 0))
    told = shape.heads * (2 * shape.clip + 1)
    if shape.positions == "disentangled":
        return _NUMBER * length + _FLOAT * shape.heads * (_buckets(shape, length) + length)
    thinned = shape.heads * length if keys and level(shape.attention_dropout) else 0
    return _NUMBER * keys * length + _FLOAT * (terms * told + thinned)


def _mask(p: float, elements: int) -> int:
    """Dropout remembers a 16-bit number for each element."""
    return 2 * elements if level(p) else 0


def passing_bytes(shape: Shape, length: int) -> int:
    """The widest moment of the backward pass beside what is kept: one layer's feed-forward or its attention."""
    fused = not shape.memory and kernel_for(shape, length) == "sdpa"
    by_distance = shape.positions in ("xl", "xlnet")  # whose scores are laid out by distance once more
    scores = 0 if fused else (4 if by_distance else 2) * shape.heads * (length + shape.memory)
    if shape.positions == "disentangled":
        scores *= 2  # each pair by its distance once more
    inner = (5 if shape.gated else 2) * shape.feedforward
    return length * _FLOAT * max(inner + 3 * shape.width, 8 * shape.width + scores)


def lane_bytes(shape: Shape) -> int:
    """What a lane remembers between two updates."""
    return _FLOAT * shape.layers * shape.memory * shape.width


Second = tuple[Shape, float]
"""A generator, and the part of the slots that it is asked about. What it keeps stays until the backward pass."""


def row_bytes(shape: Shape, length: int, rate: float, second: Second | None = None) -> int:
    """What one more row adds to the peak."""
    return _kept(shape, length, rate, second) + _passing(shape, length, second)


def _kept(shape: Shape, length: int, rate: float, second: Second | None) -> int:
    return kept_bytes(shape, length, rate) + (0 if second is None else kept_bytes(second[0], length, second[1]))


def _passing(shape: Shape, length: int, second: Second | None) -> int:
    return max(passing_bytes(each, length) for each in (shape, *(() if second is None else second[:1])))


def kernel_for(shape: Shape, length: int, training: bool = True) -> str:
    """The attention kernel that rows of `length` slots meet on a CPU."""
    scheme = POSITIONS.get(shape.positions)
    return kernels.choose(
        length,
        torch.device("cpu"),
        shape.attention_dropout if training else 0.0,
        in_attention=scheme.in_attention and not scheme.turns_only,
        capture=False,
        by_distance=scheme.by_distance,
    )


def fixed_bytes(shape: Shape, parameters: int) -> int:
    """Weights, gradients, two moments, and two more gradients of the tied matrix on their way; and those of weights
    that several layers use, which add up apart until the last of these layers is through."""
    return _FLOAT * (4 * parameters + 2 * shape.vocabulary * shape.embedding + _adding_up(shape))


def _adding_up(shape: Shape) -> int:
    """Numbers in the sum of one group's shared gradients, and a third more: the next matrix to be added.

    Measured with torch's profiler, in layers: 1.28 where all is shared, 0.95 of the feed-forward, 0.41 of attention.
    """
    if shape.groups == shape.layers:
        return 0
    attention, feedforward = 4 * shape.width**2, (3 if shape.gated else 2) * shape.width * shape.feedforward
    shared = {"none": 0, "all": attention + feedforward, "attention": attention, "feedforward": feedforward}
    return 4 * shared[shape.share] // 3


def peak_bytes(shape: Shape, parameters: int, length: int, rows: int, rate: float, second: Second | None = None) -> int:
    """The peak of a step with micro-batches of `rows`. The scores are gone before the backward pass begins."""
    masked = rate if second is None else second[1]
    scores = min(CHUNK_BYTES, rows * round(masked * length) * _FLOAT * shape.vocabulary)
    kept = rows * _kept(shape, length, rate, second)
    tables = table_bytes(shape, length) + (0 if second is None else table_bytes(second[0], length))
    return fixed_bytes(shape, parameters) + tables + kept + max(scores, rows * _passing(shape, length, second))


def reading_bytes(shape: Shape, parameters: int, length: int, rows: int) -> int:
    """The peak of reading rows without a gradient, for states and not for scores of the vocabulary: weights, and the
    widest moment of one layer. Checked with torch's profiler."""
    width, kernel = shape.width, kernel_for(shape, length, training=False)
    scores = 0 if kernel == "sdpa" else shape.heads * length
    floats = max(10 * width + scores, (4 if shape.gated else 2) * shape.feedforward + 4 * width)
    floats += width * (shape.norm == "pre") + width * (kernel == "distance") + 3 * width * (shape.positions == "rotary")
    floats += 4 * scores if shape.positions == "disentangled" else 0  # each pair by its distance, twice
    if shape.visibility != "full" or (shape.local and length > shape.reach):
        floats += length * (3 if kernel == "sdpa" else 1) // 4  # who sees whom, in bytes, and as numbers for torch
    return _FLOAT * (parameters + rows * length * floats)


def most_rows(needed: Callable[[int], int], memory: int) -> int:
    """How many rows fit: the largest number for which `needed`, which grows with it, is within `memory`; 0 for none."""
    if needed(1) > memory:
        return 0
    most = 1
    while needed(2 * most) <= memory:
        most *= 2
    step = most // 2
    while step:
        if needed(most + step) <= memory:
            most += step
        step //= 2
    return most


@dataclass(frozen=True)
class MicroBatch:
    rows: int
    bytes: int
    reason: str


def choose_micro(
    shape: Shape,
    parameters: int,
    length: int,
    rows: int,
    rate: float,
    available: int,
    asked: int = 0,
    second: Second | None = None,
) -> MicroBatch:
    """Rows of one forward pass: as asked, or as many as are quick and fit the memory; always with its reason."""
    if asked:
        micro, reason = min(asked, rows), "as asked"
    else:
        micro, reason = _chosen(shape, parameters, length, rows, rate, available, second)
    return MicroBatch(micro, peak_bytes(shape, parameters, length, micro, rate, second), reason)


def _chosen(
    shape: Shape, parameters: int, length: int, rows: int, rate: float, available: int, second: Second | None
) -> tuple[int, str]:
    free = _SHARE * available - fixed_bytes(shape, parameters) - CHUNK_BYTES
    quick = max(1, _TOKENS // length)
    fitting = int(free // row_bytes(shape, length, rate, second))
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
