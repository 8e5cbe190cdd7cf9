"""XLNet's rows: half a row of the text as it runs, then A [SEP] B [SEP] [CLS], all of exactly `length` slots.

The text is that of `stream`: documents in the order of the corpus, one [SEP] behind each. The next row goes on behind
the first half, so a memory of the first halves is the true past; A is the text that follows. It ends with a sentence;
B is what follows A, or, every second time, begins with any sentence of the text. Where no sentence ends in the room of
A and B, A takes half of it. Segments: first half and A 0, B 1, [CLS] 2.

With `both_ways` a second walk reads every document from its last token to its first, and documents from the last one.

All rows of a walk are worked out at once: T slots of text, D documents, R rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from maskery.errors import RecipeError
from maskery.randomness import generator
from maskery.rows.config import RowsConfig
from maskery.rows.plan import Draft, Outline

SHORTEST = 9
"""One token in A and in B, three specials, and as much again in front."""

Numbers = NDArray[np.int64]


def plan(config: RowsConfig, outline: Outline, length: int, turn: int, draw: Random, draft: Draft) -> None:
    if length < SHORTEST:
        raise RecipeError(
            f"a row of {length} slots has no room for half a row of text and two segments",
            where="training.length",
            repair=f"--length {SHORTEST} or more",
        )
    begin = int(draw.random() * len(outline)) if turn else 0
    for backward in (False, True) if config.both_ways else (False,):
        if backward:
            draft.begin()
        _walk(_text(outline, begin, backward), length, generator(draw.getrandbits(64)), draft)


@dataclass(frozen=True)
class Text:
    """All documents of a walk end to end, a slot for the [SEP] behind each."""

    start: Numbers
    """(D+1,) the slots at which documents begin."""
    first: Numbers
    """(D,) the places of their tokens in the store."""
    end: Numbers
    sentence: Numbers
    """The slots at which sentences begin, ascending."""
    backward: bool

    @property
    def slots(self) -> int:
        return int(self.start[-1])


def _text(outline: Outline, begin: int, backward: bool) -> Text:
    sentence = np.asarray(outline.sentence)
    order = np.roll(np.arange(len(outline)), -begin)[:: -1 if backward else 1]
    first, end = np.array(outline.first)[order], np.array(outline.end)[order]
    token, last = sentence[first], sentence[end]
    start = np.concatenate(([0], np.cumsum(last - token + 1)))
    many = end - first
    document = np.repeat(np.arange(len(order)), many)
    within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    if backward:
        offset = last[document] - sentence[end[document] - within]
    else:
        offset = sentence[first[document] + within] - token[document]
    return Text(start, token, last, start[document] + offset, backward)


def _walk(text: Text, length: int, draw: np.random.Generator, draft: Draft) -> None:
    reuse = length // 2
    room = length - reuse - 3
    rows = max(0, (text.slots - reuse - room) // reuse + 1)
    tail = text.slots - (rows * reuse + room if rows else 0)
    if tail:
        draft.count("tail_slots", tail)
    here = np.arange(rows) * reuse
    a = here + reuse
    low = np.searchsorted(text.sentence, a, side="right")
    many = np.searchsorted(text.sentence, a + room, side="left") - low
    cut = text.sentence[np.minimum(low + (draw.random(rows) * many).astype(np.int64), len(text.sentence) - 1)]
    b = np.where(many > 0, cut, a + room - room // 2)
    size = a + room - b
    elsewhere = (draw.random(rows) < 0.5) | (many == 0)
    fitting = np.searchsorted(text.sentence, text.slots - size, side="right")
    other = text.sentence[(draw.random(rows) * fitting).astype(np.int64)]
    draft.count("segments_from_elsewhere", int(elsewhere.sum()))
    follow = np.where(elsewhere, other, b)
    _write(text, (here, a, follow), (a, b, follow + size), draft)


def _write(text: Text, starts: tuple[Numbers, ...], ends: tuple[Numbers, ...], draft: Draft) -> None:
    """The rows made of three stretches of the text each, with the specials behind A and B and at the end."""
    rows = len(starts[0])
    parts = [_pieces(text, start, end) for start, end in zip(starts, ends, strict=True)]
    nothing = np.zeros((rows, 2), dtype=np.int64)
    mark = (np.arange(rows), nothing, np.zeros(rows, dtype=bool))
    laid = [(parts[0], 0), (parts[1], 0), (mark, 0), (parts[2], 1), (mark, 1), (mark, 2)]
    row = np.concatenate([part[0] for part, _ in laid])
    order = np.argsort(row, kind="stable")
    segment = np.concatenate([np.full(len(part[0]), number, dtype=np.uint8) for part, number in laid])
    draft.block(
        np.concatenate([part[1] for part, _ in laid])[order],
        segment[order],
        np.concatenate([part[2] for part, _ in laid])[order],
        np.bincount(row, minlength=rows),
        backward=text.backward,
    )


def _pieces(text: Text, start: Numbers, end: Numbers) -> tuple[Numbers, Numbers, NDArray[np.bool_]]:
    """Stretches of the text, one a row, by documents: the row, the bounds in the store, and whether no [SEP] is reached
    behind them."""
    low = np.searchsorted(text.start, start, side="right") - 1
    many = np.searchsorted(text.start, end, side="left") - low
    row = np.repeat(np.arange(len(start)), many)
    document = low[row] + np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
    tokens = text.end[document] - text.first[document]
    begin = np.clip(start[row] - text.start[document], 0, tokens)
    reach = end[row] - text.start[document]
    stop = np.minimum(reach, tokens)
    if text.backward:
        bounds = np.stack((text.end[document] - stop, text.end[document] - begin), axis=1)
    else:
        bounds = np.stack((text.first[document] + begin, text.first[document] + stop), axis=1)
    return row, bounds, reach <= tokens
