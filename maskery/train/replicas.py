"""Where the weights live: on one rank, copied to every rank (torch's DDP), or cut into shards (`shards.py`).

DDP and FSDP2 give the mean of the ranks' gradients, so the loss is multiplied by the number of ranks. Gradients are
exchanged in the last backward pass of a step only; the earlier ones of a step add up locally.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from inspect import signature
from typing import Any, Protocol, cast

from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from maskery.batches import Batch
from maskery.system import Trainable


class Replicas(Protocol):
    def sums(self, batch: Batch) -> dict[str, Tensor]:
        """Each objective's summed loss of this rank's rows."""
        ...

    def vectors(self, batch: Batch) -> dict[str, Tensor]:
        """What the objectives that compare rows will compare; no backward pass follows."""
        ...

    def passing(self, last: bool) -> AbstractContextManager[Any]:
        """Around one forward and backward pass; `last` of the step."""
        ...

    def after_reading(self) -> None:
        """To be called after forward passes that no backward pass followed."""
        ...


class Alone:
    def __init__(self, system: Trainable) -> None:
        self.system = system

    def sums(self, batch: Batch) -> dict[str, Tensor]:
        found: dict[str, Tensor] = self.system(batch)
        return found

    def vectors(self, batch: Batch) -> dict[str, Tensor]:
        return self.system.vectors(batch)

    def passing(self, last: bool) -> AbstractContextManager[Any]:
        return nullcontext()

    def after_reading(self) -> None:
        pass


_KNOWN = signature(DistributedDataParallel.__init__).parameters
_NO_BUFFERS: dict[str, Any] = {
    "forward_sync_buffers" if "forward_sync_buffers" in _KNOWN else "broadcast_buffers": False
}
"""Buffers are the same on all ranks. torch changed the word for leaving them alone, and warns of the old one."""


class Copied:
    """Every rank has all weights."""

    def __init__(self, system: Trainable) -> None:
        self.system = system
        self.wrapped = DistributedDataParallel(system, gradient_as_bucket_view=True, **_NO_BUFFERS)

    def sums(self, batch: Batch) -> dict[str, Tensor]:
        found: dict[str, Tensor] = self.wrapped(batch)
        return found

    def vectors(self, batch: Batch) -> dict[str, Tensor]:
        return self.system.vectors(batch)

    def passing(self, last: bool) -> AbstractContextManager[Any]:
        return nullcontext() if last else self.wrapped.no_sync()

    def after_reading(self) -> None:
        pass


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor that may be cut into shards; every rank has to ask."""
    gathered: Tensor = cast(Any, tensor).full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return gathered


def fill(target: Tensor, value: Tensor) -> None:
    """Write a whole tensor into one that may be cut into shards."""
    if hasattr(target, "full_tensor"):
        from torch.distributed.tensor import distribute_tensor

        value = distribute_tensor(value, cast(Any, target).device_mesh, cast(Any, target).placements)
    target.copy_(value)
