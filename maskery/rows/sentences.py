"""RoBERTa's rows of whole sentences: as many in a row as fit, across documents or within one.

A document is one piece, so documents that meet in a row have a [SEP] between them. A sentence that does not fit begins
the next row; one that no row can hold is split over rows, and its end is followed by the next sentence. Documents keep
the order of the corpus; passes after the first begin at a random one. Rows of two passes soon fall into step again, so
copies differ mainly by their corruption.
"""

from __future__ import annotations

from bisect import bisect_right
from random import Random

from maskery.rows.config import RowsConfig
from maskery.rows.plan import Draft, Outline


def plan_full(config: RowsConfig, outline: Outline, length: int, turn: int, draw: Random, draft: Draft) -> None:
    _fill(outline, length, turn, draw, draft, crossing=True)


def plan_document(config: RowsConfig, outline: Outline, length: int, turn: int, draw: Random, draft: Draft) -> None:
    _fill(outline, length, turn, draw, draft, crossing=False)


def _fill(outline: Outline, length: int, turn: int, draw: Random, draft: Draft, *, crossing: bool) -> None:
    sentence, documents = outline.sentence, len(outline)
    begin = int(draw.random() * documents) if turn else 0
    empty = room = length - 2
    for number in range(begin, begin + documents):
        here, end = outline.first[number % documents], outline.end[number % documents]
        place = sentence[here]
        while here < end:
            # `room` is what one more piece may hold: its [SEP] is already paid for.
            stop = bisect_right(sentence, place + room, here + 1, end + 1) - 1 if room > 0 else here
            reach = sentence[stop]
            if stop == here:
                reach = place + room if room == empty else place
            if reach > place:
                draft.stretch(place, reach)
                room -= reach - place + 1
            here, place = stop, reach
            if here < end:
                draft.close()
                room = empty
        if not crossing:
            draft.close()
            room = empty
    if room < empty:
        draft.close()
