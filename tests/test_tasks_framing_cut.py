"""What is kept of long texts, against a slow count; windows that lose nothing; questions and choices."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from framing import counted, plain, rows_config
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import GPT, model_of
from vocabularies import mixed_tokenizer

from maskery.errors import InputError
from maskery.tasks.framing.cut import FieldCut, level
from maskery.tasks.framing.frame import frame_of, template
from maskery.tasks.framing.make import make_rows, row_lengths
from maskery.tasks.framing.tokens import Encoded, Tokens

FRAME = template(mixed_tokenizer())
CLS, SEP = 101, 102
LAWS = ("head", "tail", "head+tail")
SIZES = st.integers(0, 40)


def made(encoded, length, frame=FRAME, order=None, **config):
    return make_rows(encoded, frame, rows_config(**config), length, order=order)


def shortened(lengths, room):
    """BERT's rule, token by token."""
    lengths = list(lengths)
    while sum(lengths) > room:
        longest = max(range(len(lengths)), key=lambda n: (lengths[n], n))
        lengths[longest] -= 1
    return lengths


def kept_by(law, tokens, number):
    first = {"head": number, "tail": 0, "head+tail": number - number // 2}[law]
    return tokens[:first] + tokens[len(tokens) - (number - first) :]


@settings(max_examples=40)
@given(
    st.integers(1, 4).flatmap(lambda k: st.lists(st.tuples(*[SIZES] * k), min_size=1, max_size=6)), st.integers(0, 70)
)
def test_the_longest_is_cut_first_token_by_token(rows, room):
    lengths = np.array(rows)
    assert level(lengths, np.full(len(rows), room)).tolist() == [shortened(row, room) for row in rows]


@settings(max_examples=40)
@given(
    st.integers(1, 3).flatmap(lambda k: st.lists(st.tuples(*[SIZES] * k), min_size=1, max_size=5)),
    st.integers(7, 60),
    st.sampled_from(LAWS),
    st.data(),
)
def test_rows_hold_what_the_law_keeps_in_its_order(sizes, length, law, data):
    """`tail` keeps the last, `head` the first, `head+tail` both; marks are all there; counts by hand."""
    width = len(sizes[0])
    limits = data.draw(st.one_of(st.just(()), st.tuples(*[SIZES] * width)))
    rows, cut = made(counted(*sizes), length, truncate=law, limits=limits)
    lost_rows = lost = text = 0
    for number, row in enumerate(sizes):
        limited = [min(size, limit or size) for size, limit in zip(row, limits or row, strict=True)]
        kept = shortened(limited, length - 1 - width)
        expected = [CLS]
        for size, keep in zip(row, kept, strict=True):
            text += 1
            expected += [*kept_by(law, [1000 * text + n for n in range(size)], keep), SEP]
        assert rows[number].ids.tolist() == expected
        lost_rows += sum(kept) < sum(row)
        lost += sum(row) - sum(kept)
    assert (cut.rows, cut.cut, cut.lost, cut.tokens) == (len(sizes), lost_rows, lost, sum(map(sum, sizes)))
    assert sum(field.tokens for field in cut.fields.values()) == lost
    assert rows.length.max() <= length


def test_limits_of_three_fields():
    """50/200/200: at most 450 tokens and the marks."""
    sizes = [(300, 300, 300), (20, 20, 20), (51, 200, 1)]
    rows, cut = made(counted(*sizes), 512, limits=(50, 200, 200), truncate="head+tail")
    assert rows.length.tolist() == [450 + 4, 64, 251 + 4]
    assert np.bincount(rows[0].field[rows[0].field >= 0]).tolist() == [50, 200, 200]
    assert rows[0].ids[1:51].tolist() == [*range(1000, 1025), *range(1275, 1300)]
    assert (cut.cut, cut.lost) == (2, 250 + 100 + 100 + 1)
    assert cut.fields == {
        "text_a": FieldCut(rows=2, tokens=251),
        "text_b": FieldCut(rows=1, tokens=100),
        "text_c": FieldCut(rows=1, tokens=100),
    }
    assert cut.notes == (
        "2 of 3 rows (66.7%) are cut to 512 slots or to a field's limit and keep both ends: 451 of 1,212 tokens "
        "(37.2%) are lost",
        "tokens lost by field: text_a 251 in 2 rows, text_b 100 in 1 rows, text_c 100 in 1 rows",
    )
    assert made(counted((3, 4, 5)), 512, limits=(50, 0, 2))[0].length.tolist() == [3 + 4 + 2 + 4], "0 is no limit"
    assert made(counted(5), 512)[1].notes == ()


@settings(max_examples=40)
@given(st.lists(st.integers(0, 200), min_size=1, max_size=5), st.integers(8, 40), st.integers(1, 20))
def test_windows_lose_nothing_and_overlap_as_asked(sizes, length, overlap):
    room = length - 2
    overlap = min(overlap, room - 1)
    rows, cut = made(counted(*sizes), length, windows=overlap)
    assert cut.lost == 0
    assert rows.length.max() <= length
    for number, size in enumerate(sizes):
        mine = [rows[n] for n in range(len(rows)) if rows.example[n] == number]
        assert [row.part for row in mine] == list(range(len(mine)))
        tokens = [(row.ids[1:-1] - 1000 * (number + 1)).tolist() for row in mine]
        assert sorted({token for each in tokens for token in each}) == list(range(size))
        assert all(each == list(range(each[0], each[0] + len(each))) for each in tokens if each)
        for before, after in pairwise(tokens):
            assert len(before) == room
            assert before[-overlap:] == after[:overlap]
            assert len(after) > overlap, "the last brings something new"
    many = [sum(rows.example == n) for n in range(len(sizes))]
    assert (cut.windowed, cut.windows) == (sum(n > 1 for n in many), sum(n for n in many if n > 1))
    answered = np.bincount(rows.example[rows.row[rows.best_seen]], minlength=len(sizes))
    assert answered.tolist() == sizes, "one slot answers for each token"


@settings(max_examples=40)
@given(
    st.lists(st.tuples(SIZES, SIZES), min_size=1, max_size=5),
    st.integers(9, 40),
    st.integers(1, 9),
    st.sampled_from(LAWS),
)
def test_windows_over_the_longer_of_two(sizes, length, overlap, law):
    room = length - 3
    overlap = min(overlap, room - 1)
    rows, cut = made(counted(*sizes, task="pair"), length, windows=overlap, truncate=law)
    assert rows.length.max() <= length
    for number, (a, b) in enumerate(sizes):
        longer, other = (0, b) if a >= b else (1, a)
        mine = [rows[n] for n in range(len(rows)) if rows.example[n] == number]
        found = {int(token) for row in mine for token in row.ids[row.field == longer]}
        assert found == {1000 * (2 * number + longer + 1) + n for n in range(max(a, b))}, "nothing of it is lost"
        whole = [row.ids[row.field == 1 - longer].tolist() for row in mine]
        assert whole == [whole[0]] * len(mine), "the other stays beside it"
        assert len(whole[0]) == (other if a + b <= room else min(other, room // 2))
    assert cut.lost == sum(min(a, b) - room // 2 for a, b in sizes if a + b > room and min(a, b) > room // 2)


def test_a_text_that_was_limited_at_both_ends_slides_over_the_gap():
    rows, cut = made(counted(40), 8, windows=2, limits=(12,), truncate="head+tail")
    assert [(row.ids[1:-1] - 1000).tolist() for row in rows] == [
        [0, 1, 2, 3, 4, 5],
        [4, 5, 34, 35, 36, 37],
        [36, 37, 38, 39],
    ]
    assert (cut.lost, cut.windows) == (28, 3)
    assert rows.token[rows.row == 1].tolist() == [-1, 4, 5, 34, 35, 36, 37, -1]


def test_windows_that_the_other_texts_leave_no_room_for_are_told():
    rows, cut = made(counted((6, 60), task="pair"), 15, windows=8)
    assert cut.narrowed == 1
    assert "overlap by half their room" in cut.notes[-1]
    assert rows[1].ids[rows[1].field == 1].tolist() == [2003, 2004, 2005, 2006, 2007, 2008]
    assert "1 of 1 rows are read in" in cut.notes[0]


def test_the_slot_with_most_text_around_it_answers():
    rows, _ = made(counted(10), 8, windows=4)
    assert [(row.ids[1:-1] - 1000).tolist() for row in rows] == [
        [0, 1, 2, 3, 4, 5],
        [2, 3, 4, 5, 6, 7],
        [4, 5, 6, 7, 8, 9],
    ]
    mine = [(rows.ids[(rows.row == n) & rows.best_seen] - 1000).tolist() for n in range(3)]
    assert mine == [[0, 1, 2, 3], [4, 5], [6, 7, 8, 9]]


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 150), st.integers(0, 90)), min_size=1, max_size=4), st.integers(16, 100))
def test_questions_stay_whole_and_contexts_slide(sizes, length):
    """Context is text 0, question text 1; the row has the question first."""
    rows, cut = made(counted(*sizes, task="qa"), length)
    room = length - 3
    for number, (context, question) in enumerate(sizes):
        mine = [rows[n] for n in range(len(rows)) if rows.example[n] == number]
        asked = min(question, 64)
        if context + asked > room:
            asked = min(asked, room // 2)
        expected = [CLS, *(1000 * (2 * number + 2) + n for n in range(asked)), SEP]
        for row in mine:
            assert row.ids[: asked + 2].tolist() == expected
            assert row.segments.tolist() == [0] * (asked + 2) + [1] * (len(row.ids) - asked - 2)
            assert row.ids[-1] == SEP
            assert (row.field[asked + 2 : -1] == 0).all()
        seen = [slot for row in mine for slot in row.offsets[row.field == 0, 0]]
        assert set(seen) == set(range(context))
    assert "text_a" not in cut.fields


def test_a_question_is_cut_at_its_head_and_told():
    rows, cut = made(counted((5, 90), (300, 10), task="qa"), 128, truncate="tail")
    assert rows[0].ids[1:65].tolist() == list(range(2000, 2064))
    assert cut.fields == {"text_b": FieldCut(rows=1, tokens=26)}
    assert cut.notes[-1] == "windows overlap by 62 tokens", "half of the room, where nothing is asked"
    assert made(counted((5, 90), task="qa"), 128, limits=(0, 80))[0].length.tolist() == [5 + 80 + 3]
    wide, cut = made(counted((900, 10), task="qa"), 384)
    assert cut.notes[-1] == "windows overlap by 128 tokens"
    room = 384 - 3 - 10
    assert wide.seen(0, 0) == (0, 0, room)
    assert wide.seen(1, 0) == (0, room - 128, 2 * room - 128), "a window knows its part of the context"
    assert wide.seen(1, 1) == (1, 0, 10)
    assert made(counted((9, 0), task="qa"), 32)[0].seen(0, 1) is None


def test_a_row_for_each_choice():
    encoded = counted((3, 2), (1, 0), task="choice", choices=((1, 2), (1, 1, 1)))
    rows, cut = made(encoded, 32)
    assert rows.example.tolist() == [0, 0, 1, 1, 1]
    assert rows.part.tolist() == [0, 1, 0, 1, 2]
    assert plain(rows)[1] == [CLS, 1000, 1001, 1002, SEP, 2000, 2001, SEP, 6000, 6001, SEP]
    assert rows[1].segments.tolist() == [0] * 5 + [1] * 6
    assert rows[1].field.tolist() == [-1, 0, 0, 0, -1, 1, 1, -1, 2, 2, -1]
    assert plain(rows)[4] == [CLS, 3000, SEP, SEP, 9000, SEP]
    assert row_lengths(encoded, FRAME).tolist() == rows.length.tolist()
    short, cut = made(encoded, 9, limits=(0, 0, 1))
    assert short.length.tolist() == [9, 9, 6, 6, 6]
    assert cut.fields["choice"] == FieldCut(rows=1, tokens=1)
    assert "no windows" in made(encoded, 32, windows=4)[1].notes[-1]


def test_gpt_joins_context_and_question_before_the_choice():
    frame = frame_of(model_of(**GPT), new_marks=True)
    start, delimiter, extract = (mark.id for mark in (*frame.front, *frame.between, *frame.back))
    rows, _ = made(counted((2, 1), task="choice", choices=((1, 1),)), 16, frame=frame)
    assert plain(rows) == [[start, 1000, 1001, 2000, delimiter, 3000 + 1000 * n, extract] for n in range(2)]
    assert row_lengths(counted((2, 1), task="choice", choices=((1, 1),)), frame).tolist() == [7, 7]


@pytest.mark.parametrize(
    ("encoded", "length", "config", "told"),
    [
        (counted((1, 1), task="pair"), 4, {}, r"rows\.length: rows of 4 slots, 3 of them marks(.|\n)*set it to 5"),
        (
            counted(5),
            10,
            {"windows": 8},
            r"rows\.windows: windows overlap by 8 tokens and have room for 8(.|\n)*4 or less",
        ),
        (counted((5, 5)), 10, {"limits": (4,)}, r"rows\.limits: limits 4 for the fields text_a, text_b"),
        (counted(5), 10, {"limits": (-1,)}, r"rows\.limits: limits -1"),
    ],
    ids=["length", "windows", "limits", "negative"],
)
def test_what_cannot_be_is_refused(encoded, length, config, told):
    with pytest.raises(InputError, match=told):
        made(encoded, length, **config)


def test_no_examples_make_no_rows():
    rows, cut = made(_none(), 16)
    assert len(rows) == 0
    assert cut.rows == 0
    assert cut.notes == ()
    assert not rows.best_seen.size
    assert rows.padded(rows.ids, 0).shape == (0, 0)
    for config in ({"windows": 3}, {"truncate": "tail"}):
        assert len(made(_none(), 16, **config)[0]) == 0


def _none():
    nothing = np.zeros(0, dtype=np.int32)
    tokens = Tokens(ids=nothing, start=nothing, stop=nothing, first=np.zeros(1, dtype=np.int64))
    none = np.zeros(0, dtype=np.int64)
    return Encoded(task="classify", fields=("text",), tokens=tokens, text=none, choices=none, unknown=0)
