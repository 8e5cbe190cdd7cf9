"""The picture of a confusion matrix: counts on squares, as dark as their share of the line."""

from __future__ import annotations

from dataclasses import dataclass

from maskery.picture import Picture
from maskery.picture.markup import Markup, joined, language, tag
from maskery.picture.svg import Drawing, shortened, text_width
from maskery.picture.theme import LIGHT
from maskery.tasks.judge.confusion import Confusion
from maskery.tasks.judge.words import JudgeWords, judge_words, share_text

MOST = 30
"""Classes that are drawn."""
WIDE, NARROW = 860.0, 372.0
_BEHIND_A_NUMBER, _ALONE = 0.5, 0.9
"""How dark a square can be: what is darker would hide its number in one of the themes."""


def confusion_picture(found: Confusion, lang: str = "en") -> Picture:
    words = judge_words(lang)
    shown = found.gathered(MOST, words.rest)
    note = words.confusion_note
    if shown is not found:
        more = words.gathered.format(all=len(found.labels), shown=len(shown.labels) - 1)
        note = f"{note} {more}" if words.lang == "en" else note + more
    wide, narrow = (_matrix(shown, words, width) for width in (WIDE, NARROW))
    drawings = joined([Markup(wide.svg("mk-wide")), Markup(narrow.svg("mk-narrow"))])
    body = tag("div", drawings, {"lang": language("".join(shown.labels))})
    return Picture(words.confusion_title, body, svg=wide.file(), note=note, lang=lang)


@dataclass(frozen=True)
class _Grid:
    left: float
    top: float
    cell: float
    numbers: bool
    """Whether the counts fit."""
    turned: bool
    """Whether names of columns are written upwards."""


def _matrix(found: Confusion, words: JudgeWords, width: float) -> Drawing:
    many = len(found.labels)
    widest = max(text_width(label) for label in found.labels)
    left = 32 + min(widest, width * 0.28)
    cell = min(64.0, (width - left - 8) / many)
    turned = widest > cell - 6
    top = 24 + (min(widest, 110.0) + 8 if turned else 20.0)
    numbers = cell >= text_width(str(int(found.counts.max()))) + 6
    grid = _Grid(left, top, cell, numbers, turned)
    drawing = Drawing(words.confusion_title, max(left + many * cell + 8, 180), top + many * cell + 10)
    drawing.text(left + many * cell / 2, 14, words.predicted, "middle", "soft")
    drawing.text(14, top + many * cell / 2, words.gold, "middle", "soft", turn=-90)
    for place, label in enumerate(found.labels):
        _names(drawing, grid, place, label)
        _line(drawing, grid, found, place, words)
    return drawing


def _names(drawing: Drawing, grid: _Grid, place: int, label: str) -> None:
    middle = (place + 0.5) * grid.cell
    if grid.cell >= 11:
        drawing.text(grid.left - 6, grid.top + middle + 4, shortened(label, grid.left - 32), "end")
        if grid.turned:
            drawing.text(grid.left + middle + 4, grid.top - 6, shortened(label, grid.top - 30), turn=-90)
        else:
            drawing.text(grid.left + middle, grid.top - 6, label, "middle")


def _line(drawing: Drawing, grid: _Grid, found: Confusion, right: int, words: JudgeWords) -> None:
    every = int(found.counts[right].sum())
    darkest = _BEHIND_A_NUMBER if grid.numbers else _ALONE
    for column, count in enumerate(found.counts[right].tolist()):
        share = count / every if every else 0.0
        x, y = grid.left + column * grid.cell, grid.top + right * grid.cell
        colour = "accent" if column == right else "mask"
        told = words.cell.format(
            gold=found.labels[right], predicted=found.labels[column], n=f"{count:,}", all=f"{every:,}",
            share=share_text(share),
        )  # fmt: skip
        frame = {"x": x + 1, "y": y + 1, "width": grid.cell - 2, "height": grid.cell - 2, "class": "mk-cell"}
        fill = {"fill": LIGHT[colour], "fill-opacity": f"{darkest * share:.3f}", "stroke": LIGHT["line"]}
        style = {"style": f"fill:var(--mk-{colour});stroke:var(--mk-line)"}
        drawing.add("rect", frame | fill | style, tag("title", told))
        if grid.numbers and count:
            kind = "strong" if column == right else ""
            drawing.text(x + grid.cell / 2, y + grid.cell / 2 + 4, count, "middle", kind)
