"""The table of words that stand together, against nested loops."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from maskery.words import cooccurrence
from maskery.words.cooccurrence import count_pairs
from maskery.words.vocabulary import Words


def text_of(sentences, size):
    number = [each for sentence in sentences for each in sentence]
    return Words(
        words=[f"w{each}" for each in range(size)],
        counts=np.bincount([each for each in number if each >= 0], minlength=size),
        number=np.array(number, dtype=np.int32),
        sentence_start=np.concatenate(([0], np.cumsum([len(sentence) for sentence in sentences], dtype=np.int64))),
        total=len(number),
    )


def slow(sentences, window):
    """Every cell of X: left context and right context of every word that stays."""
    table = defaultdict(float)
    for sentence in sentences:
        kept = [word for word in sentence if word >= 0]
        for place, word in enumerate(kept):
            for other, context in enumerate(kept):
                if 0 < abs(place - other) <= window:
                    table[word, context] += 1 / abs(place - other)
    return dict(table)


def cells(pairs):
    found = {}
    for one, other, weight in zip(pairs.one.tolist(), pairs.other.tolist(), pairs.weight.tolist(), strict=True):
        found[one, other] = found[other, one] = weight
    return found


texts = st.integers(1, 8).flatmap(
    lambda size: st.tuples(
        st.lists(st.lists(st.integers(-1, size - 1), max_size=12), min_size=1, max_size=12), st.just(size)
    )
)


@settings(deadline=None)
@given(texts, st.integers(1, 17), st.sampled_from([1, 3, 20, 1 << 24]), st.sampled_from([1, 4, 1 << 20]))
def test_pairs_are_those_of_the_loops_whatever_the_blocks(text, window, at_once, block):
    sentences, size = text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cooccurrence, "AT_ONCE", at_once)
        patch.setattr(cooccurrence, "BLOCK", block)
        pairs = count_pairs(text_of(sentences, size), window)
    expected = slow(sentences, window)
    found = cells(pairs)
    assert found.keys() == expected.keys()
    assert pairs.cells == len(expected)
    for cell, weight in expected.items():
        assert found[cell] == pytest.approx(weight, rel=1e-6)


def test_pairs_are_ascending_and_each_stands_once():
    drawn = np.random.default_rng(1)
    pairs = count_pairs(text_of([drawn.integers(0, 30, 40).tolist() for _ in range(20)], 30))
    number = pairs.one.astype(np.int64) * 30 + pairs.other
    assert (np.diff(number) > 0).all()
    assert (pairs.one <= pairs.other).all()
    assert pairs.weight.dtype == np.float32


def test_a_word_that_is_left_out_takes_no_place():
    """1 and 2 are neighbours when what stands between them is left out, as in the origin's code."""
    pairs = count_pairs(text_of([[1, -1, -1, 2, 0]], 3), 2)
    assert cells(pairs) == {(1, 2): 1, (2, 1): 1, (0, 2): 1, (2, 0): 1, (0, 1): 0.5, (1, 0): 0.5}


def test_a_word_beside_itself_counts_as_left_and_as_right_context():
    assert cells(count_pairs(text_of([[0, 0]], 1))) == {(0, 0): 2}


def test_nothing_reaches_over_the_end_of_a_sentence():
    assert cells(count_pairs(text_of([[0, 1], [2, 3]], 4))) == {(0, 1): 1, (1, 0): 1, (2, 3): 1, (3, 2): 1}
    assert not len(count_pairs(text_of([[0], [], [1]], 2)).one)


def test_ranges_of_cells_and_blocks_of_text_leave_no_trace():
    drawn = np.random.default_rng(2)
    text = text_of([(50 * drawn.random(30) ** 3).astype(int).tolist() for _ in range(60)], 50)
    whole = count_pairs(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cooccurrence, "AT_ONCE", int(whole.weight.size // 2))
        patch.setattr(cooccurrence, "BLOCK", 100)
        parts = count_pairs(text)
    assert_array_equal(parts.one, whole.one)
    assert_array_equal(parts.other, whole.other)
    assert_allclose(parts.weight, whole.weight, rtol=1e-7)


def test_progress_ends_at_the_whole():
    told = []
    count_pairs(text_of([[0, 1, 2]], 3), 2, lambda done, total: told.append(done / total))
    assert told == sorted(told)
    assert told[-1] == 1


def test_a_huge_text_is_walked_over_a_bounded_number_of_times(monkeypatch):
    """Time grows with the text, not with its square; the sums are the same."""
    drawn = np.random.default_rng(3)
    sentences = [(80 * drawn.random(20) ** 2).astype(int).tolist() for _ in range(150)]
    text, walks, walk = text_of(sentences, 80), [], cooccurrence._meetings

    def counted(*given):
        walks.append(1)
        return walk(*given)

    monkeypatch.setattr(cooccurrence, "AT_ONCE", 40)
    monkeypatch.setattr(cooccurrence, "_meetings", counted)
    told = []
    found = cells(count_pairs(text, 5, lambda done, total: told.append(done / total)))
    wanted = slow(sentences, 5)
    assert 3 < len(walks) <= 1 + cooccurrence.MOST
    assert found.keys() == wanted.keys()
    assert_allclose([found[cell] for cell in wanted], list(wanted.values()), rtol=1e-6)
    assert told == sorted(told)
    assert len(told) > len(walks)
