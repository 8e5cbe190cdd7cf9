"""Answers in a context: against all spans one by one, never outside of the context, exact to the character."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskery.errors import InputError, NonFiniteError
from maskery.tasks.examples import Answer
from maskery.tasks.spans import aims_of, find_answer, fit_threshold, window_of
from maskery.text.tokenizer import Tokenizer

MARK = (-1, -1)


def sliding(tokens, room, overlap, question=2, back=False):
    """Windows of tokens' places, each behind a mark, a question and a mark; the context first if `back`."""
    found, at = [], 0
    while True:
        shown = tokens[at : at + room]
        other = [MARK] * (question + 2)
        found.append([*shown, MARK, *other[1:]] if back else [*other, *shown, MARK])
        if at + room >= len(tokens):
            return found
        at += room - overlap


@st.composite
def questions(draw):
    text = draw(st.text(st.sampled_from("ab 京é\u0301👍"), min_size=1, max_size=12))
    cuts = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=9))})
    tokens = [pair for pair in itertools.pairwise(cuts) if draw(st.integers(0, 6))]
    if draw(st.booleans()):  # parts of one character
        tokens = [token for token in tokens for _ in range(draw(st.integers(1, 2)))]
    room = draw(st.integers(2, 6))
    rows = sliding(tokens, room, draw(st.integers(0, room - 1)), back=draw(st.booleans()))
    scores = [
        [draw(st.lists(st.integers(-3, 3), min_size=len(row), max_size=len(row))) for row in rows] for _ in range(2)
    ]
    return text, rows, scores, draw(st.integers(1, 6)), draw(st.integers(1, 5))


def every_span(windows, scores, longest):
    """{characters: (score, window)} by looking at all pairs of slots."""
    found = {}
    for number, window in enumerate(windows):
        pieces, run = window.pieces, window.run
        for a in range(len(pieces)):
            for b in range(a, len(pieces)):
                first, last = int(pieces.slot[a]), int(pieces.last[b])
                if last - first + 1 > longest or len(set(run[first : last + 1].tolist())) > 1:
                    continue
                key = int(pieces.start[a]), int(pieces.stop[b])
                score = scores[0][number][first] + scores[1][number][last]
                if key not in found or score > found[key][0]:
                    found[key] = score, number
    return sorted(((score, *key, number) for key, (score, number) in found.items()), key=lambda x: (-x[0], *x[1:]))


@settings(deadline=None, max_examples=80)
@given(made=questions())
def test_the_best_spans_of_all_windows_equal_brute_force(made):
    text, rows, scores, longest, many = made
    windows = [window_of(row, text) for row in rows]
    found = find_answer(text, windows, *scores, longest=longest, guesses=many)
    expected = every_span(windows, scores, longest)[:many]
    assert [(g.score, g.start, g.stop, g.window) for g in found.guesses] == expected
    assert found.best == (found.guesses[0] if expected else None)
    for guess in found.guesses:
        row = np.array(rows[guess.window])
        shown = row[row[:, 0] >= 0]
        assert 0 <= guess.start < guess.stop <= len(text)
        assert guess.start >= shown[:, 0].min()
        assert guess.text == text[guess.start : guess.stop]
        assert guess.text.strip() == guess.text
        assert text[guess.stop : guess.stop + 1] != "\u0301", "no accent is left behind"
    if expected:
        null = min(scores[0][n][0] + scores[1][n][0] for n in range(len(rows)))
        assert found.difference == null - expected[0][0]
        assert sum(guess.probability for guess in found.guesses) == pytest.approx(1)
        for threshold in (found.difference, found.difference - 0.5):
            told = find_answer(text, windows, *scores, longest=longest, guesses=many, threshold=threshold)
            assert (told.best is None) == (found.difference > threshold)
            assert sum(guess.probability for guess in told.guesses) < 1


def test_the_question_and_the_marks_never_answer_however_sure():
    row = [MARK, MARK, MARK, (0, 1), (1, 2), MARK]
    start, end = [99, 99, 99, 0, 1, 99], [99, 99, 99, 5, 0, 99]
    found = find_answer("ab", [window_of(row, "ab")], [start], [end])
    assert [guess.text for guess in found.guesses] == ["a", "b", "ab"]
    assert [guess.score for guess in found.guesses] == [5, 1, 0]
    nothing = find_answer("ab", [window_of([MARK] * 4, "ab")], [[9] * 4], [[9] * 4], threshold=0.0)
    assert nothing.best is None
    assert nothing.guesses == ()
    assert nothing.difference is None


def test_no_span_goes_over_a_mark_or_over_unread_text():
    row = [MARK, (0, 1), MARK, (1, 2), (3, 4)]  # the third character was cut out
    found = find_answer("abcd", [window_of(row, "abcd")], [np.zeros(5)], [np.zeros(5)])
    assert [guess.text for guess in found.guesses] == ["a", "b", "d"]


def test_equal_scores_have_an_order():
    row = [MARK, (0, 1), (1, 2), (2, 3)]
    windows = [window_of(row, "abc")] * 2
    found = find_answer("abc", windows, [np.zeros(4)] * 2, [np.zeros(4)] * 2, guesses=9)
    assert [guess.text for guess in found.guesses] == ["a", "ab", "abc", "b", "bc", "c"]
    assert {guess.window for guess in found.guesses} == {0}


def test_wrong_scores_are_refused():
    window = window_of([MARK, (0, 1)], "a")
    with pytest.raises(InputError, match="2 slots"):
        find_answer("a", [window], [[0, 0, 0]], [[0, 0]])
    with pytest.raises(NonFiniteError, match="window 0"):
        find_answer("a", [window], [[0, math.nan]], [[0, 0]])
    with pytest.raises(InputError, match="at least 1"):
        find_answer("a", [window], [[0, 0]], [[0, 0]], longest=0)


PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", *"北京是中国的", "1966", "年"]


@pytest.mark.parametrize(
    ("context", "answer"),
    [
        ("北京是中国的👨‍👩‍👧京", "中国"),
        ("北京是中国的👨‍👩‍👧京", "👨‍👩‍👧"),
        ("a cafe\u0301 b", "cafe\u0301"),
        ("a café b", "café"),
        ("北京 1966 年", "1966 年"),
        ("İ b ﬁ c", "b ﬁ"),
        ("𠮷 京🏳️‍🌈", "京🏳️‍🌈"),
    ],
)
@pytest.mark.parametrize("room", [1, 6, 40])
def test_real_tokens_lead_back_to_the_exact_characters(context, answer, room):
    (_, offsets), *_ = Tokenizer.from_pieces(PIECES).encode_raw([context])
    rows = sliding([tuple(place) for place in offsets.tolist()], room, room // 2)
    windows = [window_of(row, context) for row in rows]
    aims = aims_of(context, [Answer(context.index(answer), answer)], windows)
    hot = [[np.eye(len(row))[slot] for row, slot in zip(rows, aim, strict=True)] for aim in (aims.start, aims.end)]
    found = find_answer(context, windows, *hot, threshold=0.0)
    assert not aims.widened
    if aims.held:
        assert found.best is not None
        assert (found.best.text, found.best.start) == (answer, context.index(answer))
    else:
        assert room == 1, "the answer has several tokens, and no window is so wide"
        assert found.best is None


class TestAims:
    context = "ab cdefg"
    rows = ([MARK, MARK, (0, 2), (3, 4), (4, 6), MARK], [MARK, MARK, (4, 6), (6, 8), MARK])

    def aims(self, *answers):
        windows = [window_of(row, self.context) for row in self.rows]
        found = aims_of(self.context, [Answer(start, self.context[start:stop]) for start, stop in answers], windows)
        return list(zip(found.start.tolist(), found.end.tolist(), strict=True)), found.widened, found.held

    def test_windows_without_the_whole_answer_point_to_the_first_slot(self):
        assert self.aims((0, 4)) == ([(2, 3), (0, 0)], False, 1)
        assert self.aims((4, 6)) == ([(4, 4), (2, 2)], False, 2)
        assert self.aims((3, 8)) == ([(0, 0), (0, 0)], False, 0)
        assert self.aims() == ([(0, 0), (0, 0)], False, 0)

    def test_borders_within_a_token_are_widened_and_told(self):
        assert self.aims((5, 7)) == ([(0, 0), (2, 3)], True, 1)
        assert self.aims((1, 2)) == ([(2, 2), (0, 0)], True, 1)

    def test_space_at_the_ends_of_an_answer_is_nothing(self):
        assert self.aims((2, 4)) == ([(3, 3), (0, 0)], False, 1)
        assert self.aims((2, 3)) == ([(0, 0), (0, 0)], False, 0)

    def test_each_window_takes_the_first_answer_that_it_holds(self):
        assert self.aims((0, 2), (4, 8)) == ([(2, 2), (2, 3)], False, 2)

    def test_another_slot_may_stand_for_no_answer(self):
        window = window_of([(0, 2), MARK, MARK], self.context, null=2)
        assert aims_of(self.context, [], [window]).start.tolist() == [2]
        found = find_answer(self.context, [window], [[0, 0, 9]], [[0, 0, 9]], threshold=0.0)
        assert found.best is None
        assert found.difference == 18

    def test_parts_of_a_character_are_taken_together(self):
        window = window_of([MARK, (0, 1), (0, 1), (0, 1), (1, 2)], "👍b")
        found = aims_of("👍b", [Answer(0, "👍")], [window])
        assert (found.start.tolist(), found.end.tolist()) == ([1], [3])


@settings(deadline=None, max_examples=60)
@given(
    rows=st.lists(
        st.tuples(st.integers(-4, 4), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 1.0])),
        min_size=1,
        max_size=8,
    )
)
def test_the_threshold_is_the_best_there_is(rows):
    found = fit_threshold(*zip(*rows, strict=True))

    def score(threshold):
        return sum(none if difference > threshold else given for difference, given, none in rows) / len(rows)

    tried = [score(level + step) for level in range(-6, 7) for step in (0, 0.5)]
    assert found.score == pytest.approx(max(tried))
    assert score(found.value) == pytest.approx(found.score)
    if score(0) == pytest.approx(max(tried)):
        assert found.value == 0


def test_a_threshold_needs_questions():
    with pytest.raises(InputError, match="no question"):
        fit_threshold([], [], [])
