"""Loss, accuracy and perplexity on the part of the corpus set aside, always on the same rows under the same masks."""

from __future__ import annotations

import math

import numpy as np
import torch

from maskery.feed import Feed
from maskery.objectives.tokens import TokenObjective
from maskery.phases import phase_at
from maskery.system import System


def evaluate(system: System, heldout: Feed, step: int, rows: int, micro: int, device: torch.device) -> dict[str, float]:
    """`eval/...` metrics at `step`; the rows are the first of the held-out plan's keyed order."""
    phase = phase_at(heldout.phases, max(0, step - 1))
    total = len(heldout.plan(phase))
    wanted = heldout.visit(phase, np.arange(min(rows, total)))
    was_training = system.training
    system.eval()
    sums: dict[tuple[str, str], list[float]] = {}
    for start in range(0, len(wanted), micro):
        part = wanted[start : start + micro]
        batch = heldout.make(step, phase, np.zeros_like(part), part)
        for name, metrics in system.measure(batch.to(device)).items():
            for metric, (value, count) in metrics.items():
                entry = sums.setdefault((name, metric), [0.0, 0])
                entry[0] += value
                entry[1] += count
    system.train(was_training)
    return _means(system, sums)


def _means(system: System, sums: dict[tuple[str, str], list[float]]) -> dict[str, float]:
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
