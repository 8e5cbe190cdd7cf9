"""How many steps a time makes. A budget is measured once; then only the steps count."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from statistics import median

from maskery.corpus.mixture import Corpora
from maskery.errors import InputError
from maskery.phases import Phase
from maskery.recipes.recipe import Recipe
from maskery.train import machine
from maskery.train.build import build_trainer
from maskery.train.ranks import Ranks, said_nowhere
from maskery.train.tokens import shares

_UNITS = {"s": 1, "m": 60, "h": 3600}
_UPDATES = 8
"""Updates measured in each phase; the first is not counted, because it pays for what happens once."""
_SHARE = 0.05
"""Part of the budget that measuring may take."""
_HEADROOM = 0.97
"""Saving checkpoints and the final model take the rest."""
_EVALUATION = 1 / 3
"""A row read costs a third of a row learnt from."""


def parse_budget(text: str) -> float:
    """30s, 10m or 2h in seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text.strip())
    if not found or float(found[1]) == 0:
        raise InputError(f"--budget {text!r} is no length of time", repair="--budget 30s, --budget 10m or --budget 2h")
    return float(found[1]) * _UNITS[found[2]]


@dataclass(frozen=True)
class Speed:
    """What one phase costs."""

    phase: Phase
    share: float
    """Part of all steps."""
    seconds: float
    """Of one update."""


def measure(
    recipe: Recipe, corpus: Corpora, budget: float, ranks: Ranks | None = None, fsdp: bool = False
) -> list[Speed]:
    """Time a few updates of each phase on a system that is thrown away; with several ranks the first one's clock."""
    machine.prepare()
    ranks = ranks or Ranks()
    found = []
    for phase, share in shares(recipe):
        alone = {"length": phase.length, "batch": phase.batch, "phases": [], "steps": _UPDATES, "warmup": 0.0}
        trial = recipe.changed({f"training.{key}": value for key, value in alone.items()})
        began, times = time.perf_counter(), []
        for update in build_trainer(trial, corpus, 0, said_nowhere, ranks, fsdp).updates():
            times.append(update.seconds)
            long_enough = time.perf_counter() - began > _SHARE * budget
            if ranks.from_first(lambda: long_enough):  # noqa: B023
                break
        found.append(Speed(phase, share, median(times[1:] or times)))
    return ranks.from_first(lambda: found)


def steps_within(seconds: float, speeds: list[Speed], eval_every: int, eval_rows: int) -> int:
    """The number of steps that fits, evaluations included; at least one."""
    step = sum(speed.share * speed.seconds for speed in speeds)
    a_row = max(speed.seconds / speed.phase.batch for speed in speeds)
    evaluation = _EVALUATION * eval_rows * a_row
    each = step + (evaluation / eval_every if eval_every else 0.0)
    return max(1, int((_HEADROOM * seconds - evaluation) / each))
