"""How many steps a time or a number of tokens makes. A budget is measured once; then only the steps count."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from statistics import median

import numpy as np

from maskery.corpus.mixture import Corpora
from maskery.errors import InputError
from maskery.feed import Feed
from maskery.phases import Phase, phases_of
from maskery.recipes.recipe import Recipe
from maskery.train import machine
from maskery.train.build import build_trainer
from maskery.train.ranks import Ranks, said_nowhere

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


def shares(recipe: Recipe) -> list[tuple[Phase, float]]:
    """The phases of a recipe and the part of all steps that each takes."""
    phases = phases_of(recipe.training)
    return [(phase, (phase.stop - phase.first) / recipe.training.steps) for phase in phases]


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


def slots_per_row(feed: Feed, phase: Phase) -> float:
    """Mean number of real positions: the tokens, [CLS], and a [SEP] behind each piece; by the shares of the corpora."""
    plan = feed.plan(phase)
    pieces = np.concatenate(([0], np.cumsum(plan.piece_end - plan.piece_start + 1)))
    slots = np.diff(pieces[plan.row_start[plan.part_start]])
    rows = np.diff(plan.part_start)
    return float(feed.shares(phase) @ (slots / rows + 1))


def steps_for_tokens(tokens: int, recipe: Recipe, corpus: Corpora) -> tuple[int, float]:
    """The number of steps that read so many real positions, and how many one step reads in the mean."""
    feed = Feed(recipe, corpus, recipe.training.seed)
    each = sum(share * phase.batch * slots_per_row(feed, phase) for phase, share in shares(recipe))
    return max(1, math.ceil(tokens / each)), each
