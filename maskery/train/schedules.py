"""The learning rate as a function of the step: shares of the peak rate.

`linear` is how surveys word BERT's schedule: up to the peak at the end of warm-up, then in a straight line to 0 at the
last step. `google` is what BERT's published code does: the straight line falls from step 0 and warm-up is laid over
its beginning, so the rate jumps down to peak * (1 - warmup/steps) when warm-up ends. `electra` multiplies the two, so
that nothing jumps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from maskery.phases import phase_at, phases_of
from maskery.train.config import DECAYS, TrainingConfig

Schedule = Callable[[int, int, int], float]
"""(step, warm-up steps, all steps) -> share of the peak rate."""


def after_warmup(decay: Schedule) -> Schedule:
    """Straight up to the peak during warm-up, then the decay."""

    def schedule(step: int, warmup: int, steps: int) -> float:
        return step / warmup if step < warmup else decay(step, warmup, steps)

    return schedule


@after_warmup
def linear(step: int, warmup: int, steps: int) -> float:
    return (steps - step) / max(1, steps - warmup)


@after_warmup
def google(step: int, warmup: int, steps: int) -> float:
    return 1 - step / steps


def electra(step: int, warmup: int, steps: int) -> float:
    return min(1.0, step / max(1, warmup)) * (1 - step / steps)


@after_warmup
def cosine(step: int, warmup: int, steps: int) -> float:
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


@after_warmup
def constant(step: int, warmup: int, steps: int) -> float:
    return 1.0


@after_warmup
def inverse_sqrt(step: int, warmup: int, steps: int) -> float:
    return math.sqrt(max(1, warmup) / max(1, step))


def warmup_steps(training: TrainingConfig) -> int:
    """Warm-up in steps: a number below 1 is a share of all steps."""
    return round(training.warmup * training.steps) if training.warmup < 1 else int(training.warmup)


@dataclass(frozen=True, kw_only=True)
class Longer:
    """A run was made longer: after `step` updates it had no longer `before` steps before it, but `after`."""

    step: int
    before: int
    after: int
    lr: float
    """Of update `step`."""

    def within(self, training: TrainingConfig) -> int:
        """Updates in which the rate goes over to that of the longer schedule: as many as its warm-up has."""
        return min(warmup_steps(training.model_copy(update={"steps": self.after})), self.after - self.step)


def rate(training: TrainingConfig, step: int, longer: Sequence[Longer] = ()) -> float:
    """The learning rate of update `step`, counted from 1.

    Where a run was made longer, updates up to there have the rate of the shorter run; later ones that of a run of the
    new length, reached in a straight line from the last rate within as many updates as warm-up takes: a rate that has
    fallen to 0 does not jump.
    """
    last = next((each for each in reversed(longer) if step > each.step), None)
    if last is None:
        return _rate(training.model_copy(update={"steps": longer[0].before}) if longer else training, step)
    goal = _rate(training.model_copy(update={"steps": last.after}), step)
    share = min(1.0, (step - last.step) / max(1, last.within(training)))
    return goal if share == 1.0 else last.lr + share * (goal - last.lr)


def _rate(training: TrainingConfig, step: int) -> float:
    peak = phase_at(phases_of(training), step - 1).lr
    share = DECAYS.get(training.decay)(min(step, training.steps), warmup_steps(training), training.steps)
    return peak * max(0.0, share)
