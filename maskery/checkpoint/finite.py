"""One check for all that is computed with a model: what is not finite is refused, never shown as a result.

The weights of a folder are finite (`require_finite`), and may still be so large that sums of products overflow. So the
network and every head check what they return. Training has its own check, which names the step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from maskery.errors import CheckpointError
from maskery.model.transformer import Hidden

_PLACE = "guarded_place"


def guard(parts: Iterable[nn.Module], place: str = "") -> None:
    """From now on these modules check what they return outside training; `place` is the folder that errors name."""
    for part in parts:
        if not hasattr(part, _PLACE):
            part.register_forward_hook(_require_finite)
        if place or not hasattr(part, _PLACE):
            setattr(part, _PLACE, place)


def place_of(part: nn.Module) -> str:
    """The folder that errors name; empty where a model was never read."""
    return str(getattr(part, _PLACE, ""))


def _require_finite(module: nn.Module, _given: Any, returned: Any) -> None:
    if module.training:
        return
    for values in _tensors(returned):
        # A sum is not finite as soon as one element is not, and costs no array; finite elements may overflow it.
        if not bool(torch.isfinite(values.sum())) and not bool(torch.isfinite(values).all()):
            raise CheckpointError(
                f"{_share(values)} numbers that it computes here are not finite: its weights are damaged, or so "
                "large that sums overflow",
                where=place_of(module) or "the model",
                repair="fetch or save the model again; if training diverged, take an earlier checkpoint",
            )


def _share(values: Tensor) -> str:
    return f"{int((~torch.isfinite(values)).sum()):,} of {values.numel():,}"


def _tensors(returned: Any) -> Iterator[Tensor]:
    if isinstance(returned, Tensor):
        yield returned
    elif isinstance(returned, Hidden):
        yield returned.packed
        if returned.pooled is not None:
            yield returned.pooled
        for inner in (returned.predicted, returned.decoder):
            yield from _tensors(inner)
