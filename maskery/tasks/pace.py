"""How many steps of a fine-tuning a time makes: the first ones are measured, then the plan holds.

The learning rate comes to its end with the last planned step, so a plan is made once and written into the run's state:
a run that is resumed goes on by it, whatever the clock says.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from maskery.tasks.base import AnyTaskModel
from maskery.tasks.folder import TaskFolder, put_weights, weights_of
from maskery.tasks.resolve import Splits
from maskery.tasks.run import Tuning, tuning_of
from maskery.tasks.settings import TaskConfig

Say = Callable[[str], None]
_UPDATES = 8
"""Updates measured; the first is not counted, because it pays for what happens once."""
_SHARE = 0.05
"""Part of the budget that measuring may take."""
_HEADROOM = 0.9
"""Saving, the page about the model, and a machine that is busier later take the rest."""
_AT_THE_END = 3
"""The best model is asked once more, and for its loss, which takes as long as reading twice."""


@dataclass(frozen=True)
class Pace:
    update: float
    """Seconds."""
    evaluation: float

    def steps(self, seconds: float, epoch: float) -> int:
        """That fit, with an evaluation after each `epoch` steps; at least one."""
        each = self.update + self.evaluation / epoch
        return max(1, int((_HEADROOM * seconds - _AT_THE_END * self.evaluation) / each))


def within_budget(made: AnyTaskModel, splits: Splits, seconds: float, say: Say) -> TaskConfig:
    """The task with as many steps as the time allows, at most those of all epochs."""
    began = time.perf_counter()
    config = made.config
    tuning = tuning_of(made, splits, TaskFolder(Path()), lambda note: None)
    epoch = tuning.trainer.feed.units / config.training.batch
    pace = _measured(tuning, seconds)
    fitting = pace.steps(seconds - (time.perf_counter() - began), epoch)
    steps = min(config.training.steps, fitting)
    each = f"{1000 * pace.update:.0f} ms an update, {pace.evaluation:.1f} s for the development set"
    if steps == config.training.steps:
        say(f"budget of {seconds:.0f} s: all {config.epochs:g} epochs fit ({steps:,} steps; {each})")
        return config
    epochs = steps / epoch
    say(f"budget of {seconds:.0f} s: {epochs:.2f} of {config.epochs:g} epochs ({steps:,} steps; {each})")
    training = config.training.model_copy(update={"steps": steps})
    return config.model_copy(update={"training": training, "epochs": epochs})


def _measured(tuning: Tuning, seconds: float) -> Pace:
    """Train a little; the weights are put back as they were."""
    system = tuning.made.system
    weights, began, times = weights_of(system), time.perf_counter(), []
    for update in tuning.trainer.updates():
        times.append(update.seconds)
        if len(times) == _UPDATES or time.perf_counter() - began > _SHARE * seconds:
            break
    put_weights(system, weights)
    system.zero_grad(set_to_none=True)
    system.eval()
    counted = times[1:] or times
    evaluation = 0.0 if tuning.dev is None else tuning.made.seconds(tuning.dev, _SHARE * seconds)
    return Pace(sum(counted) / len(counted), evaluation)


def planned_before(config: TaskConfig, folder: TaskFolder) -> TaskConfig | None:
    """The task with the steps that the run at `folder` was planned with; None: it was not begun."""
    stored = folder.state.get("task") if folder.begun else None
    if not isinstance(stored, dict):
        return None
    training = config.training.model_copy(update={"steps": stored["training"]["steps"]})
    return config.model_copy(update={"training": training, "epochs": stored["epochs"]})
