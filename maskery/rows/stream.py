"""The text as it runs, cut into rows of equal length (GPT, Transformer-XL): documents in the order of the corpus, one
[SEP] behind each, no [CLS].

Nothing is left out but the tail of a pass that fills no row, which is counted; text that fills none at all is one
shorter row. A row goes on exactly where the one before it ended, so a memory of the rows before is the true past.
Passes after the first begin at a random document.
"""

from __future__ import annotations

from random import Random

from maskery.rows.config import RowsConfig
from maskery.rows.plan import Draft, Outline


def plan(config: RowsConfig, outline: Outline, length: int, turn: int, draw: Random, draft: Draft) -> None:
    sentence, documents = outline.sentence, len(outline)
    begin = int(draw.random() * documents) if turn else 0
    left = sum(sentence[end] - sentence[first] + 1 for first, end in zip(outline.first, outline.end, strict=True))
    tail = left % length if left >= length else 0
    room = length
    for number in range(begin, begin + documents):
        place, end = sentence[outline.first[number % documents]], sentence[outline.end[number % documents]]
        behind = False
        while not behind and left > tail:
            reach = min(end, place + room)
            behind = reach - place < room
            draft.stretch(place, reach, ends=behind)
            taken = reach - place + behind
            place, room, left = reach, room - taken, left - taken
            if not room:
                draft.close()
                room = length
    if room < length:
        draft.close()
    if tail:
        draft.count("tail_slots", tail)
