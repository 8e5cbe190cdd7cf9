"""A list of texts, each with each: a square of cosines, as strong in colour as the two texts are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maskery.errors import ArgumentError
from maskery.picture import Picture
from maskery.picture.markup import Markup, joined, language, tag
from maskery.picture.svg import Drawing, shortened, text_width
from maskery.picture.theme import LIGHT
from maskery.vectors.judge.encodes import Encodes, Numbers, vectors_of
from maskery.vectors.judge.words import VectorWords, vector_words
from maskery.vectors.similarity import similarity

MOST = 60
"""Texts whose squares can still be told apart."""
WIDE, NARROW = 860.0, 372.0
_LARGEST, _STRONGEST = 46.0, 0.55
"""Of a square; and its colour: a stronger one would hide the number in one of the themes."""
_SMALLEST = 25.5
"""A square that holds -.38: labels are shortened before numbers are left out."""
_TOP, _EDGE = 24.0, 8.0


@dataclass(frozen=True)
class _Grid:
    left: float
    cell: float
    numbers: str
    """full as 0.61, short as .61, or none: where they do not fit."""
    low: float
    high: float


def heat_map(encoder: Encodes, texts: Sequence[str], lang: str = "en") -> Picture:
    """The cosines of up to 60 texts."""
    words = vector_words(lang)
    require_few(texts)
    vectors = vectors_of(encoder, texts)
    found = similarity(vectors, vectors).astype(np.float64).clip(-1.0, 1.0)
    apart = found[~np.eye(len(texts), dtype=bool)]
    low, high = float(apart.min()), float(apart.max())
    wide, narrow = (_square(list(texts), found, (low, high), words, width) for width in (WIDE, NARROW))
    drawings = joined([Markup(wide.svg("mk-wide")), Markup(narrow.svg("mk-narrow"))])
    body = tag("div", drawings, {"lang": language("".join(texts))})
    note = words.heat_note.format(low=f"{low:.2f}", high=f"{high:.2f}")
    return Picture(words.heat_title.format(n=len(texts)), body, svg=wide.file(), note=note, lang=lang)


def require_few(texts: Sequence[str]) -> None:
    """Refuse what makes no square, to be asked before a model is opened."""
    if not 2 <= len(texts) <= MOST:
        repair = "give fewer texts; a map draws sets of any size" if len(texts) > MOST else "give more texts"
        raise ArgumentError(f"{len(texts):,} texts: a square of 2 to {MOST} can be read", repair=repair)


def _square(texts: list[str], found: Numbers, ends: tuple[float, float], words: VectorWords, width: float) -> Drawing:
    many = len(texts)
    number = text_width(str(many)) + 10
    beside = width - number - 12 - _EDGE - many * _SMALLEST
    named = min(max(text_width(_line(text)) for text in texts), width * 0.42, max(width * 0.2, beside))
    left = number + named + 12
    cell = min(_LARGEST, (width - left - _EDGE) / many)
    numbers = "full" if cell >= text_width("-0.00") + 2 else "short" if cell >= _SMALLEST - 0.01 else "none"
    grid = _Grid(left, cell, numbers, *ends)
    drawing = Drawing(words.heat_title.format(n=many), left + many * cell + _EDGE, _TOP + many * cell + _EDGE)
    every = max(1, int(np.ceil((text_width(str(many)) + 4) / cell)))
    for place, text in enumerate(texts):
        middle = (place + 0.5) * cell
        if cell >= 11:
            drawing.text(number - 4, _TOP + middle + 4, place + 1, "end", "soft")
            drawing.text(number + 4, _TOP + middle + 4, shortened(_line(text), named))
        if place % every == 0:
            drawing.text(left + middle, _TOP - 7, place + 1, "middle", "soft")
        for other, cosine in enumerate(found[place].tolist()):
            told = words.heat_cell.format(cosine=f"{cosine:.4f}", one=text, other=texts[other])
            _cell(drawing, grid, place, other, cosine, told)
    return drawing


def _line(text: str) -> str:
    """As one line: what a label can show."""
    return " ".join(text.split())


def _cell(drawing: Drawing, grid: _Grid, row: int, column: int, cosine: float, told: str) -> None:
    x, y = grid.left + column * grid.cell, _TOP + row * grid.cell
    same = row == column
    span = grid.high - grid.low
    share = 0.5 if not span else (cosine - grid.low) / span
    gap = 1.0 if grid.cell >= 8 else 0.0
    frame: dict[str, object] = {"x": x + gap / 2, "y": y + gap / 2, "width": grid.cell - gap, "height": grid.cell - gap}
    colour = "line" if same else "accent"
    look = {
        "class": "mk-cell",
        "fill": LIGHT[colour],
        "fill-opacity": f"{0.5 if same else 0.04 + (_STRONGEST - 0.04) * share:.3f}",
        "style": f"fill:var(--mk-{colour})",
    }
    drawing.add("rect", frame | look, tag("title", told))
    if grid.numbers != "none":
        shown = _number(cosine, short=grid.numbers == "short")
        drawing.text(x + grid.cell / 2, y + grid.cell / 2 + 4, shown, "middle", "soft" if same else "")


def _number(cosine: float, *, short: bool) -> str:
    shown = f"{cosine:.2f}"
    shown = shown.lstrip("-") if float(shown) == 0 else shown
    if not short or shown in ("0.00", "1.00"):
        return shown if not short else shown[0]
    return shown.replace("0.", ".", 1)
