"""What is trained besides one training, or before it; and where a run of several trainings keeps what was asked.

    truncate    long texts cut in each of the three ways: the best of them, or the three together
    seeds       the same training with other seeds
    curve       the same training on more and more of the data
    adapt       steps of the model's own pretraining on the task's texts, before anything else
    budget      seconds that all of it may take

They go together: a curve may have several seeds at each size.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from maskery import files
from maskery.checkpoint.tensors import read_json
from maskery.config import Config
from maskery.errors import InputError, RecipeError
from maskery.tasks.pace import BY_TIME
from maskery.tasks.resolve import Splits
from maskery.tasks.run import Watch

FILE = "plan.json"
ENDS: tuple[Literal["head", "tail", "head+tail"], ...] = ("head", "tail", "head+tail")


class Plan(Config):
    truncate: Literal["", "all", "fuse"] = ""
    """Train with each end of long texts: "all" keeps the best on the development set, "fuse" averages the three."""
    seeds: int = Field(1, ge=1)
    """Trainings that differ in nothing but their seed; the best on the development set is kept."""
    curve: bool = False
    """Train on a sixteenth, an eighth ... and on all of the examples; the last one is kept."""
    adapt: int = Field(0, ge=0)
    """Steps of pretraining on the task's own texts before it is trained for the task."""
    budget: float = Field(0.0, ge=0)
    """Seconds; 0: as long as all epochs take."""

    @property
    def several(self) -> bool:
        return bool(self.truncate) or self.seeds > 1 or self.curve

    @property
    def changes(self) -> list[str]:
        """The keys of task.toml that differ between what was asked and what is kept."""
        by = {"training.seed": self.seeds > 1, "rows.truncate": bool(self.truncate)}
        timed = BY_TIME if self.budget else ()
        return ["training.steps", *(key for key, changed in by.items() if changed), *timed]

    @property
    def plain_training(self) -> bool:
        """Whether there is one training and nothing besides."""
        return self == Plan()


@dataclass(frozen=True, kw_only=True)
class Part:
    """One stretch of work that can be watched."""

    path: Path
    title: str
    """Which training of how many; empty where there is one."""
    steps: int
    task: str = ""
    """Empty: pretraining."""


Watching = Callable[[Part], AbstractContextManager[Watch]]


def require_dev(plan: Plan, splits: Splits) -> None:
    """Several trainings are told apart by a development set."""
    seeds, ends = f"--seeds {plan.seeds}", f"--truncate {plan.truncate}"
    asked = {ends: bool(plan.truncate), seeds: plan.seeds > 1, "--curve": plan.curve}
    flag = next((name for name, given in asked.items() if given), None)
    if flag is not None and splits.dev is None:
        raise InputError(f"{flag} needs a development set", repair=f"--dev FILE, or leave out {flag}")


def kept_plan(out: Path, plan: Plan) -> dict[str, Any] | None:
    """What the run at `out` says of its plan; None: it was not begun. Another plan than the asked one is refused."""
    if not (out / FILE).is_file():
        begun = (out / "state.json").is_file()
        if begun and not plan.plain_training:
            raise _other(out, Plan(), plan)
        return None
    found = read_json(out / FILE)
    before = Plan(**{key: value for key, value in found.items() if key in Plan.model_fields})
    if before != plan:
        raise _other(out, before, plan)
    return found


def keep_plan(out: Path, plan: Plan, seconds: float) -> None:
    """`seconds`: what is left of the budget for the trainings; 0: there is none."""
    files.write_json(out / FILE, {**plan.plain(), "seconds": seconds})


def _other(out: Path, before: Plan, plan: Plan) -> RecipeError:
    key = next(name for name in Plan.model_fields if getattr(before, name) != getattr(plan, name))
    return RecipeError(
        f"the run was started with {key} = {getattr(before, key)!r}, asked is {getattr(plan, key)!r}",
        where=out,
        repair="resume with the same command, or choose another --out",
    )
