"""What tells a model from every other: a digest of its weights, its tokenizer and its shape.

A training that is resumed begins from the same model again, and another one of the same shape fits without an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import torch
from torch import Tensor

from maskery.checkpoint.model import Model

_AT_ONCE = 1 << 24
"""Numbers of a tensor that are copied at a time."""


def model_fingerprint(model: Model, beside: Mapping[str, Tensor] | None = None) -> str:
    """Of all that was read from the model's folder; `beside`: what was read from other files of it."""
    found = blake2b(digest_size=32)
    found.update(model.config.model_dump_json().encode())
    found.update(b"" if model.tokenizer is None else model.tokenizer.fingerprint.encode())
    tensors = {**model.state_dict(), **{f"beside.{name}": each for name, each in (beside or {}).items()}}
    for name in sorted(tensors):
        tensor = tensors[name].detach()
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        for part in tensor.reshape(-1).split(_AT_ONCE):
            found.update(part.cpu().contiguous().view(torch.uint8).numpy())
    return found.hexdigest()
