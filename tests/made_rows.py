"""Rows made for tests of corruption: words of a few tokens, phrases and entities, cut anywhere, as a plan cuts."""

from __future__ import annotations

import numpy as np
from fake_store import FakeFacts

from maskery.corpus.encode import Flag
from maskery.edit import Edit
from maskery.rows.ragged import Rows

VOCABULARY = 60
FACTS = FakeFacts(VOCABULARY)
_MARKS = ((Flag.PHRASE, Flag.IN_PHRASE), (Flag.ENTITY, Flag.IN_ENTITY))


class MadeSimilar:
    """A word whose first id is even has a similar one: all its ids plus one. The others become fives."""

    def replacements(self, ids, start, length, keys, at):
        assert np.array_equal(start, np.cumsum(length) - length)
        assert length.sum() == len(ids)
        found = ids[start] % 2 == 0
        return np.where(np.repeat(found, length), ids + 1, 5).astype(np.int32), found


def stretch(draw, tokens, words=(0.5, 0.3, 0.1, 0.1)):
    """Ids and flags of a piece of text that may begin and end within a word, a phrase and an entity."""
    starts = np.cumsum(draw.choice(len(words), 2 * tokens + 8, p=words) + 1)
    flags = np.zeros(starts[-1], dtype=np.int64)
    flags[starts[:-1]] |= Flag.WORD
    flags[starts[:-1][draw.random(len(starts) - 1) < 0.15]] |= Flag.SENTENCE
    for first, inside in _MARKS:
        begins = starts[:-1][draw.random(len(starts) - 1) < 0.2]
        for begin in begins:
            words_taken = starts[np.searchsorted(starts, begin) :][: draw.integers(1, 4) + 1]
            if not (flags[begin : words_taken[-1]] & (first | inside)).any():
                flags[begin] |= first
                flags[begin + 1 : words_taken[-1]] |= inside
    cut = int(draw.integers(0, 8))
    return draw.integers(5, VOCABULARY, tokens).astype(np.int32), flags[cut : cut + tokens]


def made_rows(seed, many, tokens=(0, 30), stretches=(1, 3), words=(0.5, 0.3, 0.1, 0.1)):
    """`many` rows of one to three stretches of text, each with a [SEP] behind it; some stretches are empty."""
    draw = np.random.default_rng(seed)
    parts = {name: [] for name in ("ids", "flags", "special", "segment", "document", "row")}
    for row in range(many):
        pieces = [
            stretch(draw, int(draw.integers(tokens[0], tokens[1] + 1)), words)
            for _ in range(draw.integers(stretches[0], stretches[1] + 1))
        ]
        for number, (ids, flags) in enumerate(pieces):
            front = [2] if number == 0 else []
            size = len(front) + len(ids) + 1
            parts["ids"] += [*front, *ids.tolist(), 3]
            parts["flags"] += [0] * len(front) + [*flags.tolist(), 0]
            parts["special"] += [True] * len(front) + [False] * len(ids) + [True]
            parts["segment"] += [min(number, 1)] * size
            parts["document"] += [number] * size
            parts["row"] += [row] * size
    return _rows(many, **{name: np.array(values) for name, values in parts.items()})


def even_rows(seed, many, tokens, words=(0.5, 0.3, 0.1, 0.1)):
    """`many` rows of one stretch of as many tokens each, with words of the given shares of lengths; made quickly."""
    draw = np.random.default_rng(seed)
    starts = np.cumsum(draw.choice(len(words), many * tokens, p=words) + 1)
    flags, ids = np.zeros((2, many, tokens + 2), dtype=np.int64)
    flags[:, 1:-1] = (np.isin(np.arange(many * tokens), starts) * Flag.WORD).reshape(many, tokens)
    ids[:, 1:-1] = draw.integers(5, VOCABULARY, (many, tokens))
    ids[:, 0], ids[:, -1] = 2, 3
    special = np.isin(ids, (2, 3))
    nothing, row = np.zeros(ids.size, dtype=np.int64), np.repeat(np.arange(many), tokens + 2)
    return _rows(
        many, ids=ids.ravel(), flags=flags.ravel(), special=special.ravel(), segment=nothing, document=nothing, row=row
    )


def _rows(many, ids, flags, special, segment, document, row):
    return Rows(
        number=np.arange(many),
        start=np.concatenate(([0], np.cumsum(np.bincount(row, minlength=many)))).astype(np.int64),
        ids=ids.astype(np.int32),
        original=ids.astype(np.int32),
        flags=flags.astype(np.uint8),
        special=special.astype(bool),
        segment=segment.astype(np.uint8),
        document=document.astype(np.int32),
        edit=np.full(len(ids), Edit.NONE, dtype=np.uint8),
        label=np.full(many, -1, dtype=np.int64),
    )


def some_of(rows, numbers):
    """The given rows alone, in this order."""
    slots = np.concatenate([np.arange(rows.start[b], rows.start[b + 1]) for b in numbers]).astype(np.int64)
    size = rows.length[list(numbers)]
    return Rows(
        number=rows.number[list(numbers)],
        start=np.concatenate(([0], np.cumsum(size))),
        label=rows.label[list(numbers)],
        **{
            name: getattr(rows, name)[slots]
            for name in ("ids", "original", "flags", "special", "segment", "document", "edit")
        },
    )
