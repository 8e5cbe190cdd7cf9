"""Plots of a judgement: how sure against how right, and what more data brings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from maskery.inspection.statistics import Interval
from maskery.picture import Picture
from maskery.picture.axes import short_number, ticks
from maskery.picture.markup import Markup, joined, tag
from maskery.picture.svg import DASHES, Drawing, text_width
from maskery.picture.theme import LIGHT, SERIES_LIGHT
from maskery.tasks.judge.calibration import Calibrated, Calibration
from maskery.tasks.judge.repeats import LearningCurve, Spread
from maskery.tasks.judge.words import JudgeWords, judge_words, share_text

WIDE, NARROW = 560.0, 372.0
LEFT, RIGHT, BOTTOM, LEGEND = 62.0, 22.0, 46.0, 22.0
_LARGEST = 9.0
_FEW_POINTS = 60
"""Of more, the line alone is drawn."""
_FIRM = 10
"""Examples of a bin that the line goes through; of fewer, chance would make a jagged one."""


@dataclass(frozen=True)
class _Frame:
    """A field of the drawing, and which values it shows."""

    width: float
    height: float
    top: float
    x: tuple[float, float]
    y: tuple[float, float]

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = LEFT + (x - self.x[0]) / (self.x[1] - self.x[0]) * self.width
        return across, self.top + (self.y[1] - y) / (self.y[1] - self.y[0]) * self.height


def reliability_picture(found: Calibrated, lang: str = "en") -> Picture:
    """Chance against share of right answers, as trained and after the temperature."""
    words = judge_words(lang)
    return _picture(
        words.reliability_title, words.reliability_note, lang, lambda width: _reliability(found, words, width)
    )


def learning_picture(curve: LearningCurve, metric: str, lang: str = "en") -> Picture:
    """A metric over the number of examples, by its logarithm."""
    words = judge_words(lang)
    points, bars = curve.over_sizes(metric), curve.intervals(metric)
    note = f"{words.learning_note} {words.learning_bars}" if bars else words.learning_note
    return _picture(words.learning_title, note, lang, lambda width: _learning(points, bars, metric, words, width))


def training_picture(points: Sequence[tuple[int, float]], name: str, title: str, lang: str = "en") -> Picture:
    """A figure of a run over its steps: the loss of every update, or a metric of every evaluation, with points."""
    words = judge_words(lang)
    return _picture(title, "", lang, lambda width: _over_steps(points, name, title, words, width))


def _over_steps(points: Sequence[tuple[int, float]], name: str, title: str, words: JudgeWords, width: float) -> Drawing:
    steps, values = [float(step) for step, _ in points], [value for _, value in points]
    room = 0.12 * (max(values) - min(values)) or 0.05 * abs(values[0]) or 0.05
    air = 0.03 * (steps[-1] - steps[0]) or 0.5
    frame = _Frame(
        width - LEFT - RIGHT, 0.45 * width, 16.0, (steps[0] - air, steps[-1] + air),
        (min(values) - room, max(values) + room),
    )  # fmt: skip
    drawing = Drawing(title, width, frame.top + frame.height + BOTTOM)
    marks = [(value, short_number(value)) for value in ticks(*frame.x, 6) if value >= steps[0]]
    _axes(drawing, frame, (words.training_axis, name), _apart(frame, marks))
    _curve(drawing, frame, [(step, value) for step, value in zip(steps, values, strict=True)], 0)
    if len(points) <= _FEW_POINTS:
        for step, value in points:
            _point(drawing, frame.at(step, value), 0, 4, f"{step:,}: {name} {value:.4f}")
    return drawing


def _picture(title: str, note: str, lang: str, draw: Callable[[float], Drawing]) -> Picture:
    wide, narrow = draw(WIDE), draw(NARROW)
    body = joined([Markup(wide.svg("mk-wide")), Markup(narrow.svg("mk-narrow"))])
    return Picture(title, body, svg=wide.file(), note=note, lang=lang)


def _reliability(found: Calibrated, words: JudgeWords, width: float) -> Drawing:
    side = min(width - LEFT - RIGHT, 420.0)
    names = (words.before, f"{words.after} ({found.temperature:.3g})")
    drawing = Drawing(words.reliability_title, max(LEFT + side + RIGHT, LEFT + 40 + max(map(text_width, names))), 0)
    top = LEGEND * len(names) + 14
    frame = _Frame(side, side, top, (0.0, 1.0), (0.0, 1.0))
    drawing.height = top + side + BOTTOM
    _axes(drawing, frame, words.reliability_axes, [(each / 5, share_text(each / 5, 0)) for each in range(6)])
    (x1, y1), (x2, y2) = frame.at(0, 0), frame.at(1, 1)
    drawing.path(f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}", 6, width=1, dash="2 3")
    for number, (name, each) in enumerate(zip(names, (found.before, found.after), strict=True)):
        _legend(drawing, number, name)
        _bins(drawing, frame, each, number, words)
    return drawing


def _bins(drawing: Drawing, frame: _Frame, found: Calibration, number: int, words: JudgeWords) -> None:
    there = [each for each in found.bins if each.n]
    most = max(each.n for each in there)
    firm = [(each.chance, each.right) for each in there if each.n >= _FIRM]
    if firm:
        _curve(drawing, frame, firm, number)
    for each in there:
        told = words.bin.format(
            low=share_text(each.low, 0), high=share_text(each.high, 0), n=f"{each.n:,}",
            chance=share_text(each.chance), right=share_text(each.right),
        )  # fmt: skip
        _point(drawing, frame.at(each.chance, each.right), number, max(2.5, _LARGEST * math.sqrt(each.n / most)), told)


def _learning(
    points: dict[int, Spread], bars: dict[int, Interval], metric: str, words: JudgeWords, width: float
) -> Drawing:
    values = [value for each in points.values() for value in each.each]
    values += [bound for pair in bars.values() for bound in pair]
    room = 0.12 * (max(values) - min(values)) or 0.05 * abs(values[0]) or 0.05
    sizes = [math.log2(size) for size in points]
    air = 0.06 * (sizes[-1] - sizes[0]) or 0.5
    frame = _Frame(
        width - LEFT - RIGHT, 0.6 * width, 16.0, (sizes[0] - air, sizes[-1] + air),
        (min(values) - room, max(values) + room),
    )  # fmt: skip
    drawing = Drawing(words.learning_title, width, frame.top + frame.height + BOTTOM)
    marks = [(math.log2(size), short_number(size)) for size in points]
    _axes(drawing, frame, (words.learning_axis, metric), _apart(frame, marks))
    for size, (low, high) in bars.items():
        (x, bottom), (_, top) = frame.at(math.log2(size), low), frame.at(math.log2(size), high)
        ends = "".join(f"M{x - 5:.1f} {y:.1f}h10" for y in (bottom, top))
        drawing.path(f"M{x:.1f} {bottom:.1f}V{top:.1f}{ends}", 0, width=1)
    _curve(drawing, frame, [(math.log2(size), each.mean) for size, each in points.items()], 0)
    for size, each in points.items():
        for value in each.each:
            _point(drawing, frame.at(math.log2(size), value), 0, 4, f"{size:,}: {metric} {value:.4f}")
    return drawing


def _apart(frame: _Frame, marks: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Marks of the axis without those that would lie on the one before."""
    kept: list[tuple[float, str]] = []
    for value, name in marks:
        if not kept or frame.at(value, 0)[0] - frame.at(kept[-1][0], 0)[0] > text_width(name) + 10:
            kept.append((value, name))
    return kept


def _axes(drawing: Drawing, frame: _Frame, names: tuple[str, str], across: Sequence[tuple[float, str]]) -> None:
    right, bottom = LEFT + frame.width, frame.top + frame.height
    shares = frame.y == (0.0, 1.0)
    for value in ticks(*frame.y, max(3, round(frame.height / 60))):
        y = frame.at(0, value)[1]
        drawing.line(LEFT, y, right, y)
        drawing.text(LEFT - 8, y + 4, share_text(value, 0) if shares else short_number(value), "end", "soft")
    for value, name in across:
        x = frame.at(value, 0)[0]
        drawing.line(x, bottom, x, bottom + 4, "axis")
        drawing.text(x, bottom + 18, name, "middle", "soft")
    drawing.line(LEFT, bottom, right, bottom, "axis")
    drawing.text(LEFT + frame.width / 2, bottom + 38, names[0], "middle", "soft")
    drawing.text(13, frame.top + frame.height / 2, names[1], "middle", "soft", turn=-90)


def _legend(drawing: Drawing, number: int, name: str) -> None:
    y = 12 + LEGEND * number
    drawing.path(f"M{LEFT:.1f} {y}h30", number, dash=DASHES[number])
    drawing.text(LEFT + 38, y + 4, name)


def _curve(drawing: Drawing, frame: _Frame, points: Sequence[tuple[float, float]], number: int) -> None:
    places = "L".join("{:.1f} {:.1f}".format(*frame.at(*point)) for point in points)
    drawing.path(f"M{places}", number, dash=DASHES[number])


def _point(drawing: Drawing, place: tuple[float, float], number: int, size: float, told: str) -> None:
    look: dict[str, object] = {
        "class": f"mk-f{number}",
        "fill": SERIES_LIGHT[number],
        "fill-opacity": "0.75",
        "stroke": LIGHT["paper"],
        "style": "stroke:var(--mk-paper)",
    }
    x, y = place
    if number:
        shape = {"x": x - size, "y": y - size, "width": 2 * size, "height": 2 * size}
        drawing.add("rect", {**shape, **look}, tag("title", told))
    else:
        drawing.add("circle", {"cx": x, "cy": y, "r": size, **look}, tag("title", told))
