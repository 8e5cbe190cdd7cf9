"""The training loop: a generator of updates. Logging, saving, evaluating and showing stay outside.

An update is one optimiser step over all micro-batches of all ranks. No weight moves on any rank before loss and
gradient are known to be finite on all.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from maskery import randomness
from maskery.batches import Batch
from maskery.errors import NonFiniteError, TrainingError
from maskery.phases import Phase, phase_at
from maskery.system import Trainable
from maskery.train.comparing import compared
from maskery.train.config import TrainingConfig
from maskery.train.lanes import LaneMemory
from maskery.train.machine import Heap
from maskery.train.optimizers import Optimizer
from maskery.train.precision import Precision
from maskery.train.ranks import Ranks
from maskery.train.replicas import Alone, Copied, Replicas, whole
from maskery.train.schedules import Longer, rate


@dataclass(frozen=True, kw_only=True)
class Update:
    """What one optimiser step did."""

    step: int
    """1 after the first update."""
    loss: float
    losses: dict[str, float]
    lr: float
    gradient_norm: float
    tokens: int
    """Real positions read by this update, on all ranks."""
    seconds: float
    note: str = ""


class Source(Protocol):
    """Where batches come from."""

    @property
    def phases(self) -> tuple[Phase, ...]: ...
    @property
    def seed(self) -> int: ...
    def micro_batches(self, step: int, rank: int, world: int, micro: int) -> list[Batch]: ...


class _Steps(Dataset[list[Batch]]):
    """Step number -> its micro-batches; what worker processes compute ahead."""

    def __init__(self, feed: Source, micro: Sequence[int], rank: int, world: int) -> None:
        self.feed, self.micro, self.rank, self.world = feed, tuple(micro), rank, world

    def __getitem__(self, step: int) -> list[Batch]:
        micro = self.micro[phase_at(self.feed.phases, step).number]
        return self.feed.micro_batches(step, self.rank, self.world, micro)


def _as_it_is(item: list[Batch]) -> list[Batch]:
    return item


def _leave_signals_to_the_main_process(_worker: int) -> None:
    """A signal to the whole group must not kill the workers while the main process finishes its step and saves."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def batches_from(
    feed: Source, start: int, stop: int, micro: Sequence[int], workers: int, rank: int = 0, world: int = 1
) -> Generator[list[Batch]]:
    """The micro-batches of steps start..stop-1, made by `workers` processes (0: here) ahead of their use.

    To be closed: workers ignore the signal that ends them with their maker, which would wait for them forever.
    """
    steps = _Steps(feed, micro, rank, world)
    if workers == 0:
        yield from (steps[step] for step in range(start, stop))
        return
    made: Any = iter(
        DataLoader(
            steps,
            batch_size=None,
            sampler=range(start, stop),
            num_workers=workers,
            collate_fn=_as_it_is,
            worker_init_fn=_leave_signals_to_the_main_process,
        )
    )
    try:
        yield from made
    finally:
        made._shutdown_workers()


class Gradient(NamedTuple):
    """What a step's passes through the network gave, over all ranks; the gradient itself is in the parameters."""

    losses: dict[str, float]
    """Each objective's mean."""
    norm: float
    tokens: int


S = TypeVar("S", bound=Trainable)
F = TypeVar("F", bound=Source)


@dataclass
class Trainer(Generic[S, F]):
    training: TrainingConfig
    feed: F
    system: S
    optimizer: Optimizer
    micro: list[int]
    """Rows of one forward pass, for each phase."""
    step: int = 0
    """Updates done."""
    workers: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    ranks: Ranks = field(default_factory=Ranks)
    precision: Precision = field(default_factory=Precision)
    fsdp: bool = False
    planned: int = 0
    """Bytes at the peak of a step, as estimated; 0: not known."""
    replicas: Replicas | None = None
    tried: set[tuple[int, int]] = field(default_factory=set)
    """(phase, rows of a forward pass) that are known to fit on every rank."""
    memory: LaneMemory = field(default_factory=LaneMemory)
    """What the lanes remember, where the network has a memory."""
    longer: tuple[Longer, ...] = ()
    """Where the run was made longer than it was started."""

    def spread(self) -> None:
        """Give the first rank's weights and moments to all; from here on gradients are exchanged."""
        if self.replicas is not None:
            return
        moments = self.optimizer.state()
        self.ranks.spread([parameter.detach() for parameter in self.system.parameters()])
        self.ranks.spread(list(moments.values()))
        if self.ranks.world == 1:
            self.replicas = Alone(self.system)
        elif not self.fsdp:
            self.replicas = Copied(self.system)
        else:
            from maskery.train.shards import Sharded

            self.replicas = Sharded(self.system, self.ranks.world, self.device)
            self.optimizer = type(self.optimizer)(self.system.named_parameters(), self.training)
            self.optimizer.restore(moments)

    def whole(self) -> tuple[S, dict[str, Tensor]]:
        """System and moments in one piece, for writing; every rank has to ask, the first gets them."""
        moments = {name: whole(value) for name, value in self.optimizer.state().items()}
        if not self.fsdp:
            return self.system, moments
        state = {name: whole(value) for name, value in self.system.state_dict().items()}
        if not self.ranks.first:
            return self.system, moments
        twin = self.system.twin()
        twin.load_state_dict(state)
        return twin, moments

    def updates(self) -> Iterator[Update]:
        """One after another until the last step; after each, the trainer's state is that of its step."""
        last = self.training.steps
        self.spread()
        self.system.train(self._drops)
        heap = Heap(self.planned) if self.planned else None
        began, note = time.perf_counter(), ""
        while self.step < last:
            ranks = self.ranks
            with closing(
                batches_from(self.feed, self.step, last, self.micro, self.workers, ranks.rank, ranks.world)
            ) as source:
                while self.step < last:
                    try:
                        batches = next(source)
                        self._try(batches)
                        scale = self.precision.scale
                        gradient = self._gradient(batches)
                    except (RuntimeError, MemoryError) as error:
                        rows = self._halve(error)
                        note = f"step {self.step + 1} was redone with micro-batches of {rows} rows: out of memory"
                        break
                    if self.precision.scale < scale:
                        note = f"step {self.step + 1} was redone with the loss times {self.precision.scale:g}: overflow"
                    yield self._move(gradient, began, note)
                    if heap is not None and self.step % heap.EVERY == 0:
                        heap.look()
                    began, note = time.perf_counter(), ""
                    self.system.train(self._drops)

    @property
    def _drops(self) -> bool:
        """Whether the next step has dropout, which is all that training mode is about."""
        return self.step < self.training.dropout_until * self.training.steps

    def _move(self, gradient: Gradient, began: float, note: str) -> Update:
        """Let the optimiser use the gradient; what it did."""
        lr = rate(self.training, self.step + 1, self.longer)
        self.optimizer.step(lr, self.step + 1)
        self.precision.went_well()
        self.memory.commit()
        self.step += 1
        return Update(
            step=self.step,
            loss=sum((self.system.weights[name] * value for name, value in gradient.losses.items()), 0.0),
            losses=gradient.losses,
            lr=lr,
            gradient_norm=gradient.norm,
            tokens=gradient.tokens,
            seconds=time.perf_counter() - began,
            note=note,
        )

    def _gradient(self, batches: list[Batch]) -> Gradient:
        """Leave the step's gradient, clipped, in the parameters."""
        self.spread()
        counts = dict.fromkeys(self.system.weights, 0)
        for batch in batches:
            for name, count in self.system.counts(batch).items():
                counts[name] += count
        summed = self.ranks.sums([*counts.values(), sum(batch.tokens for batch in batches)])
        counts = dict(zip(counts, map(int, summed), strict=False))
        while True:
            totals = self._backward(batches, counts)
            gradients = [p.grad for p in self.system.parameters() if p.grad is not None]
            norm = float(whole(torch.nn.utils.get_total_norm(gradients))) / self.precision.scale
            table = self.ranks.table([norm, *totals.values()])
            sums = dict(zip(totals, map(sum, list(zip(*table, strict=True))[1:]), strict=True))
            losses = {name: total / max(1, counts[name]) for name, total in sums.items()}
            norm = table[0][0]  # the first rank's, so that all clip alike to the last bit
            known = all(map(math.isfinite, losses.values()))
            if known and math.isfinite(norm):
                break
            self.system.zero_grad(set_to_none=True)
            if not (known and self.precision.lowered()):
                raise self._not_finite(losses, norm, totals, batches)
        self._clip(gradients, norm)
        # A question that no row of the step was asked has no loss, rather than one of 0.
        asked = {name: loss for name, loss in losses.items() if counts[name]}
        return Gradient(asked, norm, int(summed[-1]))

    def _backward(self, batches: list[Batch], counts: Mapping[str, int], exchange: bool = True) -> dict[str, float]:
        """Add up the gradients of this rank's rows, and of all ranks' if they `exchange`; its sums of losses."""
        assert self.replicas is not None
        totals = dict.fromkeys(counts, 0.0)
        factor = self.precision.scale * self.ranks.world
        self.system.zero_grad(set_to_none=True)
        self.memory.begin()
        batches = [self.memory.give(batch) for batch in batches]
        batches = compared(self.system, batches, self._vectors, self.ranks if exchange else Ranks(), gradient=True)
        for number, batch in enumerate(batches):
            self._key_dropout(number)
            with self.replicas.passing(last=exchange and batch is batches[-1]):
                with self.precision.autocast(self.device):
                    sums = self.replicas.sums(batch.to(self.device))
                weights = {name: factor * self.system.weights[name] / max(1, counts[name]) for name in sums}
                torch.autograd.backward(torch.stack([weights[name] * sums[name] for name in sums]).sum())
            self.memory.take(batch, self.system.remembered)
            for name, total in sums.items():
                totals[name] += float(total.detach())
        return totals

    def _vectors(self, number: int, batch: Batch) -> dict[str, Tensor]:
        """What the forward pass of a micro-batch will compare."""
        assert self.replicas is not None
        self._key_dropout(number)
        with self.precision.autocast(self.device):
            return self.replicas.vectors(batch.to(self.device))

    def _key_dropout(self, number: int) -> None:
        randomness.seed_dropout(randomness.key(self.feed.seed, "dropout", self.step, self.ranks.rank, number))

    def _clip(self, gradients: list[Tensor], norm: float) -> None:
        limit = self.training.clip
        factor = limit / norm if limit and norm > limit else 1.0
        factor /= self.precision.scale
        if factor != 1.0:
            torch._foreach_mul_(gradients, factor)

    def _not_finite(
        self, losses: dict[str, float], norm: float, totals: dict[str, float], batches: list[Batch]
    ) -> NonFiniteError:
        """The error, on every rank the same: it names the rows of the ranks whose own loss is not finite, or of all."""
        mine = torch.cat([batch.rows for batch in batches]).tolist()
        found = self.ranks.gather((all(map(math.isfinite, totals.values())), mine))
        guilty = [rank for rank, (finite, _) in enumerate(found) if not finite] or list(range(len(found)))
        rows = [row for rank in guilty for row in found[rank][1]]
        shown = ", ".join(map(str, rows[:8])) + (", ..." if len(rows) > 8 else "")
        where = f"rows {shown} of the plan"
        if self.ranks.world > 1:
            where = f"rank {' and '.join(map(str, guilty))}, {where}"
        return NonFiniteError(
            f"update {self.step + 1}: loss {losses}, gradient norm {norm}: not finite; no weight was changed",
            where=where,
            repair="lower training.lr, lengthen training.warmup, or look at the rows with maskery inspect",
        )

    def _try(self, batches: list[Batch]) -> None:
        """Among several ranks: whether a step of this kind fits into every rank's memory, tried without exchange.

        Once gradients travel no rank can step back alone, so this comes before the first step of a kind.
        """
        phase = phase_at(self.feed.phases, self.step).number
        if not isinstance(self.replicas, Copied) or (phase, self.micro[phase]) in self.tried:
            return
        refused = False
        try:
            self._backward(batches, self.system.counts(batches[0]), exchange=False)
        except (RuntimeError, MemoryError) as error:
            refused = _is_refusal(error)
            if not refused:
                raise
        self.system.zero_grad(set_to_none=True)
        if any(self.ranks.gather(refused)):
            raise _TooLargeError
        self.tried.add((phase, self.micro[phase]))

    def _halve(self, error: RuntimeError | MemoryError) -> int:
        """After an allocator's refusal: half the phase's micro-batch. Any other error goes on, named if we know it."""
        if "DataLoader worker (pid" in str(error):
            raise TrainingError(
                f"a process that makes batches died ({str(error).splitlines()[0]})",
                repair="go on with --resume and --workers 0",
            ) from error
        if not _is_refusal(error):
            raise error
        self.system.zero_grad(set_to_none=True)
        if self.ranks.world > 1 and not isinstance(error, _TooLargeError):
            raise TrainingError(
                f"rank {self.ranks.rank}: out of memory in update {self.step + 1}, while others were waiting for it",
                repair="free some memory and go on with --resume",
            ) from error
        phase = phase_at(self.feed.phases, self.step).number
        if self.micro[phase] == 1:
            raise TrainingError(
                "not enough memory for one row at a time",
                repair="choose a smaller --size or --length, or free some memory",
            ) from error
        self.micro[phase] //= 2
        return self.micro[phase]


class _TooLargeError(MemoryError):
    """A step that does not fit into the memory of some rank; raised on all."""


def _is_refusal(error: BaseException) -> bool:
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)
