"""Text into HTML, SVG and scripts: everything that a user or a model wrote is escaped here, and only here."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f]")
_IMPOSSIBLE = re.compile("[\ud800-\udfff\ufffe\uffff\x7f-\x84\x86-\x9f]")
_IN_SCRIPT = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_KANA = re.compile("[\u3040-\u30ff]")


class Markup(str):
    """A text that is HTML already. Whatever is not of this type is escaped."""

    __slots__ = ()


def escape(text: object) -> Markup:
    """Text for HTML and XML, content or attribute. Control characters, which XML has no way to write, are shown by
    their pictures (U+2400 and up), other impossible ones by U+FFFD."""
    if isinstance(text, Markup):
        return text
    shown = _CONTROL.sub(lambda found: chr(0x2400 + ord(found[0])), str(text))
    return Markup(html.escape(_IMPOSSIBLE.sub("\ufffd", shown), quote=True))


def script_data(value: Any) -> Markup:
    """JSON that may stand inside <script>: no end tag, comment or line separator can appear in it."""
    return Markup(json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).translate(_IN_SCRIPT))


def language(text: str) -> str | None:
    """A lang attribute for Han characters, which browsers draw in the manner of a language; None for other text."""
    if _KANA.search(text):
        return "ja"
    return "zh-Hans" if _HAN.search(text) else None


def tag(name: str, content: object = "", attributes: Mapping[str, object] | None = None) -> Markup:
    """An element with escaped content and attributes; an attribute that is None is left out."""
    return Markup(f"<{name}{attributes_text(attributes or {})}>{escape(content)}</{name}>")


def attributes_text(attributes: Mapping[str, object]) -> str:
    return "".join(f' {key}="{escape(value)}"' for key, value in attributes.items() if value is not None)


def joined(parts: Iterable[object], between: str = "") -> Markup:
    return Markup(between.join(escape(part) for part in parts))


def _cell(content: object, look: dict[str, object]) -> Markup:
    return tag("td", content, look)


def table(headings: Sequence[object], lines: Iterable[Sequence[object]], words: Collection[int] = ()) -> Markup:
    """A table; columns behind the first are numbers and stand to the right, but for those of `words` (numbers of
    columns, from 0), which stand to the left as the first does."""
    looks: list[dict[str, object]] = [{"class": "mk-words"} if at in words else {} for at in range(len(headings))]
    head = joined(tag("th", heading, {"scope": "col", **look}) for heading, look in zip(headings, looks, strict=True))
    body = joined(
        tag("tr", joined([tag("th", line[0], {"scope": "row"}), *map(_cell, line[1:], looks[1:])])) for line in lines
    )
    inner = joined([tag("thead", tag("tr", head)), tag("tbody", body)])
    return tag("div", tag("table", inner, {"class": "mk-table"}), {"class": "mk-scroll"})
