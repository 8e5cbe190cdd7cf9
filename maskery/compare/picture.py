"""A comparison to look at: a point and its interval for each variant, and the tables below."""

from __future__ import annotations

import math
from typing import Any

from maskery.compare.report import PUBLISHED_NOTE, facts, masked_table, question_table
from maskery.picture import Picture, report
from maskery.picture.markup import Markup, table
from maskery.picture.svg import Drawing, shortened
from maskery.picture.theme import SERIES_LIGHT

WIDTH, LINE, LEFT, TOP = 760.0, 28.0, 190.0, 26.0
_RIGHT = 24.0


def comparison_picture(found: dict[str, Any]) -> Picture:
    """One page: what was equal, points with intervals, tables."""
    questions = found["equal"]["examination"]["questions"]
    shown = [("Masked tokens", [(each["label"], each["masked"]) for each in found["variants"]])]
    for name in questions:
        shown.append((name, [(each["label"], each["questions"].get(name)) for each in found["variants"]]))
    drawings = [_points(f"{name}, accuracy % on the same held-out rows", rows) for name, rows in shown]
    sections: list[tuple[str, Any, Any]] = [
        ("", "", [each for each in drawings if each is not None]),
        ("In numbers", [table(*masked_table(found))], None),
    ]
    asked = question_table(found)
    if asked is not None:
        sections.append(("Questions about pairs, accuracy %", [PUBLISHED_NOTE, table(*asked)], None))
    sections.append(("What was equal", facts(found), None))
    return report("Comparison" + ("" if found["finished"] else " (not finished)"), sections)


def _points(title: str, rows: list[tuple[str, dict[str, Any] | None]]) -> Picture | None:
    drawn = [(label, asked) for label, asked in rows if asked is not None]
    if not drawn:
        return None
    low: float = min(asked["interval"][0] for _, asked in drawn)
    high: float = max(asked["interval"][1] for _, asked in drawn)
    step = _step(100 * (high - low))
    start, end = math.floor(100 * low / step) * step, math.ceil(100 * high / step) * step
    end = end if end > start else start + step
    height = TOP + LINE * len(drawn) + 30
    drawing = Drawing(title, WIDTH, height)

    def place(value: float) -> float:
        return LEFT + (WIDTH - LEFT - _RIGHT) * (100 * value - start) / (end - start)

    for number in range(round((end - start) / step) + 1):
        value = start + number * step
        drawing.line(place(value / 100), TOP - 8, place(value / 100), height - 26)
        drawing.text(place(value / 100), height - 8, f"{value:g}", "middle", "soft")
    for number, (label, asked) in enumerate(drawn):
        y = TOP + LINE * (number + 0.5)
        least, most = (place(bound) for bound in asked["interval"])
        drawing.text(LEFT - 12, y + 4, shortened(label, LEFT - 20), "end")
        drawing.path(f"M{least:.1f} {y:.1f}H{most:.1f}M{least:.1f} {y - 5:.1f}v10M{most:.1f} {y - 5:.1f}v10", 0)
        circle = {"cx": place(asked["accuracy"]), "cy": y, "r": 4.5, "class": "mk-f0", "fill": SERIES_LIGHT[0]}
        drawing.add("circle", circle)
    return Picture(title, Markup(drawing.svg()), svg=drawing.file())


def _step(width: float) -> float:
    """A round distance between lines: about six of them."""
    rough = max(width, 1e-3) / 6
    power = math.pow(10, math.floor(math.log10(rough)))
    return min(times * power for times in (1, 2, 5, 10) if times * power >= rough)
