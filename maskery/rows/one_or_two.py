"""ELECTRA's rows: text as it follows in one document, in two segments cut near the middle, or in one.

Sentences are gathered until they reach the target. They go to the first segment while it is below half of it; the one
that would cross the half goes either way. One row in ten stays whole, as classification tasks show single texts. With
probability `short` the next row aims at a random shorter length. What a row has no room for is cut off its end.

The second segment always follows the first, so there is no question to ask about the pair.
"""

from __future__ import annotations

from bisect import bisect_left
from random import Random

from maskery.rows.config import RowsConfig
from maskery.rows.plan import SHORTEST, Draft, Outline

WHOLE = 0.1
"""The share of rows that are one segment."""


def plan(config: RowsConfig, outline: Outline, length: int, turn: int, draw: Random, draft: Draft) -> None:
    target = length
    for document, end in enumerate(outline.end):
        here = outline.first[document]
        while here < end:
            stop = bisect_left(outline.sentence, outline.sentence[here] + target, here + 1, end)
            split = stop if draw.random() < WHOLE else _split(outline, here, stop, (target - 3) // 2, draw)
            _write(outline, here, split, stop, length, draft)
            target = length
            if draw.random() < config.short:
                target = SHORTEST + int(draw.random() * (length - SHORTEST + 1))
                draft.count("short_rows")
            here = stop


def _split(outline: Outline, first: int, stop: int, half: int, draw: Random) -> int:
    """The first sentence of the second segment; `stop` if there is none."""
    begin = outline.sentence[first]
    crossing = bisect_left(outline.sentence, begin + half, first + 2, stop + 1) - 1
    if crossing == stop or outline.sentence[crossing] - begin >= half:
        return crossing
    return crossing + (draw.random() < 0.5)


def _write(outline: Outline, first: int, split: int, stop: int, length: int, draft: Draft) -> None:
    begin, middle, end = (outline.sentence[place] for place in (first, split, stop))
    a_end = min(middle, begin + length - 2)
    b_end = min(end, middle + max(0, length - 3 - (a_end - begin)))
    surplus = (middle - a_end) + (end - b_end)
    draft.counts["cut_tokens"] += surplus
    draft.counts["cut_rows"] += surplus > 0
    if b_end > middle:
        draft.pair(begin, a_end, middle, b_end, -1)
    else:
        draft.stretch(begin, a_end)
        draft.close()
