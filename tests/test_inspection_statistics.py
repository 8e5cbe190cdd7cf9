"""Intervals and tests of measured shares, against definitions, closed forms and draws."""

from math import erfc, exp, inf, isclose, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskery.inspection.statistics import (
    Z95,
    Ratio,
    chi_square,
    mean_interval,
    normal,
    student,
    upper_gamma,
    wilson,
)

ROWS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda pair: (min(pair), max(pair))), max_size=20)


def ratio_of(hits, cases):
    ratio = Ratio()
    ratio.add(hits, cases)
    return ratio


@given(st.integers(1, 2000), st.data())
def test_the_ends_of_wilsons_interval_are_as_far_as_it_says(draws, data):
    share = data.draw(st.integers(0, draws)) / draws
    low, high = wilson(share, draws)
    assert 0 <= low <= share <= high <= 1
    for end in (low, high):
        if 0 < end < 1:
            assert isclose(abs(share - end), Z95 * sqrt(end * (1 - end) / draws), rel_tol=1e-6)


@given(ROWS, st.integers(0, 20))
def test_a_ratio_is_what_the_rows_say(rows, cut):
    ratio = Ratio()
    for part in (rows[:cut], rows[cut:]):
        ratio.add([hits for hits, _ in part], [cases for _, cases in part])
    told = [(hits, cases) for hits, cases in rows if cases]
    assert ratio.rows == len(told)
    assert (ratio.hits, ratio.cases) == (sum(h for h, _ in told), sum(c for _, c in told))
    if len(told) > 1:
        squares = sum((hits - 0.3 * cases) ** 2 for hits, cases in told)
        wanted = sqrt(squares * len(told) / (len(told) - 1)) / ratio.cases
        assert isclose(ratio.spread(0.3), wanted, rel_tol=1e-9, abs_tol=1e-12)
        low, high = ratio.interval()
        assert 0 <= low <= ratio.value <= high <= 1


def clustered(generator, share, rows=200):
    """Rows of three spans each, every span of 1 to 9 slots hit as one."""
    size = generator.integers(1, 10, (rows, 3))
    hit = generator.random((rows, 3)) < share
    return ratio_of((size * hit).sum(axis=1), size.sum(axis=1))


def test_intervals_hold_their_share_of_clustered_draws():
    generator = np.random.default_rng(0)
    ratios = [clustered(generator, 0.1) for _ in range(600)]
    held = sum(low <= 0.1 <= high for low, high in (each.interval() for each in ratios)) / len(ratios)
    assert 0.92 < held < 0.98
    assert max(abs(each.surprise(0.1)) for each in ratios) < 4
    naive = sum(low <= 0.1 <= high for low, high in (wilson(each.value, each.cases) for each in ratios)) / len(ratios)
    assert naive < 0.75, "slots that are drawn together are not draws of their own"
    assert min(each.surprise(0.3) for each in ratios) < -4


def test_rows_that_come_again_are_no_news():
    generator = np.random.default_rng(1)
    hits = generator.binomial(20, 0.5, 50)
    once, often = ratio_of(hits, np.full(50, 20)), ratio_of(np.tile(hits, 9), np.full(450, 20))
    assert often.surprise(0.45, 1 / 9) == pytest.approx(once.surprise(0.45), rel=0.1)
    assert np.allclose(often.interval(1 / 9), once.interval(), atol=0.01)
    low, high = once.interval()
    assert np.subtract(*often.interval()) > 0.5 * (low - high)


def test_what_is_certain_and_what_is_unknown():
    assert ratio_of([], []).interval() == (0.0, 1.0)
    assert ratio_of([3, 3], [20, 20]).interval() == (0.15, 0.15)
    low, high = ratio_of([0] * 1000, [5] * 1000).interval()
    assert low == 0
    assert 0 < high < 0.01
    assert ratio_of([3], [20]).interval() == wilson(0.15, 20)
    assert ratio_of([3], [20]).surprise(0.9) == 0, "one row says nothing about rows"
    assert ratio_of([0, 1, 0], [9, 9, 9]).surprise(0.0) == inf
    assert ratio_of([9, 8, 9], [9, 9, 9]).surprise(1.0) == -inf
    assert ratio_of([9, 9, 9], [9, 9, 9]).surprise(1.0) == 0


@pytest.mark.parametrize(("freedom", "value"), [(1, 12.7062), (5, 2.57058), (30, 2.04227), (1000, 1.96234)])
def test_students_law_near_the_tables(freedom, value):
    assert student(Z95, freedom) == pytest.approx(value, rel=0.4 if freedom == 1 else 0.01)
    assert normal(student(Z95, freedom), freedom) == pytest.approx(Z95)


@given(st.floats(0.001, 200))
def test_the_gamma_function_in_closed_form(x):
    assert upper_gamma(0.5, x) == pytest.approx(erfc(sqrt(x)), rel=1e-9, abs=1e-300)
    assert upper_gamma(1, x) == pytest.approx(exp(-x), rel=1e-9, abs=1e-300)
    assert upper_gamma(3, x) == pytest.approx(exp(-x) * (1 + x + x * x / 2), rel=1e-9, abs=1e-300)


def test_chi_square_by_hand():
    found = chi_square([0, 44, 56], [0, 0.5, 0.5])
    assert (found.statistic, found.freedom) == (pytest.approx(1.44), 1)
    assert found.p == pytest.approx(erfc(sqrt(0.72)))
    assert chi_square([44, 56], [0.5, 0.5], fresh=0.5).statistic == pytest.approx(0.72)
    assert chi_square([1, 99], [0.0, 1.0]).p == 0
    assert chi_square([1, 99], [0.0, 1.0]).plain()["chi_square"] is None
    rare = chi_square([50, 45, 3, 1, 1], [0.5, 0.45, 0.03, 0.01, 0.01])
    assert rare.freedom == 2, "the last three expect five together"
    assert chi_square([2, 1], [0.5, 0.5]).p == 1


def test_p_values_of_true_laws_are_even():
    generator = np.random.default_rng(2)
    law = [0.4, 0.3, 0.2, 0.1]
    p = [chi_square(generator.multinomial(1000, law), law).p for _ in range(400)]
    share, _ = np.histogram(p, 4, (0, 1))
    assert share.min() > 70
    assert chi_square(generator.multinomial(10000, [0.45, 0.27, 0.18, 0.1]), law).p < 1e-4


def test_the_interval_of_a_mean():
    assert mean_interval({}) == (0, 0)
    assert mean_interval({4: 7}) == (4, 4)
    low, high = mean_interval({1: 50, 3: 50})
    assert (low + high) / 2 == 2
    assert high - 2 == pytest.approx(Z95 * sqrt(100 / 99 / 100))
    wider = mean_interval({1: 50, 3: 50}, fresh=0.25)
    assert wider[1] - 2 == pytest.approx(2 * (high - 2)), "what came again four times says no more than once"
