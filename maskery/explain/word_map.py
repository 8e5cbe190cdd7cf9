"""Words in two dimensions: chosen words and their neighbours, a colour and a shape for each group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskery import arguments
from maskery.arguments import checked
from maskery.explain.plot import wrapped
from maskery.explain.words import words_of
from maskery.picture import Picture
from maskery.picture.svg import SHAPES, Drawing, text_width
from maskery.picture.theme import LIGHT, SERIES_LIGHT
from maskery.words.plane import NEAR, Plane, plane
from maskery.words.vectors import AnyVectors, vectors_of

WIDTH, HEIGHT, EDGE = 860, 560, 24
_LINE = 15


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float


@checked
def word_map(vectors: AnyVectors, words: Sequence[str], near: int = NEAR, lang: str = "en") -> Picture:
    """Chosen words, each with its `near` neighbours, on the plane that keeps most of their differences."""
    vectors = vectors_of(vectors)
    chosen = arguments.items("words", words, 'a list of words: ["cat", "dog"]')
    words = [arguments.text(f"words[{number}]", each) for number, each in enumerate(chosen)]
    arguments.count("near", near, 0)
    return map_picture(plane(vectors, words, near), lang)


def map_picture(found: Plane, lang: str = "en") -> Picture:
    said = words_of(lang)
    title = said.word_map.format(words=said.listed(found.asked))
    note = said.word_map_note.format(share=f"{100 * found.share:.0f} %")
    body, file = (_drawn(title, found, text) for text in ("", note))
    return Picture(title, body.svg(), svg=file.file(), note=note, lang=lang)


def _drawn(title: str, found: Plane, note: str) -> Drawing:
    notes = wrapped(note, WIDTH - 2 * EDGE) if note else []
    drawing = Drawing(title, WIDTH, HEIGHT + 17 * len(notes))
    dots = _dots(found.place)
    taken = [_Box(x - 5, y - 5, x + 5, y + 5) for x, y in dots]
    for word, group, (x, y), number in zip(found.words, found.group.tolist(), dots, range(len(dots)), strict=True):
        asked = number < len(found.asked)
        _mark(drawing, group, x, y, asked)
        box = _label(word, x, y, taken)
        taken.append(box)
        drawing.text(box.left, box.bottom - 3, word, kind="strong" if asked else "soft")
    for number, line in enumerate(notes):
        drawing.text(EDGE, HEIGHT + 17 * number, line, kind="soft")
    return drawing


def _dots(place: NDArray[np.float64]) -> list[tuple[float, float]]:
    """Where each word stands on the paper. Both directions have one scale, so that distances can be compared."""
    low, high = place.min(axis=0), place.max(axis=0)
    room = np.array([WIDTH - 2 * EDGE - 90.0, HEIGHT - 2 * EDGE])
    scale = float((room / np.maximum(high - low, 1e-12)).min())
    middle = (low + high) / 2
    across = WIDTH / 2 - 30 + scale * (place[:, 0] - middle[0])
    down = HEIGHT / 2 - scale * (place[:, 1] - middle[1])
    return list(zip(across.tolist(), down.tolist(), strict=True))


def _mark(drawing: Drawing, group: int, x: float, y: float, asked: bool) -> None:
    number = group % len(SERIES_LIGHT)
    size = "" if asked else " scale(.7)"
    place = {"d": SHAPES[group % len(SHAPES)], "transform": f"translate({x:.1f} {y:.1f}){size}"}
    drawing.add("path", {**place, "class": f"mk-f{number}", "fill": SERIES_LIGHT[number], "stroke": LIGHT["paper"]})


def _label(word: str, x: float, y: float, taken: list[_Box]) -> _Box:
    """Right of its dot, or where it covers less: left, above, below."""
    width = text_width(word)
    corners = ((x + 7, y - 8), (x - 7 - width, y - 8), (x - width / 2, y - 8 - _LINE), (x - width / 2, y + 6))
    boxes = [_Box(left, top, left + width, top + _LINE) for left, top in corners]
    return min(boxes, key=lambda box: sum(_shared(box, other) for other in taken) + _outside(box))


def _shared(one: _Box, other: _Box) -> float:
    across = min(one.right, other.right) - max(one.left, other.left)
    down = min(one.bottom, other.bottom) - max(one.top, other.top)
    return max(0.0, across) * max(0.0, down)


def _outside(box: _Box) -> float:
    over = max(0.0, -box.left) + max(0.0, box.right - WIDTH) + max(0.0, -box.top) + max(0.0, box.bottom - HEIGHT)
    return 1000 * over
