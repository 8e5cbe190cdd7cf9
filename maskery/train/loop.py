"""The training loop: a generator of updates. Logging, saving, evaluating and showing stay outside.

An update is one optimiser step over all micro-batches. No weight moves before loss and gradient are known to be finite.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch.utils.data import DataLoader, Dataset

from maskery import randomness
from maskery.batches import Batch
from maskery.errors import NonFiniteError, TrainingError
from maskery.feed import Feed
from maskery.phases import phase_at
from maskery.recipes.recipe import Recipe
from maskery.system import System
from maskery.train.optimizers import Optimizer
from maskery.train.schedules import rate


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
    """Real positions read by this update."""
    seconds: float
    note: str = ""


class _Steps(Dataset[list[Batch]]):
    """Step number -> its micro-batches; what worker processes compute ahead."""

    def __init__(self, feed: Feed, micro: Sequence[int]) -> None:
        self.feed, self.micro = feed, tuple(micro)

    def __getitem__(self, step: int) -> list[Batch]:
        return self.feed.micro_batches(step, 0, 1, self.micro[phase_at(self.feed.phases, step).number])


def _as_it_is(item: list[Batch]) -> list[Batch]:
    return item


def _leave_signals_to_the_main_process(_worker: int) -> None:
    """A signal to the whole group must not kill the workers while the main process finishes its step and saves."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def batches_from(feed: Feed, start: int, stop: int, micro: Sequence[int], workers: int) -> Iterator[list[Batch]]:
    """The micro-batches of steps start..stop-1, made by `workers` processes (0: here) ahead of their use."""
    steps = _Steps(feed, micro)
    if workers == 0:
        return (steps[step] for step in range(start, stop))
    return iter(
        DataLoader(
            steps,
            batch_size=None,
            sampler=range(start, stop),
            num_workers=workers,
            collate_fn=_as_it_is,
            worker_init_fn=_leave_signals_to_the_main_process,
        )
    )


@dataclass
class Trainer:
    recipe: Recipe
    feed: Feed
    system: System
    optimizer: Optimizer
    micro: list[int]
    """Rows of one forward pass, for each phase."""
    step: int = 0
    """Updates done."""
    workers: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def updates(self) -> Iterator[Update]:
        """One after another until the recipe's last step; after each, the trainer's state is that of its step."""
        last = self.recipe.training.steps
        self.system.train()
        began, note = time.perf_counter(), ""
        while self.step < last:
            source = batches_from(self.feed, self.step, last, self.micro, self.workers)
            while self.step < last:
                try:
                    batches = next(source)
                    losses, norm = self._gradient(batches)
                except (RuntimeError, MemoryError) as error:
                    rows = self._halve(error)
                    note = f"step {self.step + 1} was redone with micro-batches of {rows} rows: out of memory"
                    break
                lr = rate(self.recipe.training, self.step + 1)
                self.optimizer.step(lr, self.step + 1)
                self.step += 1
                now = time.perf_counter()
                yield Update(
                    step=self.step,
                    loss=sum(self.system.weights[name] * value for name, value in losses.items()),
                    losses=losses,
                    lr=lr,
                    gradient_norm=norm,
                    tokens=sum(batch.tokens for batch in batches),
                    seconds=now - began,
                    note=note,
                )
                began, note = time.perf_counter(), ""
                self.system.train()

    def _gradient(self, batches: list[Batch]) -> tuple[dict[str, float], float]:
        """Leave the step's gradient in the parameters; give each objective's mean loss and the gradient's norm."""
        counts = dict.fromkeys(self.system.objectives, 0)
        for batch in batches:
            for name, count in self.system.counts(batch).items():
                counts[name] += count
        totals = dict.fromkeys(counts, 0.0)
        self.system.zero_grad(set_to_none=True)
        for number, batch in enumerate(batches):
            randomness.seed_dropout(randomness.key(self.feed.seed, "dropout", self.step, 0, number))
            sums = self.system(batch.to(self.device))
            parts = [self.system.weights[name] / max(1, counts[name]) * total for name, total in sums.items()]
            torch.autograd.backward(torch.stack(parts).sum())
            for name, total in sums.items():
                totals[name] += float(total.detach())
        losses = {name: total / max(1, counts[name]) for name, total in totals.items()}
        return losses, self._clipped_norm(losses, batches)

    def _clipped_norm(self, losses: dict[str, float], batches: list[Batch]) -> float:
        gradients = [p.grad for p in self.system.parameters() if p.grad is not None]
        norm = float(torch.nn.utils.get_total_norm(gradients))
        if not (math.isfinite(norm) and all(map(math.isfinite, losses.values()))):
            self.system.zero_grad(set_to_none=True)
            rows = torch.cat([batch.rows for batch in batches]).tolist()
            shown = ", ".join(map(str, rows[:8])) + (", ..." if len(rows) > 8 else "")
            raise NonFiniteError(
                f"update {self.step + 1}: loss {losses}, gradient norm {norm}: not finite; no weight was changed",
                where=f"rows {shown} of the plan",
                repair="lower training.lr, lengthen training.warmup, or look at the rows with maskery inspect",
            )
        limit = self.recipe.training.clip
        if limit and norm > limit:
            torch._foreach_mul_(gradients, limit / norm)
        return norm

    def _halve(self, error: RuntimeError | MemoryError) -> int:
        """After an allocator's refusal: half the phase's micro-batch. Any other error goes on, named if we know it."""
        if "DataLoader worker (pid" in str(error):
            raise TrainingError(
                f"a process that makes batches died ({str(error).splitlines()[0]})",
                repair="go on with --resume and --workers 0",
            ) from error
        refused = isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)
        if not refused:
            raise error
        self.system.zero_grad(set_to_none=True)
        phase = phase_at(self.feed.phases, self.step).number
        if self.micro[phase] == 1:
            raise TrainingError(
                "not enough memory for one row at a time",
                repair="choose a smaller --size or --length, or free some memory",
            ) from error
        self.micro[phase] //= 2
        return self.micro[phase]
