"""A comparison to look at: a point and its interval for each variant, and the tables below."""

from __future__ import annotations

import math
from typing import Any

from maskery.compare.report import PUBLISHED_NOTE, facts, main_key, main_table, question_table, title, verdict
from maskery.language import phrases
from maskery.picture import Picture, report
from maskery.picture.markup import Markup, table
from maskery.picture.svg import Drawing, shortened
from maskery.picture.theme import SERIES_LIGHT

WIDTH, LINE, LEFT, TOP = 760.0, 28.0, 190.0, 26.0
_RIGHT = 24.0


def comparison_picture(found: dict[str, Any], lang: str = "en") -> Picture:
    """One page: the verdict, points with intervals, tables, what was equal."""
    words, key = phrases(lang), main_key(found)
    questions = found["equal"]["examination"]["questions"]
    name = words.phrase("Masked tokens") if key == "masked" else words.phrase("The next token")
    shown = [(name, [(each["label"], each[key]) for each in found["variants"]])]
    for question in questions:
        shown.append((question, [(each["label"], each["questions"].get(question)) for each in found["variants"]]))
    heading = words.phrase("{name}, accuracy % on the same held-out rows")
    drawings = [_points(heading.format(name=name), rows) for name, rows in shown]
    sections: list[tuple[str, Any, Any]] = [
        ("", verdict(found, words), [each for each in drawings if each is not None]),
        (words.phrase("In numbers"), [table(*main_table(found, words))], None),
    ]
    asked = question_table(found, words)
    if asked is not None:
        told = [words.phrase(PUBLISHED_NOTE), table(*asked)]
        sections.append((words.phrase("Questions about pairs, accuracy %"), told, None))
    sections.append((words.phrase("What was equal"), facts(found, words), None))
    return report(title(found, words), sections, lang)


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
