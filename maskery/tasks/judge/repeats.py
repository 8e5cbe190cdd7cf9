"""The same training several times: with other seeds, and on more and more of the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

from maskery.errors import InputError
from maskery.inspection.statistics import Interval


@dataclass(frozen=True)
class Spread:
    """A figure of several runs."""

    mean: float
    sd: float
    """Of the runs, with n - 1; 0 for one run."""
    each: tuple[float, ...]

    def plain(self) -> dict[str, Any]:
        return {"mean": self.mean, "sd": self.sd, "each": list(self.each)}


def spread(values: Iterable[float]) -> Spread:
    each = tuple(values)
    return Spread(fmean(each), stdev(each) if len(each) > 1 else 0.0, each)


def over_seeds(runs: Mapping[int, Mapping[str, float]]) -> dict[str, Spread]:
    """Metrics of each seed -> for every metric that all of them have: mean, standard deviation, and each."""
    if not runs:
        raise InputError("there is no run", repair="train with one seed at least")
    first, *others = runs.values()
    names = [name for name in first if all(name in other for other in others)]
    return {name: spread(run[name] for run in runs.values()) for name in names}


@dataclass(frozen=True)
class LearningPoint:
    """What a model is worth that was trained on so many examples."""

    size: int
    seed: int
    metrics: Mapping[str, float]
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    """95 % of resampled examples of the set it was measured on."""


@dataclass(frozen=True)
class LearningCurve:
    points: tuple[LearningPoint, ...]

    def over_sizes(self, metric: str) -> dict[int, Spread]:
        """Sizes ascending, each with its seeds."""
        found: dict[int, list[float]] = {}
        for point in sorted(self.points, key=lambda each: (each.size, each.seed)):
            if metric in point.metrics:
                found.setdefault(point.size, []).append(point.metrics[metric])
        if not found:
            raise InputError(f"no point of the curve has {metric}", repair=f"one of {', '.join(self.metrics)}")
        return {size: spread(values) for size, values in found.items()}

    def intervals(self, metric: str) -> dict[int, Interval]:
        """By size, where one run tells it; several tell more by how far they lie apart."""
        sizes = [point.size for point in self.points]
        alone = [point for point in self.points if sizes.count(point.size) == 1 and metric in point.intervals]
        return {point.size: point.intervals[metric] for point in alone}

    @property
    def metrics(self) -> list[str]:
        return list(dict.fromkeys(name for point in self.points for name in point.metrics))

    def plain(self) -> list[dict[str, Any]]:
        return [
            {
                "size": point.size,
                "seed": point.seed,
                **point.metrics,
                "intervals": {name: list(pair) for name, pair in point.intervals.items()},
            }
            for point in self.points
        ]


def sizes_of(examples: int, steps: int = 5, least: int = 100) -> list[int]:
    """Sizes that double up to all examples: n/16, n/8, n/4, n/2, n, none of them below `least`."""
    found = {max(min(least, examples), round(examples / 2**step)) for step in range(steps)}
    return sorted(found)
