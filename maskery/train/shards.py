"""Weights cut into shards (torch's FSDP2). A module of its own, because its imports are slow and few need it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

from maskery.batches import Batch
from maskery.errors import InputError
from maskery.model.block import Block
from maskery.system import Trainable


class Sharded:
    """Every rank has a part of each weight, gradient and moment; a layer's weights come together when it is used."""

    def __init__(self, system: Trainable, world: int, device: torch.device) -> None:
        if device.type == "cpu" and not hasattr(torch.cpu.Stream, "record_event"):
            raise InputError(
                f"torch {torch.__version__} cannot shard weights on a CPU",
                repair="leave out --fsdp, use a GPU, or a newer torch",
            )
        mesh = init_device_mesh(device.type, (world,))
        for block in layers_apart(system):
            fully_shard(block, mesh=mesh)
        fully_shard(system, mesh=mesh)
        register_fsdp_forward_method(system, "measure")
        register_fsdp_forward_method(system, "vectors")
        self.system = system

    def sums(self, batch: Batch) -> dict[str, Tensor]:
        found: dict[str, Tensor] = self.system(batch)
        return found

    def vectors(self, batch: Batch) -> dict[str, Tensor]:
        found = self.system.vectors(batch)
        self.after_reading()
        return found

    def passing(self, last: bool) -> AbstractContextManager[Any]:
        cast(FSDPModule, self.system).set_requires_gradient_sync(last)
        return nullcontext()

    def after_reading(self) -> None:
        """Let go of the weights that came together, which only a backward pass does of itself."""
        cast(FSDPModule, self.system).reshard()


def layers_apart(system: Trainable) -> list[Block]:
    """The layers that neither lend weights nor borrow them. The weights of the others are used outside of their owner's
    turn, so they come together with those of the embeddings, for the whole step."""
    blocks = [module for module in system.modules() if isinstance(module, Block)]
    lending = {lender for block in blocks for lender in block.lenders}
    return [block for block in blocks if not block.lenders and block not in lending]
