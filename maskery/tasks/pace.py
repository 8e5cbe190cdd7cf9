"""A time budget as a number of steps: the first updates are measured, then the plan holds.

The learning rate comes to its end with the last planned step, so a plan is made once and written into the run's state:
a run that is resumed goes on by it, whatever the clock says.

Evaluation has a fifth of the budget. Where the development set is too long for that, a fixed random sample of it
chooses the best weights; the whole is read once at the end if half of that fifth is enough for it, else the report is
about the sample, and says so. Where too few steps are left to learn anything, the budget is refused.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from maskery.errors import InputError
from maskery.randomness import keys, uniform
from maskery.tasks.base import AnyTaskModel
from maskery.tasks.defaults import batch_for
from maskery.tasks.examples import Examples
from maskery.tasks.folder import TaskFolder, put_weights, weights_of
from maskery.tasks.resolve import Splits, evaluations, steps_of
from maskery.tasks.run import Tuning, tuning_of
from maskery.tasks.settings import TaskConfig

Say = Callable[[str], None]
_UPDATES = 8
"""Updates measured; the first is not counted, because it pays for what happens once."""
_SHARE = 0.05
"""Part of the budget that measuring may take."""
_TOO_LONG = 0.15
"""Unless the first alone has taken this part of it, a second one is measured."""
_HEADROOM = 0.9
"""Saving, the report, and a machine that is busier later take the rest."""
_EVALUATION = 0.2
"""Part of the budget that evaluations may take."""
_SAMPLED = 4
"""Evaluations on a sample at most: fewer and larger ones choose better."""
BY_TIME = ("epochs", "evaluate_every", "evaluate_rows", "report_rows")
"""Keys of task.toml that a schedule settles, beside the steps and, where it is open, the batch."""
_MEASURED, _FEWEST_ROWS, _FEWEST_STEPS = 100, 20, 5


@dataclass(frozen=True)
class Pace:
    update: float
    """Seconds of an update."""
    example: float
    """Of evaluating one example."""


@dataclass(frozen=True)
class Schedule:
    """What fits into a time."""

    steps: int
    evaluate_every: int
    rows: int
    """Examples of the development set in an evaluation; 0: all."""
    report_rows: int
    """In the report at the end."""
    evaluating: float
    """Seconds of all evaluations."""


def sample_of(dev: Examples, rows: int) -> Examples:
    """The same `rows` examples at every call; all where `rows` is 0. Candidates of a question (rank) stay together."""
    if not rows or rows >= len(dev):
        return dev
    names: dict[str, int] = {}
    unit = [names.setdefault(each.texts[0], len(names)) if dev.task == "rank" else at for at, each in enumerate(dev)]
    draw = uniform(keys(0, "dev sample", np.array(unit)), "order")
    chosen = np.sort(np.lexsort((np.arange(len(dev)), draw))[:rows])
    return replace(dev, items=tuple(dev.items[at] for at in chosen.tolist()), notes=())


def schedule(pace: Pace, config: TaskConfig, units: int, dev: int, seconds: float, later: float = 0.0) -> Schedule:
    """The plan of a training of `units` a epoch and `dev` examples in `seconds`, of which `later` are needed for what
    comes after it."""
    epoch, usable = units / config.training.batch, _HEADROOM * seconds - later
    share = min(_EVALUATION * seconds, dev * pace.example * len(evaluations(config, units)))
    steps = min(config.training.steps, int((usable - share) / pace.update))
    times = _times(config, steps, units)
    whole = dev * pace.example
    if times * whole <= share or not dev:
        plan = Schedule(steps, config.evaluate_every, 0, 0, times * whole)
    else:
        every = max(config.evaluate_every, math.ceil(steps / epoch / _SAMPLED))
        times = _times(config.model_copy(update={"evaluate_every": every}), steps, units)
        last = whole if whole <= share / 2 else 0.0
        rows = min(dev, int((share - last) / (times * pace.example)))
        plan = Schedule(steps, every, rows, 0 if last else rows, times * rows * pace.example + last)
    fitting = int((usable - plan.evaluating) / pace.update)
    return replace(plan, steps=min(config.training.steps, fitting))


def _times(config: TaskConfig, steps: int, units: int) -> int:
    """Evaluations of a training that ends after so many steps."""
    epochs = steps * config.training.batch / max(1, units)
    training = config.training.model_copy(update={"steps": max(1, steps)})
    return len(evaluations(config.model_copy(update={"training": training, "epochs": epochs}), units))


@dataclass(frozen=True)
class _Planned:
    plan: Schedule
    pace: Pace
    units: int


def within_budget(
    made: AnyTaskModel, splits: Splits, seconds: float, say: Say, *, open_batch: bool = False
) -> TaskConfig:
    """The task with as many steps as the time allows, at most those of all epochs. Where the batch is open and few
    updates fit, there are more of smaller batches."""
    began, dev = time.perf_counter(), splits.dev
    planned = _planned(made, splits, seconds, began)
    usual = made.config.training.batch
    smaller = batch_for(planned.plan.steps * usual, usual) if open_batch else usual
    if smaller < usual:
        fitting = max(0, planned.plan.steps)
        updates = f"{fitting} update{'' if fitting == 1 else 's'}"
        say(f"batch size {smaller}: of {usual} rows only {updates} would fit into the budget")
        made.config = _in_batches(made.config, smaller, planned.units)
        planned = _planned(made, splits, seconds, began)
    config, plan, pace, units = made.config, planned.plan, planned.pace, planned.units
    _require_useful(plan, config, pace, seconds, 0 if dev is None else len(dev))
    for line in _told(plan, config, pace, seconds, units, dev):
        say(line)
    training = config.training.model_copy(update={"steps": plan.steps})
    epochs = config.epochs if plan.steps == config.training.steps else plan.steps * config.training.batch / units
    return config.model_copy(
        update={
            "training": training,
            "epochs": epochs,
            "evaluate_every": plan.evaluate_every,
            "evaluate_rows": plan.rows,
            "report_rows": plan.report_rows,
        }
    )


def _planned(made: AnyTaskModel, splits: Splits, seconds: float, began: float) -> _Planned:
    dev = splits.dev
    measured = None if dev is None else sample_of(dev, _MEASURED)
    tuning = tuning_of(made, replace(splits, dev=measured), TaskFolder(Path()), lambda note: None)
    units = tuning.trainer.feed.units
    pace = _measured(tuning, seconds)
    left = seconds - (time.perf_counter() - began)
    each = pace.example or pace.update / made.config.training.batch / 3
    later = 0.0 if splits.test is None else len(splits.test) * each
    plan = schedule(pace, made.config, units, 0 if dev is None else len(dev), left, later)
    return _Planned(plan, pace, units)


def _in_batches(config: TaskConfig, batch: int, units: int) -> TaskConfig:
    training = config.training.model_copy(update={"batch": batch})
    config = config.model_copy(update={"training": training})
    training = training.model_copy(update={"steps": steps_of(config, units)})
    return config.model_copy(update={"training": training})


def _require_useful(plan: Schedule, config: TaskConfig, pace: Pace, seconds: float, dev: int) -> None:
    fewest = min(_FEWEST_STEPS, config.training.steps)
    rows = min(_FEWEST_ROWS, dev)
    if plan.steps >= fewest and (not plan.rows or plan.rows >= rows):
        return
    needed = math.ceil(max(fewest * pace.update / (_HEADROOM - _EVALUATION), rows * pace.example / _EVALUATION) / 0.8)
    evaluating = f", with {pace.example * 1000:.0f} ms for each example of the development set" if dev else ""
    raise InputError(
        f"the budget leaves {seconds:.0f} s for training: {max(0, plan.steps)} updates of {pace.update:.2f} s fit"
        f"{evaluating}; fewer than {fewest} updates learn nothing",
        repair=f"a budget of {needed} s more, shorter rows (--length), smaller batches (--batch), or a smaller model",
    )


def _told(
    plan: Schedule, config: TaskConfig, pace: Pace, seconds: float, units: int, dev: Examples | None
) -> list[str]:
    each = f"{1000 * pace.update:.0f} ms an update"
    if plan.steps == config.training.steps:
        told = [f"budget of {seconds:.0f} s: all {config.epochs:g} epochs fit ({plan.steps:,} steps; {each})"]
    else:
        epochs = plan.steps * config.training.batch / units
        told = [f"budget of {seconds:.0f} s: {epochs:.2f} of {config.epochs:g} epochs ({plan.steps:,} steps; {each})"]
    if dev is not None and plan.rows:
        report = "the report at the end reads all" if not plan.report_rows else "so does the report"
        told.append(
            f"evaluation has {plan.evaluating:.0f} s: it reads a fixed random sample of {plan.rows:,} of {len(dev):,} "
            f"development examples ({1000 * pace.example:.0f} ms each); {report}"
        )
    return told


def _measured(tuning: Tuning, seconds: float) -> Pace:
    """Train a little and evaluate a little; the weights are put back as they were."""
    system = tuning.made.system
    weights, began, times = weights_of(system), time.perf_counter(), []
    for update in tuning.trainer.updates():
        times.append(update.seconds)
        spent = time.perf_counter() - began
        if len(times) == _UPDATES or (spent > _SHARE * seconds and (len(times) > 1 or spent > _TOO_LONG * seconds)):
            break
    put_weights(system, weights)
    system.zero_grad(set_to_none=True)
    system.eval()
    counted = times[1:] or times
    return Pace(sum(counted) / len(counted), _example_seconds(tuning, _SHARE * seconds))


def _example_seconds(tuning: Tuning, most: float) -> float:
    """Rows are made, read and compared with the right answers."""
    if tuning.dev is None or not tuning.examples:
        return 0.0
    began = time.perf_counter()
    tuning.made.feed(tuning.examples, lambda note: None)
    making = time.perf_counter() - began
    return (making + tuning.made.seconds(tuning.dev, most)) / len(tuning.examples)


def planned_before(config: TaskConfig, folder: TaskFolder, open_batch: bool = False) -> TaskConfig | None:
    """The task as the run at `folder` was planned; None: it was not begun."""
    stored = folder.state.get("task") if folder.begun else None
    if not isinstance(stored, dict):
        return None
    by_time = ("steps", "batch") if open_batch else ("steps",)
    training = config.training.model_copy(update={key: stored["training"][key] for key in by_time})
    kept = {key: stored[key] for key in BY_TIME}
    return config.model_copy(update={"training": training, **kept})
