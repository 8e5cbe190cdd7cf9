"""What is taken whole: tokens, words, phrases, entities, in Chinese, in English and where both meet."""

from __future__ import annotations

import numpy as np
import pytest
from fake_store import FakeFacts
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small_tokenizers import KINDS
from vocabularies import mixed_tokenizer

from maskery.corpus.encode import Flag, encode
from maskery.corruption.config import UNITS, CorruptionConfig
from maskery.corruption.corrupt import corrupt
from maskery.corruption.units import words_in
from maskery.edit import Edit
from maskery.randomness import keys
from maskery.rows.ragged import Rows
from maskery.text.words import auto

W, P, IP, E, IE = Flag.WORD, Flag.PHRASE, Flag.IN_PHRASE, Flag.ENTITY, Flag.IN_ENTITY
SPANS = ({"law": "single"}, {"law": "weights", "weights": [0.4, 0.3, 0.2, 0.1]}, {"law": "geometric"})
CHINESE = ("周杰伦", "北京大学", "我们去", "看演唱会", "中国人民", "龘", "，", "。")
OTHERS = (
    " the dog ",
    "hello",
    " unused ",
    "masking",
    "don't",
    "3.14",
    "дом",
    " [MASK] ",
    "[SEP]",
    "x-y",
    "\t",
    "covid19",
)
TEXTS = st.lists(st.sampled_from((*CHINESE, *OTHERS)), min_size=1, max_size=12).map("".join)


def rows_of(ids, flags, special):
    """One row of these slots."""
    ids = np.array(ids, dtype=np.int32)
    nothing = np.zeros(len(ids), dtype=np.uint8)
    return Rows(
        number=np.zeros(1, dtype=np.int64),
        start=np.array([0, len(ids)]),
        ids=ids,
        original=ids.copy(),
        flags=np.array(flags, dtype=np.uint8),
        special=np.array(special, dtype=bool),
        segment=nothing,
        document=nothing.astype(np.int32),
        edit=nothing.copy(),
        label=np.full(1, -1),
    )


def copies(row, many):
    """The same row many times."""
    named = ("ids", "original", "flags", "special", "segment", "document", "edit")
    return Rows(
        number=np.arange(many),
        start=np.arange(many + 1) * len(row.ids),
        label=np.full(many, -1),
        **{name: np.tile(getattr(row, name), many) for name in named},
    )


def row_of_text(text, tokenizer, cut=0):
    """The text as one row with [CLS] and [SEP], without its first `cut` tokens."""
    piece = encode(text, tokenizer, auto)
    ids, flags = piece.tokens[cut:], piece.flags[cut:]
    specials = tokenizer.specials
    ends = [True, *[False] * len(ids), True]
    return rows_of([specials.cls, *ids.tolist(), specials.sep], [0, *flags.tolist(), 0], ends)


def parts(unit, rows):
    found = UNITS.get(unit)(rows)
    return [list(range(start, start + length)) for start, length in zip(found.start, found.length, strict=True)]


MARKED = [0, W, 0, W | P, IP, W | IP, IP, W, 0, W | E, IE | W, W, 0]


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("token", [[1], [2], [3], [4], [5], [6], [8], [9], [10], [11]]),
        ("word", [[1, 2], [3, 4], [5, 6], [8], [9], [10], [11]]),
        ("phrase", [[1, 2], [3, 4, 5, 6], [8], [9], [10], [11]]),
        ("entity", [[1, 2], [3, 4], [5, 6], [8], [9, 10], [11]]),
    ],
)
def test_units_of_a_row_written_by_hand(unit, expected):
    """Slots 0, 7 and 12 are special; slot 8 is what a cut left of a word."""
    special = np.isin(np.arange(13), (0, 7, 12))
    rows = rows_of(range(13), np.where(special, 0, MARKED), special)
    rows.flags[8] = 0
    assert parts(unit, rows) == expected
    words = {"token": None, "word": [1] * 7, "phrase": [1, 2, 1, 1, 1, 1], "entity": [1, 1, 1, 1, 2, 1]}[unit]
    assert words is None or words_in(rows, UNITS.get(unit)(rows)).tolist() == words


@pytest.mark.parametrize("unit", ["phrase", "entity"])
def test_without_marks_phrases_and_entities_are_words(unit):
    row = row_of_text("我们今天去北京大学看周杰伦演唱会。The dog, hello.", mixed_tokenizer())
    assert parts(unit, row) == parts("word", row)


@pytest.mark.parametrize(("unit", "inside"), [("phrase", IP), ("entity", IE)])
def test_a_row_cut_within_a_phrase_takes_what_is_left_of_it(unit, inside):
    rows = rows_of(range(6), [0, inside, W | inside, inside, W, 0], [True, False, False, False, False, True])
    assert parts(unit, rows) == [[1, 2, 3], [4]]


@pytest.mark.parametrize("span", SPANS, ids=lambda span: span["law"])
def test_a_name_is_hidden_whole_or_not_at_all(span):
    """周杰伦: all three characters or none, in four thousand draws; single tokens do split it."""
    row = copies(row_of_text("我们今天去北京大学看周杰伦演唱会。", mixed_tokenizer()), 4000)
    name = np.flatnonzero(np.isin(row.ids[: row.start[1]], [mixed_tokenizer().id(c) for c in "周杰伦"]))
    assert len(name) == 3
    hit = {}
    for unit in ("word", "token"):
        out = corrupt(row, CorruptionConfig(unit=unit, span=span, rate=0.3), keys(0, "m", row.number), FakeFacts(500))
        chosen = (out.edit != Edit.NONE).reshape(4000, -1)[:, name]
        hit[unit] = set(chosen.sum(axis=1).tolist())
    assert hit["word"] == {0, 3}
    assert hit["token"] == {0, 1, 2, 3}


@pytest.mark.parametrize("unit", ["word", "phrase", "entity"])
@given(TEXTS, st.sampled_from(sorted(KINDS)), st.sampled_from(SPANS), st.integers(0, 3), st.integers(0, 999))
@example("去看周杰伦演唱会", "wordpiece", SPANS[2], 0, 0)
@settings(max_examples=60, deadline=None)
def test_words_are_never_split(unit, text, kind, span, cut, seed):
    """Chinese, English and mixed; every kind of tokenizer; rows that begin anywhere in the text."""
    row = row_of_text(text, KINDS[kind], cut)
    config = CorruptionConfig(unit=unit, span=span, rate=0.4)
    out = corrupt(copies(row, 5), config, keys(seed, "mask", np.arange(5)), FakeFacts(5000))
    starts = (out.flags & W) != 0
    inside = np.flatnonzero(~starts[1:] & ~out.special[1:] & ~out.special[:-1]) + 1
    chosen = out.edit != Edit.NONE
    assert np.array_equal(chosen[inside], chosen[inside - 1]), "a token that continues a word goes with the one before"
    assert np.array_equal(out.original, np.tile(row.ids, 5))
