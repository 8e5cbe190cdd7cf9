"""A drawing put together from lines, boxes and texts. Colours are classes; attributes repeat the light ones, so that
programs without CSS variables draw the same thing."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

from maskery.picture.markup import Markup, attributes_text, escape, joined, tag
from maskery.picture.theme import LIGHT, SERIES_LIGHT, drawing_css

XMLNS = "http://www.w3.org/2000/svg"
DASHES = (None, "7 4", "2 3", "10 3 2 3", "14 5", "5 2 1 2 1 2", "1 4", "9 2 4 2")
"""Beside the colour of a series: no two of the first eight are alike."""
SHAPES = ("M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "M-3.5-3.5h7v7h-7z", "M0-5l5 5l-5 5l-5-5z", "M0-5l4.5 8h-9z")
"""Marks of a point, about the place 0 0: circle, square, diamond, triangle."""


@dataclass
class Drawing:
    title: str
    width: float
    height: float
    parts: list[Markup] = field(default_factory=list)

    def add(self, name: str, attributes: Mapping[str, object], content: object = "") -> None:
        self.parts.append(tag(name, content, {key: _short(value) for key, value in attributes.items()}))

    def text(self, x: float, y: float, content: object, anchor: str = "start", kind: str = "", turn: float = 0) -> None:
        """`kind` is soft, strong, both or empty; `turn` is in degrees, about the place itself."""
        attributes: dict[str, object] = {"x": x, "y": y, "text-anchor": anchor, "font-size": 12}
        attributes["fill"] = LIGHT["soft" if "soft" in kind else "ink"]
        attributes["class"] = " ".join(f"mk-{each}" for each in kind.split()) or None
        attributes["transform"] = f"rotate({turn:g} {_short(x)} {_short(y)})" if turn else None
        self.add("text", attributes, content)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> None:
        colour = LIGHT["line" if kind == "grid" else "soft"]
        self.add("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": f"mk-{kind}", "stroke": colour})

    def path(self, data: str, series: int, *, faint: bool = False, width: float = 2, dash: str | None = None) -> None:
        number = series % len(SERIES_LIGHT)
        attributes = {
            "d": data,
            "class": f"mk-s{number}" + " mk-faint" * faint,
            "fill": "none",
            "stroke": SERIES_LIGHT[number],
            "stroke-opacity": "0.28" if faint else None,
            "stroke-width": width,
            "stroke-dasharray": dash,
            "stroke-linejoin": "round",
        }
        self.add("path", attributes)

    def put(self, other: Drawing, x: float, y: float) -> None:
        """Another drawing inside this one; what reaches beyond its frame is cut off."""
        frame = {"x": x, "y": y, "width": other.width, "height": other.height, "overflow": "hidden"}
        self.parts.append(Markup(f"<svg{attributes_text(frame)}>{joined(other.parts)}</svg>"))

    def svg(self, kind: str = "") -> str:
        """The element, for a page whose style has the theme."""
        return self._element(kind, "")

    def file(self) -> str:
        """The whole text of an SVG file."""
        paper = f'<rect width="100%" height="100%" class="mk-paper" fill="{LIGHT["paper"]}"/>'
        return self._element("", f"<style>{drawing_css()}</style>{paper}")

    def _element(self, kind: str, first: str) -> str:
        size = {
            "viewBox": f"0 0 {_short(self.width)} {_short(self.height)}",
            "width": self.width,
            "height": self.height,
        }
        opening = attributes_text({"xmlns": XMLNS, "class": f"mk-drawing {kind}".strip(), "role": "img", **size})
        return f"<svg{opening}><title>{escape(self.title)}</title>{first}{joined(self.parts)}</svg>"


def text_width(text: str, size: float = 12) -> float:
    """About how wide a text is drawn: East Asian signs are square, others a bit more than half as wide."""
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return size * (wide + 0.58 * (len(text) - wide))


def shortened(text: str, width: float, size: float = 12) -> str:
    """The text, or its beginning and an ellipsis, within a width."""
    if text_width(text, size) <= width:
        return text
    kept = text
    while kept and text_width(kept + "…", size) > width:
        kept = kept[:-1]
    return kept + "…"


def _short(value: object) -> object:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value
