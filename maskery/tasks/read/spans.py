"""Spans of characters that a file names by their places, checked against the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from maskery.errors import Unfit
from maskery.tasks.examples import Example, Span
from maskery.tasks.read.values import counted

_KINDS = ("type", "label", "kind", "entity_group", "entity")
_STARTS, _STOPS = ("start", "begin", "start_offset"), ("stop", "end", "end_offset")
_SURFACES = ("surface", "text", "word")
_FORMS = '{"KIND": {"SURFACE": [[FIRST, LAST]]}}, [[START, STOP, "KIND"]] or [{"start": .., "end": .., "type": ..}]'


def of_marks(text: str, marks: Any, counts: Counter[str]) -> tuple[Span, ...]:
    """Ascending spans apart from each other; of two that overlap the longer one is kept, and that is counted."""
    found = set()
    for start, stop, kind, surface in _marks(marks):
        if not (0 <= start < stop <= len(text)) or (surface is not None and text[start:stop] != surface):
            start, stop = _placed(text, start, stop, surface, counts)
        found.add(Span(start, stop, kind))
    kept: list[Span] = []
    for span in sorted(found, key=lambda span: (span.start - span.stop, span.start, span.kind)):
        if any(span.start < other.stop and other.start < span.stop for other in kept):
            counts["spans inside or across longer ones: left out"] += 1
        else:
            kept.append(span)
    return tuple(sorted(kept, key=lambda span: span.start))


def _marks(marks: Any) -> Iterator[tuple[int, int, str, str | None]]:
    try:
        if isinstance(marks, dict):
            for kind, surfaces in marks.items():
                for surface, places in surfaces.items():
                    yield from ((int(first), int(last) + 1, kind, surface) for first, last in places)
            return
        for mark in marks:
            if isinstance(mark, dict):
                start, stop, kind = (_first(mark, names) for names in (_STARTS, _STOPS, _KINDS))
                yield (
                    int(start),
                    int(stop),
                    str(kind),
                    next((mark[name] for name in _SURFACES if name in mark), None),
                )
            else:
                start, stop, kind = mark
                yield int(start), int(stop), str(kind), None
    except (TypeError, ValueError, AttributeError, KeyError):
        raise Unfit(f"spans that cannot be read: {str(marks)[:80]}", f"write them as {_FORMS}") from None


def _first(mark: dict[str, Any], names: Sequence[str]) -> Any:
    return mark[next((name for name in names if name in mark), names[0])]


def _placed(text: str, start: int, stop: int, surface: str | None, counts: Counter[str]) -> tuple[int, int]:
    """A span that does not stand where it should, if its words stand in one place only."""
    if surface and text.count(surface) == 1:
        counts["spans that stood elsewhere than said: moved there"] += 1
        begin = text.index(surface)
        return begin, begin + len(surface)
    if surface is None:
        cause = f"characters {start} to {stop} are asked for, the text has {len(text)}"
        raise Unfit(cause, "places are counted in characters from 0, the end after the span")
    there = text[max(0, start) : max(0, stop)]
    how_often = "nowhere" if surface not in text else "in several places"
    cause = f"{surface!r} should be characters {start} to {stop - 1}, which are {there!r}; it stands {how_often}"
    raise Unfit(cause, "mend the places: they are counted in characters from 0, both ends belong to the span")


def told(items: Iterable[Example]) -> list[str]:
    kinds = Counter(span.kind for item in items for span in item.spans or ())
    if not kinds:
        return []
    return [
        f"{counted(kinds.total(), 'spans')}: {', '.join(f'{kind} x {count:,}' for kind, count in kinds.most_common())}"
    ]
