"""Step -> phase, in closed arithmetic. A phase is a stretch of steps with one row length and one batch size."""

from __future__ import annotations

from dataclasses import dataclass

from maskery.train.config import PhaseConfig, TrainingConfig


@dataclass(frozen=True)
class Phase:
    number: int
    first: int
    """The first step of the phase, counted from 0."""
    stop: int
    length: int
    batch: int
    lr: float


def phases_of(training: TrainingConfig) -> tuple[Phase, ...]:
    """The phases of a run; the steps a recipe gives are proportions of `training.steps`."""
    given = training.phases or (PhaseConfig(steps=training.steps, length=training.length),)
    whole = sum(phase.steps for phase in given)
    found: list[Phase] = []
    done = first = 0
    for phase in given:
        done += phase.steps
        stop = round(training.steps * done / whole)
        if stop > first:
            batch, lr = phase.batch or training.batch, phase.lr or training.lr
            found.append(Phase(len(found), first, stop, phase.length, batch, lr))
        first = stop
    return tuple(found)


def phase_at(phases: tuple[Phase, ...], step: int) -> Phase:
    """The phase of a step; steps beyond the end belong to the last."""
    for phase in phases:
        if step < phase.stop:
            return phase
    return phases[-1]
