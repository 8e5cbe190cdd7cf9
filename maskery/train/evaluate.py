"""Loss, accuracy and perplexity on the part of the corpus set aside, always on the same rows under the same masks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import torch

from maskery.batches import Batch
from maskery.feed import Feed, share
from maskery.objectives.protocol import Ranked
from maskery.objectives.tokens import TokenObjective
from maskery.phases import Phase, phase_at
from maskery.system import System
from maskery.train.comparing import compared
from maskery.train.lanes import LaneMemory
from maskery.train.ranks import Ranks

_Sums = dict[tuple[str, str], list[float]]
"""(objective, metric) -> sum and count."""
_Ranked = dict[tuple[str, str], list[Ranked]]


def evaluate(
    system: System,
    heldout: Feed,
    step: int,
    rows: int,
    micro: int,
    device: torch.device,
    ranks: Ranks | None = None,
) -> dict[str, float]:
    """`eval/...` metrics at `step`; the rows are the first of the held-out plan's order, shared by the ranks."""
    ranks = ranks or Ranks()
    phase = phase_at(heldout.phases, max(0, step - 1))
    was_training = system.training
    system.eval()
    try:
        sums: _Sums = {}
        batches: Iterable[Batch] = heldout_batches(system, heldout, step, phase, rows, micro, ranks)
        if system.comparisons:  # all rows with all: the outcome does not depend on `micro`
            batches = compared(
                system, list(batches), lambda _, each: system.vectors(each.to(device)), ranks, gradient=False
            )
        ranked: _Ranked = {}
        for batch in batches:
            for name, metrics in system.measure(batch.to(device)).items():
                for metric, value in metrics.items():
                    if isinstance(value, Ranked):
                        ranked.setdefault((name, metric), []).append(value)
                        continue
                    entry = sums.setdefault((name, metric), [0.0, 0])
                    entry[0] += value[0]
                    entry[1] += value[1]
    finally:
        system.train(was_training)
    return _means(system, _added(ranks.gather(sums))) | _areas(ranks.gather(ranked))


def heldout_batches(
    system: System, heldout: Feed, step: int, phase: Phase, rows: int, micro: int, ranks: Ranks
) -> Iterator[Batch]:
    """The rank's share of the rows, `micro` at a time. Where the system remembers, lanes walk through the text, and a
    batch is given what the one before it left: it has to be read before the next is asked for."""
    if not heldout.recipe.model.memory:
        epochs, wanted = heldout.first(phase, rows)
        for part in _cuts(len(wanted), micro, ranks):
            yield heldout.make(step, phase, epochs[part], wanted[part])
        return
    order, turns = heldout.walk(phase, rows)
    for part in _cuts(order.lanes, micro, ranks):
        memory, lanes = LaneMemory(), np.arange(part.start, part.stop, dtype=np.int64)
        for turn in range(turns):
            visits = turn * order.lanes + lanes
            made = heldout.make(step, phase, *order.visit(visits))
            batch = memory.give(heldout.in_lanes(made, phase, order, visits))
            yield batch
            memory.take(batch, system.remembered)
            memory.commit()


def _cuts(count: int, micro: int, ranks: Ranks) -> list[slice]:
    mine = share(count, ranks.rank, ranks.world)
    return [slice(start, min(start + micro, mine.stop)) for start in range(mine.start, mine.stop, micro)]


def _added(parts: list[_Sums]) -> _Sums:
    """Sums and counts of all ranks; a rank without rows knows of no metric."""
    total: _Sums = {}
    for part in parts:
        for key, (value, count) in part.items():
            before = total.get(key, [0.0, 0])
            total[key] = [before[0] + value, before[1] + count]
    return total


def _areas(parts: list[_Ranked]) -> dict[str, float]:
    """The metrics about the order of scores, over the answers of all ranks."""
    keys = dict.fromkeys(key for part in parts for key in part)
    joined = {key: Ranked.joined([each for part in parts for each in part.get(key, [])]) for key in keys}
    return {
        f"eval/{name}/{metric}": ranked.area for (name, metric), ranked in joined.items() if ranked.area is not None
    }


def _means(system: System, sums: _Sums) -> dict[str, float]:
    means = {key: value / count for key, (value, count) in sums.items() if count}
    found: dict[str, float] = {
        "eval/loss": sum(system.weights[name] * means.get((name, "loss"), 0.0) for name in system.objectives)
    }
    first = next(iter(system.objectives))
    if (first, "accuracy") in means:
        found["eval/accuracy"] = means[first, "accuracy"]
    for (name, metric), value in means.items():
        found[f"eval/{name}/{metric}"] = value
        if metric == "loss" and isinstance(system.objectives[name], TokenObjective):
            found[f"eval/{name}/perplexity"] = math.exp(min(value, 700.0))
    return found
