"""Several processes, one run: who this one is, what all of them know, and how they end together.

torchrun (or `maskery pretrain --ranks N`) starts the same program several times; each is a rank. Ranks exchange small
facts over gloo, on a GPU too, where gradients travel over nccl.

Whatever ends one rank ends all. The first to fail claims that in the common store and tells its error. The others find
their next exchange broken, see the claim, and end quietly with the same exit code. Where nobody claimed, a rank was
killed, and one of the others tells that.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist

from maskery.errors import EndedElsewhere, MaskeryError, TrainingError
from maskery.train import machine
from maskery.train.stop import end_in_peace

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

T = TypeVar("T")

_PATIENCE = timedelta(seconds=30)
"""How long a rank that failed waits for the one that tells the error to leave the group."""


@dataclass(frozen=True)
class Ranks:
    """The ranks of a run as one of them sees them; by default it is alone."""

    rank: int = 0
    world: int = 1
    local_world: int = 1
    """Ranks on this machine."""
    facts: dist.ProcessGroup | None = None
    end: dist.ProcessGroup | None = None
    store: Store | None = None
    launcher: int = 0
    """The process that started this one, where there are several."""
    block: int = 0
    """Blocks of `joined` that this process was in; the store outlives them."""

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes files and talks."""
        return self.rank == 0

    def gather(self, value: T) -> list[T]:
        """Every rank's value, in the order of ranks."""
        if self.world == 1:
            return [value]
        found: list[Any] = [None] * self.world
        dist.all_gather_object(found, value, group=self.facts)
        return found

    def table(self, numbers: Sequence[float]) -> list[list[float]]:
        """Every rank's numbers, in double precision; quicker than `gather`."""
        if self.world == 1:
            return [list(numbers)]
        mine = torch.tensor(numbers, dtype=torch.float64)
        found = [torch.empty_like(mine) for _ in range(self.world)]
        dist.all_gather(found, mine, group=self.facts)
        return [each.tolist() for each in found]

    def sums(self, numbers: Sequence[float]) -> list[float]:
        """The numbers summed over ranks, always in the same order."""
        return [sum(column) for column in zip(*self.table(numbers), strict=True)]

    def from_first(self, make: Callable[[], T]) -> T:
        """What the first rank makes, on every rank."""
        if self.world == 1:
            return make()
        box = [make() if self.first else None]
        dist.broadcast_object_list(box, src=0, group=self.facts)
        found: Any = box[0]
        return found  # type: ignore[no-any-return]

    def spread(self, tensors: Sequence[torch.Tensor]) -> None:
        """Overwrite the tensors by the first rank's."""
        if self.world > 1:
            for tensor in tensors:
                dist.broadcast(tensor, src=0)

    def stop_asked(self, signal_number: int) -> int:
        """The signal that some rank has got, or 0. A launcher that is gone can pass none on, so that is one, too."""
        if self.world > 1 and os.getppid() != self.launcher:
            signal_number = signal_number or signal.SIGTERM
        return max(self.gather(signal_number))

    def wait(self) -> None:
        """Until every rank is here."""
        self.gather(None)


_joined: list[Ranks] = []
_blocks = count(1)


def said_nowhere(_text: str) -> None:
    pass


@contextmanager
def joined(say: Callable[[str], None] = said_nowhere, threads: int = 0) -> Iterator[Ranks]:
    """This process among its ranks, as torchrun's environment says; leaving the block, all leave together.

    Inside another such block it is that block's. `threads` is what torch gets; 0 leaves it to torch, or where several
    ranks share a machine divides its cores.
    """
    if _joined:
        yield _joined[-1]
        return
    ours = not dist.is_initialized()
    ranks = _join(ours) if int(os.environ.get("WORLD_SIZE", "1")) > 1 else Ranks()
    told = machine.choose_threads(threads, ranks.local_world)
    if told and ranks.first:
        say(told)
    if ranks.world == 1:
        yield ranks
        return
    _joined.append(ranks)
    try:
        yield ranks
        ranks.wait()
    except BaseException as error:
        end_in_peace()
        told_error = _common(ranks, error)
        if told_error is error:
            raise
        raise told_error from None
    finally:
        _joined.clear()
        if ours:
            with suppress(RuntimeError):  # what a dead rank left open
                dist.destroy_process_group()


def _join(begin: bool) -> Ranks:
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if torch.cuda.is_available():
        torch.cuda.set_device(local)
    block = next(_blocks)
    if begin:
        _begin(block)
    return Ranks(
        rank=dist.get_rank(),
        world=dist.get_world_size(),
        local_world=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
        facts=dist.new_group(backend="gloo"),
        end=dist.new_group(backend="gloo", timeout=_PATIENCE),
        store=dist.distributed_c10d._get_default_store(),
        launcher=os.getppid(),
        block=block,
    )


def _begin(block: int) -> None:
    """Meet the other ranks. The store keeps what an earlier group of this process left, so each gets a part of it."""
    from torch._C._distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    store, rank, world = next(rendezvous("env://"))
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    own = PrefixStore(f"maskery/{block}", store)
    dist.init_process_group(backend, store=own, rank=rank, world_size=world)


# -- ending together


def _common(ranks: Ranks, error: BaseException) -> BaseException:
    """What this rank raises in place of its error: the same, if it is the one to tell it."""
    assert ranks.store is not None
    lost = is_lost(error)
    if lost:
        error = TrainingError(
            "another rank died, so this run cannot go on; the last checkpoint is what is left",
            repair="go on with the same command and --resume",
        )
    mine = json.dumps({"rank": ranks.rank, "code": exit_code(error)})
    try:
        claim = json.loads(ranks.store.compare_set(f"maskery/failure/{ranks.block}", "", mine))
    except RuntimeError:  # the store is gone, and with it the launcher or the rank that held it
        return error if ranks.first else EndedElsewhere(exit_code(error))
    if claim["rank"] == ranks.rank:
        return error
    with suppress(RuntimeError):
        dist.barrier(group=ranks.end)  # never completes: it breaks when the rank that tells has left
    return EndedElsewhere(claim["code"])


def is_lost(error: BaseException) -> bool:
    """Whether an exchange broke, because a rank has gone."""
    if isinstance(error, dist.DistError):
        return True
    return isinstance(error, RuntimeError) and any(mark in str(error) for mark in ("gloo", "NCCL", "by peer"))


def exit_code(error: BaseException) -> int:
    if isinstance(error, MaskeryError):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return 130
    return 2 if isinstance(error, OSError) else 1
