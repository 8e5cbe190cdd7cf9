"""Peak memory of a training step, estimated before the first one, and the micro-batch that fits."""

from __future__ import annotations

from dataclasses import dataclass

from maskery.model.config import Shape

_FLOAT = 4
_SHARE = 0.6
"""Part of the available memory that a run plans to use."""
_TOKENS = 8192
"""Beyond this many tokens a forward pass gains no speed on a CPU."""
_CHUNK = 64 << 20


def row_bytes(shape: Shape, length: int, rate: float) -> int:
    """What the forward pass keeps for the backward pass, for one row of `length` slots."""
    width, inner = shape.width, shape.feedforward
    hidden_masks = 2 * width if shape.dropout else 0
    attention_masks = shape.heads * length if shape.attention_dropout else 0
    floats_per_slot = (
        10 * width  # queries, keys, values and their copy by head; the mixed heads; both sums and norms
        + 2 * inner  # before and after the activation
        + shape.heads * length  # attention weights
    )
    per_layer = length * (_FLOAT * floats_per_slot + hidden_masks + attention_masks)
    # The widest moment of the backward pass: gradients of one layer beside everything kept.
    passing = length * _FLOAT * (2 * inner + 4 * width + 2 * shape.heads * length)
    embeddings = 4 * length * _FLOAT * shape.embedding
    targets = round(rate * length) * _FLOAT * 6 * shape.embedding
    return shape.layers * per_layer + passing + embeddings + targets


def fixed_bytes(shape: Shape, parameters: int) -> int:
    """Weights, gradients, two moments, a second gradient of the tied matrix, one chunk of scores."""
    return _FLOAT * (4 * parameters + 2 * shape.vocabulary * shape.embedding) + _CHUNK


@dataclass(frozen=True)
class MicroBatch:
    rows: int
    bytes: int
    reason: str


def choose_micro(
    shape: Shape, parameters: int, length: int, rows: int, rate: float, available: int, asked: int = 0
) -> MicroBatch:
    """Rows of one forward pass: as asked, or as many as are quick and fit the memory; always with its reason."""
    one, fixed = row_bytes(shape, length, rate), fixed_bytes(shape, parameters)
    if asked:
        micro, reason = min(asked, rows), "as asked"
    else:
        quick = max(1, _TOKENS // length)
        fitting = max(1, int((_SHARE * available - fixed) // one))
        micro = min(rows, quick, fitting)
        if micro == rows:
            reason = "the whole batch fits"
        elif micro == quick:
            reason = f"{_TOKENS} tokens fill the cores"
        else:
            reason = f"{_SHARE:.0%} of {available / 2**30:.1f} GiB available memory"
        micro = -(-rows // -(-rows // micro))  # micro-batches of equal size
    return MicroBatch(micro, fixed + micro * one, reason)
