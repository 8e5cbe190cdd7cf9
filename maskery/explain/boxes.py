"""Boxes above each other with arrows between them: what the drawing of a network is put together from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maskery.picture.svg import Drawing, shortened, text_width
from maskery.picture.theme import LIGHT

LINE, PAD, GAP = 18, 7, 20
"""Of a line of text; inside a box above and below it; between two boxes, where the arrow stands."""
CLOSE, BORDER, HEADING, WAYS = 6, 14, 20, 14
"""Between boxes that belong together; around what a frame holds; for its heading; for ways beside and below."""


@dataclass(frozen=True)
class Line:
    """What it is, on the left; its size, in the middle; its parameters, on the right."""

    name: str
    size: str = ""
    count: int | None = None
    strong: bool = False


@dataclass(frozen=True)
class Box:
    lines: tuple[Line, ...]
    kind: str
    """A colour of the theme."""
    dashed: bool = False

    @property
    def height(self) -> float:
        return 2 * PAD + LINE * len(self.lines)


@dataclass(frozen=True)
class Cells:
    """A row of tokens; those whose number is in `marked` have a colour."""

    texts: tuple[str, ...]
    label: str
    marked: dict[int, str]

    @property
    def height(self) -> float:
        return 24 + LINE


@dataclass(frozen=True)
class Frame:
    """Boxes, the first at the bottom; several frames are drawn behind it for several of the same."""

    boxes: tuple[Box, ...]
    heading: str
    gap: float = CLOSE
    copies: int = 1
    again: bool = False
    """Its end leads back to its beginning: the same weights once more."""
    around: tuple[tuple[int, int], ...] = ()
    """Ways around boxes: from below the first number to the second (what is added)."""

    @property
    def ways(self) -> float:
        return WAYS if self.around else 0

    @property
    def height(self) -> float:
        inside = sum(box.height for box in self.boxes) + self.gap * (len(self.boxes) - 1)
        return inside + 2 * BORDER + HEADING + self.ways


Item = Box | Cells | Frame


def coloured(drawing: Drawing, name: str, attributes: dict[str, object], fill: str | None, stroke: str | None) -> None:
    """A shape in colours of the theme, light ones as attributes."""
    style = ""
    for key, colour in (("fill", fill), ("stroke", stroke)):
        attributes[key] = LIGHT[colour] if colour else "none"
        style += f"{key}:var(--mk-{colour});" if colour else f"{key}:none;"
    drawing.add(name, attributes | {"style": style})


def rectangle(
    drawing: Drawing, x: float, y: float, width: float, height: float, kind: str, *, dashed: bool = False
) -> None:
    back, edge = ("paper", "line") if kind == "plain" else (f"{kind}-back", kind)
    frame: dict[str, object] = {"x": x, "y": y, "width": width, "height": height, "rx": 6}
    coloured(drawing, "rect", frame | ({"stroke-dasharray": "5 3"} if dashed else {}), back, edge)


def draw_box(drawing: Drawing, box: Box, x: float, y: float, width: float) -> None:
    rectangle(drawing, x, y, width, box.height, box.kind, dashed=box.dashed)
    for number, line in enumerate(box.lines):
        baseline = y + PAD + LINE * number + 13
        count = "" if line.count is None else f"{line.count:,}"
        drawing.text(x + 12, baseline, line.name, kind="strong" if line.strong else "")
        drawing.text(x + width - 12, baseline, count, anchor="end")
        if line.size:
            left = x + 12 + max(text_width(line.name) * 1.06 + 12, 0.3 * width)
            room = x + width - 24 - text_width(count) - left
            drawing.text(left, baseline, shortened(line.size, room), kind="soft")


def first_cell(cells: Cells, x: float, width: float) -> float:
    """Where the cells begin, in the middle of a column."""
    return x + (width - sum(text_width(text) + 19 for text in cells.texts) + 5) / 2


def draw_cells(drawing: Drawing, cells: Cells, x: float, y: float, width: float) -> None:
    sizes, left = [text_width(text) + 14 for text in cells.texts], first_cell(cells, x, width)
    for number, (text, wide) in enumerate(zip(cells.texts, sizes, strict=True)):
        kind = cells.marked.get(number, "plain")
        rectangle(drawing, left, y, wide, 24, kind)
        drawing.text(left + wide / 2, y + 16, text, anchor="middle")
        left += wide + 5
    drawing.text(x + width / 2, y + 24 + 15, cells.label, anchor="middle", kind="soft")


def draw_frame(drawing: Drawing, frame: Frame, x: float, y: float, width: float) -> None:
    height = frame.height
    for behind in reversed(range(1, frame.copies)):
        outline: dict[str, object] = {"x": x + 5 * behind, "y": y - 5 * behind, "width": width, "height": height}
        coloured(drawing, "rect", outline | {"rx": 9}, "panel", "line")
    coloured(drawing, "rect", {"x": x, "y": y, "width": width, "height": height, "rx": 9}, "panel", "line")
    drawing.text(x + width - BORDER, y + 19, frame.heading, anchor="end", kind="strong")
    places, bottom, inset = [], y + height - BORDER - frame.ways, BORDER + frame.ways
    for box in frame.boxes:
        places.append(bottom - box.height)
        draw_box(drawing, box, x + inset, places[-1], width - 2 * inset)
        bottom = places[-1] - frame.gap
    if frame.around:
        _ways(drawing, frame, places, x, y, width)


def _ways(drawing: Drawing, frame: Frame, places: list[float], x: float, y: float, width: float) -> None:
    """From box to box, around some, and back again; `places` are the upper edges of the boxes."""
    middle, below = x + width / 2, [top + box.height for top, box in zip(places, frame.boxes, strict=True)]
    for number, end in enumerate(below):
        start = places[number - 1] if number else y + frame.height
        arrow(drawing, [(middle, start), (middle, end + 1)])
    arrow(drawing, [(middle, places[-1]), (middle, y)], tip=False)
    for first, last in frame.around:
        side, start, end = x + BORDER, below[first] + GAP / 2, places[last] + frame.boxes[last].height / 2
        arrow(drawing, [(middle, start), (side, start), (side, end), (x + BORDER + WAYS, end)])
    if frame.again:
        side, top, low = x + width + 18, places[-1] - 10, below[0] + GAP
        arrow(drawing, [(middle, top), (side, top), (side, low), (middle + 2, low)])


def arrow(drawing: Drawing, points: Sequence[tuple[float, float]], *, dashed: bool = False, tip: bool = True) -> None:
    """A line through points, straight from each to the next, with a tip at its end."""
    data = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    line: dict[str, object] = {"d": data, "stroke-width": 1.4, "stroke-linejoin": "round"}
    coloured(drawing, "path", line | ({"stroke-dasharray": "5 4"} if dashed else {}), None, "soft")
    if tip:
        (x0, y0), (x, y) = points[-2:]
        far = max(abs(x - x0), abs(y - y0)) or 1.0
        across, along = 5 * (x - x0) / far, 5 * (y - y0) / far
        head = f"M{x:.1f} {y:.1f}L{x - across - 0.7 * along:.1f} {y - along + 0.7 * across:.1f}"
        head += f"L{x - across + 0.7 * along:.1f} {y - along - 0.7 * across:.1f}Z"
        coloured(drawing, "path", {"d": head}, "soft", None)


def draw_item(drawing: Drawing, item: Item, x: float, y: float, width: float) -> None:
    if isinstance(item, Box):
        draw_box(drawing, item, x, y, width)
    elif isinstance(item, Cells):
        draw_cells(drawing, item, x, y, width)
    else:
        draw_frame(drawing, item, x, y, width)


def heights(items: Sequence[Item]) -> float:
    """Of items above each other with room for an arrow between any two."""
    return sum(item.height for item in items) + GAP * (len(items) - 1) if items else 0.0


def draw_column(drawing: Drawing, items: Sequence[Item], x: float, bottom: float, width: float) -> list[float]:
    """Items from the bottom to the top, an arrow from each to the next; the upper edge of each."""
    edges: list[float] = []
    for number, item in enumerate(items):
        y = bottom - item.height
        if number:
            arrow(drawing, [(x + width / 2, edges[-1] - 1), (x + width / 2, bottom + 1)])
        draw_item(drawing, item, x, y, width)
        edges.append(y)
        bottom = y - GAP
    return edges
