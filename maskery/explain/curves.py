"""Curves of one or several runs in one picture: every update faint, smoothed on top, held-out values as points.

Metrics of one unit (all losses, all accuracies) share a panel. A drawing for wide and one for narrow pages are made;
the page shows the one that fits, the SVG file is the wide one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maskery.arguments import checked
from maskery.errors import InputError, UnknownName
from maskery.explain.history import (
    X_AXES,
    Column,
    History,
    Source,
    histories,
    require_updates,
    sums_differ,
)
from maskery.explain.plot import Axis, Curve, Panel, draw
from maskery.explain.series import smoothed, stretches, thinned, window
from maskery.explain.words import Words, words_of
from maskery.picture import Picture
from maskery.picture.markup import Markup, joined, language, script_data, tag

WIDE, NARROW = 860, 400
_SCRIPT = Path(__file__).with_name("curves.js").read_text(encoding="utf-8")
_STYLE = Path(__file__).with_name("curves.css").read_text(encoding="utf-8")
_HELD_OUT = "eval/"


@dataclass(frozen=True)
class _Asked:
    run: History
    metric: str
    x: Column
    y: Column

    @property
    def held_out(self) -> bool:
        return self.metric.startswith(_HELD_OUT)

    @property
    def base(self) -> str:
        return self.metric.removeprefix(_HELD_OUT)


@checked
def curves(
    runs: Source | Sequence[Source],
    metrics: Sequence[str] = ("loss", "eval/loss"),
    x: str = "steps",
    lang: str = "en",
) -> Picture:
    """Draw metrics of `metrics.jsonl` over x: steps, tokens or seconds."""
    if x not in X_AXES:
        raise UnknownName("x axis", x, X_AXES)
    found = require_updates(histories(runs))
    panels = _panels(_asked(found, metrics, x))
    names = [run.name for run in found]
    words = words_of(lang)
    title = words.curves.format(units=words.listed([panel.unit for panel in panels]), runs=words.listed(names))
    note = _note(panels, found, metrics, words)
    axis = Axis(x == "seconds", words.axes[x])
    wide, narrow = (draw(title, panels, axis, note, width) for width in (WIDE, NARROW))
    drawings = joined([Markup(wide.drawing.svg("mk-wide")), Markup(narrow.drawing.svg("mk-narrow"))])
    data = {
        "x": words.axes[x],
        "held_out": words.held_out,
        "panels": [_data(panel) for panel in panels],
        "frames": [wide.frames, narrow.frames],
    }
    body = joined(
        [
            tag("style", Markup(_STYLE)),
            drawings,
            tag("div", "", {"class": "mk-values", "hidden": "hidden"}),
            tag("script", script_data(data), {"type": "application/json", "class": "mk-data"}),
            tag("script", Markup(_SCRIPT)),
        ]
    )
    script = language(title + note)
    view = tag("div", body, {"class": "mk-curves", "data-mk-view": "curves", "lang": script})
    return Picture(title, view, svg=wide.drawing.file(), lang=lang)


def _asked(runs: Sequence[History], metrics: Sequence[str], x: str) -> list[_Asked]:
    """Each metric of each run that has it; one that no run has is refused, unless it is only the evaluation."""
    asked = []
    for metric in metrics:
        for run in runs:
            places = run.places(metric)
            if len(places):
                asked.append(_Asked(run, metric, X_AXES[x](run)[places], run.values(metric)))
    there = {each.metric for each in asked}
    known = set().union(*(run.metrics for run in runs)) - {"step", "tokens"}
    for metric in metrics:
        if metric not in there and not metric.startswith(_HELD_OUT):
            raise UnknownName("metric", metric, known, where=runs[0].folder.metrics_file)
    if not asked:
        raise InputError(
            "none of the runs was evaluated", where=runs[0].folder.metrics_file, repair=f"metrics: {', '.join(known)}"
        )
    return asked


def _panels(asked: Sequence[_Asked]) -> list[Panel]:
    """One for each unit. A run and a metric have one colour, whether measured in training or held out."""
    units: dict[str, list[_Asked]] = {}
    for each in asked:
        units.setdefault(_unit(each.metric), []).append(each)
    return [Panel(unit, _curves(members)) for unit, members in units.items()]


def _unit(metric: str) -> str:
    parts = metric.split("/")
    return "loss" if "loss" in parts else parts[-1]


def _curves(members: Sequence[_Asked]) -> list[Curve]:
    keys = list(dict.fromkeys((each.run.name, each.base) for each in members))
    several_runs = len({run for run, _ in keys}) > 1
    several_bases = len({base for _, base in keys}) > 1
    made = []
    for number, (run, base) in enumerate(keys):
        label = " ".join([run] * several_runs + [base] * (several_bases or not several_runs))
        mine = [each for each in members if (each.run.name, each.base) == (run, base)]
        training = next((each for each in mine if not each.held_out), None)
        held_out = next((each for each in mine if each.held_out), None)
        made.append(
            Curve(
                label=label,
                number=number,
                raw=[] if training is None else _drawn(training.x, training.y),
                smooth=[] if training is None else _drawn(training.x, smoothed(training.y, window(len(training.y)))),
                over=1 if training is None else window(len(training.y)),
                held_out=[] if held_out is None else _drawn(held_out.x, held_out.y),
                missing=sum(int((~np.isfinite(each.y)).sum()) for each in mine),
            )
        )
    return made


def _drawn(x: Column, y: Column) -> list[tuple[Column, Column]]:
    return [thinned(*part, most=2 * WIDE) for part in stretches(x, y)]


def _note(panels: Sequence[Panel], runs: Sequence[History], metrics: Sequence[str], words: Words) -> str:
    """What a reader has to know to read the drawing; whatever is left out is told."""
    every = [curve for panel in panels for curve in panel.curves]
    widths = sorted({curve.over for curve in every if curve.over > 1})
    told = []
    if widths:
        told.append(words.faint.format(over="–".join(map(str, dict.fromkeys((widths[0], widths[-1]))))))
    if any(curve.held_out for curve in every):
        told.append(words.points)
    for metric in metrics:
        without = [run.name for run in runs if not len(run.places(metric))]
        if without:
            told.append(words.lacking.format(metric=metric, runs=words.listed(without)))
    if sums_differ(runs) and {"loss", "eval/loss"} & set(metrics):
        told.append(words.different_sums)
    missing = sum(curve.missing for curve in every)
    if missing:
        told.append(words.gaps.format(missing=missing))
    return words.stop.join(told)


def _data(panel: Panel) -> dict[str, Any]:
    """What hovering reads: the smoothed curve and the held-out points, in few digits."""

    def flat(parts: list[tuple[Column, Column]]) -> list[list[float]]:
        pairs = [pair for x, y in parts for pair in zip(*thinned(x, y, 400), strict=True)]
        return [[float(f"{a:.6g}") for a, _ in pairs], [float(f"{b:.5g}") for _, b in pairs]]

    lines = [
        {"label": curve.label, "number": curve.number % 8, "line": flat(curve.smooth), "points": flat(curve.held_out)}
        for curve in panel.curves
    ]
    return {"unit": panel.unit, "curves": lines}
