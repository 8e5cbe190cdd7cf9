"""A text with its right and its predicted spans marked: for errors of tagging and question answering."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from maskery.picture.markup import Markup, joined, tag
from maskery.tasks.examples import Answer, Span

STYLE = Markup(
    "<style>.maskery-picture mark{color:inherit;background:none;padding:0 1px}"
    ".maskery-picture .mk-gold{background:var(--mk-keep-back)}"
    ".maskery-picture .mk-guess{border-bottom:3px solid var(--mk-mask)}</style>"
)
Marks = tuple[tuple[int, int, str], ...]
"""First character, the one after the last, and what it is: gold or guess."""


def marks_of(text: str, gold: Any, predicted: Any) -> Marks:
    """Of spans, or of answers and a predicted text, which is looked for; () where an answer has no place."""
    return (*_places(text, gold, "gold"), *_places(text, predicted, "guess"))


def _places(text: str, answer: Any, side: str) -> list[tuple[int, int, str]]:
    if isinstance(answer, str):
        at = text.find(answer) if answer else -1
        return [(at, at + len(answer), side)] if at >= 0 else []
    found = []
    for each in answer:
        if isinstance(each, Span):
            found.append((each.start, each.stop, side))
        elif isinstance(each, Answer):
            found.append((each.start, each.start + len(each.text), side))
    return found


def marked(text: str, marks: Marks, most: int) -> Markup:
    """The text, at most so many characters of it from the first mark on, with both kinds of spans in it."""
    first = min((start for start, _, _ in marks), default=0)
    begin = 0 if len(text) <= most else max(0, min(first - most // 3, len(text) - most))
    end = min(len(text), begin + most)
    edges = sorted({begin, end, *(at for start, stop, _ in marks for at in (start, stop) if begin < at < end)})
    parts = [_part(text, start, stop, marks) for start, stop in pairwise(edges)]
    return joined(["…" if begin else "", *parts, "…" if end < len(text) else ""])


def _part(text: str, start: int, stop: int, marks: Sequence[tuple[int, int, str]]) -> Markup | str:
    sides = sorted({side for first, last, side in marks if first <= start and stop <= last})
    inside = text[start:stop]
    return tag("mark", inside, {"class": " ".join(f"mk-{side}" for side in sides)}) if sides else inside
