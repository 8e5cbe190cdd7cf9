"""The drawing of curves: panels one below the other, a legend on top, round ticks, a note at the bottom."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from maskery.explain.history import Column
from maskery.picture.axes import short_number, short_time, ticks, time_ticks
from maskery.picture.svg import DASHES, SHAPES, Drawing, shortened, text_width
from maskery.picture.theme import LIGHT, SERIES_LIGHT

Parts = list[tuple[Column, Column]]
LEFT, RIGHT, TOP, LEGEND_LINE, AXIS, GAP = 68, 16, 14, 20, 44, 18
_PARTS = re.compile("[\u3000-\u9fff\uff00-\uffef][，。：；、）]* *|[^ \u3000-\u9fff\uff00-\uffef]+ *")
MOST_POINTS = 60
"""More held-out points than this would hide their own line."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    label: str
    number: int
    """Which colour, dash and shape."""
    raw: Parts
    smooth: Parts
    over: int
    """Updates of the smoothing."""
    held_out: Parts
    missing: int
    """Values that are not a number."""

    @property
    def dash(self) -> str | None:
        return DASHES[self.number % len(DASHES)]

    @property
    def shape(self) -> str:
        return SHAPES[self.number % len(SHAPES)]


class Axis(NamedTuple):
    is_time: bool
    name: str


class Panel(NamedTuple):
    unit: str
    curves: list[Curve]


class Drawn(NamedTuple):
    drawing: Drawing
    frames: list[list[float]]
    """For each panel left, top, width and height of the plot, then x and y from ... to: what hovering needs."""


def draw(title: str, panels: Sequence[Panel], x: Axis, note: str, width: int) -> Drawn:
    plot_height = 300 if width > 600 else 220
    notes = wrapped(note, width - 2 * RIGHT)
    legends = [_legend_lines(panel, width) for panel in panels]
    heights = [lines * LEGEND_LINE + plot_height + AXIS + GAP for lines in legends]
    drawing = Drawing(title, width, TOP + sum(heights) + 17 * len(notes))
    span = _x_range(panels)
    top, frames = float(TOP), []
    for panel, lines, height in zip(panels, legends, heights, strict=True):
        _legend(drawing, panel, top, width)
        frame = (LEFT, top + lines * LEGEND_LINE + 6, width - LEFT - RIGHT, plot_height)
        y_range = _y_range(panel)
        _axes(drawing, frame, span, y_range, x, panel.unit)
        drawing.put(_plot(panel, frame[2], frame[3], span, y_range), frame[0], frame[1])
        frames.append([*frame, *span, *y_range])
        top += height
    for number, line in enumerate(notes):
        drawing.text(RIGHT, top + 17 * number + 4, line, kind="soft")
    return Drawn(drawing, frames)


def _x_range(panels: Sequence[Panel]) -> tuple[float, float]:
    every = [x for panel in panels for curve in panel.curves for x, _ in (*curve.raw, *curve.held_out)]
    high = float(max((part.max() for part in every), default=1.0))
    return 0.0, high if high > 0 else 1.0


def _y_range(panel: Panel) -> tuple[float, float]:
    """All smoothed and held-out values and nearly all of the raw ones: single spikes leave the frame."""
    main = [y for curve in panel.curves for _, y in (*curve.smooth, *curve.held_out)]
    raw = [y for curve in panel.curves for _, y in curve.raw]
    if not main:
        return 0.0, 1.0
    low, high = float(np.min(np.concatenate(main))), float(np.max(np.concatenate(main)))
    if raw:
        rarest = np.quantile(np.concatenate(raw), (0.01, 0.99))
        low, high = min(low, float(rarest[0])), max(high, float(rarest[1]))
    room = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
    return low - room, high + room


def _plot(
    panel: Panel, width: float, height: float, span: tuple[float, float], y_range: tuple[float, float]
) -> Drawing:
    inner = Drawing("", width, height)

    def place(x: Column, y: Column) -> tuple[Column, Column]:
        across = (x - span[0]) / (span[1] - span[0]) * (width - 8) + 4
        return across, (y_range[1] - y) / (y_range[1] - y_range[0]) * height

    for curve in panel.curves:
        if curve.over > 1:
            inner.path(_path(curve.raw, place), curve.number, faint=True, width=1)
    for curve in panel.curves:
        inner.path(_path(curve.smooth, place), curve.number, dash=curve.dash)
    for curve in panel.curves:
        inner.path(_path(curve.held_out, place), curve.number, width=1, dash="1 3")
        for x, y in curve.held_out:
            every = max(1, round(len(x) / MOST_POINTS))
            for across, down in zip(*place(x[::every], y[::every]), strict=True):
                _mark(inner, curve, float(across), float(down))
    return inner


def _mark(drawing: Drawing, curve: Curve, x: float, y: float) -> None:
    number = curve.number % len(SERIES_LIGHT)
    attributes = {"class": f"mk-f{number} mk-point", "fill": SERIES_LIGHT[number], "stroke": LIGHT["paper"]}
    drawing.add("path", {"d": curve.shape, "transform": f"translate({x:.1f} {y:.1f})", **attributes})


def _path(parts: Parts, place: Callable[[Column, Column], tuple[Column, Column]]) -> str:
    pieces = []
    for x, y in parts:
        across, down = place(x, y)
        points = [f"{a:.1f} {b:.1f}" for a, b in zip(across.tolist(), down.tolist(), strict=True)]
        pieces.append("M" + "L".join(points if len(points) > 1 else points * 2))
    return "".join(pieces)


def _axes(
    drawing: Drawing,
    frame: tuple[float, float, float, float],
    span: tuple[float, float],
    y_range: tuple[float, float],
    x: Axis,
    unit: str,
) -> None:
    left, top, width, height = frame
    bottom = top + height
    for value in ticks(*y_range, max(3, round(height / 50))):
        y = top + (y_range[1] - value) / (y_range[1] - y_range[0]) * height
        drawing.line(left, y, left + width, y)
        drawing.text(left - 8, y + 4, short_number(value), anchor="end", kind="soft")
    many, shown = (time_ticks, short_time) if x.is_time else (ticks, short_number)
    for value in many(*span, max(3, round(width / 90))):
        across = left + 4 + (value - span[0]) / (span[1] - span[0]) * (width - 8)
        drawing.line(across, bottom, across, bottom + 4, "axis")
        drawing.text(across, bottom + 18, shown(value), anchor="middle", kind="soft")
    drawing.line(left, bottom, left + width, bottom, "axis")
    drawing.text(left + width / 2, bottom + 36, x.name, anchor="middle", kind="soft")
    drawing.text(14, top + height / 2, unit, anchor="middle", kind="soft", turn=-90)


def _legend_places(panel: Panel, width: int) -> list[tuple[float, int, Curve]]:
    """x, line and curve of each entry, in as many lines as are needed."""
    places, x, line = [], float(LEFT), 0
    for curve in panel.curves:
        size = 44 + text_width(_legend_text(curve, width)) + 18
        if x + size > width and x > LEFT:
            x, line = float(LEFT), line + 1
        places.append((x, line, curve))
        x += size
    return places


def _legend_text(curve: Curve, width: int) -> str:
    return shortened(curve.label, width - LEFT - 62)


def _legend_lines(panel: Panel, width: int) -> int:
    return 1 + max((line for _, line, _ in _legend_places(panel, width)), default=0)


def _legend(drawing: Drawing, panel: Panel, top: float, width: int) -> None:
    for x, line, curve in _legend_places(panel, width):
        y = top + line * LEGEND_LINE
        if curve.smooth:
            drawing.path(f"M{x:.1f} {y:.1f}h36", curve.number, dash=curve.dash)
        if curve.held_out:
            _mark(drawing, curve, x + 18, y)
        drawing.text(x + 44, y + 4, _legend_text(curve, width))


def wrapped(text: str, width: float) -> list[str]:
    """Lines that fit: broken at spaces, and between East Asian signs."""
    lines: list[str] = []
    for part in _PARTS.findall(text):
        longer = (lines[-1] if lines else "") + part
        if lines and text_width(longer.rstrip()) <= width:
            lines[-1] = longer
        else:
            lines.append(shortened(part.rstrip(), width) + " " * part.endswith(" "))
    return [line.rstrip() for line in lines]
