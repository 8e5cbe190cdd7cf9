"""Whitening and centring against closed forms and slow references: K22, ranks, batches, directions, signs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from maskery.errors import ArgumentError
from maskery.vectors.after import given as given_rows
from maskery.vectors.after.centring import Centring
from maskery.vectors.after.moments import Moments, moments, with_signs
from maskery.vectors.after.whitening import Whitening

SQUARE = [[0, 0], [2, 0], [0, 4], [2, 4]]
HALF = np.sqrt(3) / 2


def drawn(n, d, rank=None, seed=0, dtype=np.float64):
    """Vectors of a known rank, far from the origin, with dimensions of different size."""
    draws = np.random.default_rng(seed)
    rank = d if rank is None else rank
    mixed = draws.normal(size=(n, rank)) @ np.linalg.qr(draws.normal(size=(d, rank)))[0].T * 2
    return (mixed + draws.normal(size=d) * 3).astype(dtype)


def slow_whitening(x, k):
    """By the singular values of np.cov, as the paper's code has it, with the sign that makes the largest positive."""
    u, s, _ = np.linalg.svd(np.cov(np.asarray(x, dtype=np.float64).T))
    u = u * np.array([1 if column[np.argmax(np.abs(column))] > 0 else -1 for column in u.T])
    return np.mean(x, axis=0, dtype=np.float64), (u / np.sqrt(s))[:, :k]


def test_the_closed_form():
    white = Whitening.fit(SQUARE)
    matrix, bias = white.affine()
    assert white.mean.tolist() == [1, 2]
    assert_allclose(matrix, [[0, HALF], [HALF / 2, 0]], atol=1e-12)
    assert_allclose(bias, [-HALF, -HALF], atol=1e-12)
    assert_allclose(np.abs(white.exactly(SQUARE)), HALF, atol=1e-12)
    assert_allclose(white.variances, [16 / 3, 4 / 3], atol=1e-12)
    assert white.notes == ()
    assert Whitening.fit(SQUARE, 1).matrix.tolist() == matrix[:, :1].tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 5, 12])
def test_whitening_is_the_svd_of_the_covariance(dtype, k):
    x = drawn(300, 12, dtype=dtype)
    white = Whitening.fit(x, k)
    mean, matrix = slow_whitening(x, k)
    assert_allclose(white.mean, mean, atol=1e-12)
    assert_allclose(white.matrix, matrix, atol=1e-9)
    y = white.exactly(x)
    assert_allclose(y.mean(axis=0), 0, atol=1e-9)
    assert_allclose(np.cov(y.T), np.eye(k) if k > 1 else 1.0, atol=1e-9)
    out = white.apply(x)
    assert (out.dtype, out.shape) == (np.float32, (300, k))
    assert_allclose(out, (x - mean) @ matrix, atol=1e-5)
    again, bias = white.affine()
    assert_allclose(x.astype(np.float64) @ again + bias, y, atol=1e-9)


@given(st.integers(2, 30), st.integers(1, 12), st.data())
@settings(max_examples=40, deadline=None)
def test_only_directions_that_exist_are_kept(n, d, data):
    rank = data.draw(st.integers(1, d))
    asked = data.draw(st.none() | st.integers(1, 15))
    x = drawn(n, d, rank, seed=n * 100 + d * 10 + rank, dtype=data.draw(st.sampled_from([np.float32, np.float64])))
    exist = min(rank, n - 1)
    white = Whitening.fit(x, asked)
    assert white.given == (exist if asked is None else min(asked, exist))
    assert (f"{exist} of {d} directions exist" in " ".join(white.notes)) == (exist < d)
    assert (f"{asked} dimensions were asked for; {exist} are there" in " ".join(white.notes)) == (
        asked is not None and asked > exist
    )
    assert_allclose(np.atleast_2d(np.cov(white.exactly(x).T)), np.eye(white.given), atol=1e-6)


def test_why_directions_are_missing_is_told():
    assert "5 vectors differ in no more" in Whitening.fit(drawn(5, 8)).notes[0]
    assert "5 weighted sums of the dimensions are the same" in Whitening.fit(drawn(50, 8, 3)).notes[0]


def test_a_last_layer_norm_leaves_one_direction_less_and_the_note_says_why():
    """Whatever its gain and bias, and also of means over several slots."""
    draw = np.random.default_rng(0)
    slots = draw.normal(size=(400, 3, 16))
    normed = (slots - slots.mean(-1, keepdims=True)) / slots.std(-1, keepdims=True)
    pooled = (normed * draw.normal(1, 0.1, 16) + draw.normal(size=16)).mean(1)
    white = Whitening.fit(pooled)
    assert white.given == 15
    assert white.notes == (
        "15 of 16 directions exist (the rank of the covariance): one weighted sum of the dimensions is the same in all "
        "vectors, as after a last LayerNorm",
    )


def test_the_rounding_of_float32_is_no_direction():
    wide = drawn(500, 20, 20) @ np.random.default_rng(1).normal(size=(20, 40)) + 100
    assert Whitening.fit(wide.astype(np.float32)).given == 20
    assert Whitening.fit(wide).given == 20


@pytest.mark.parametrize(("n", "d", "k"), [(300, 768, 256), (400, 1024, 384)])
def test_the_published_sizes_of_fewer_vectors_than_dimensions(n, d, k):
    x = np.random.default_rng(d).normal(size=(n, d)) * np.geomspace(4, 0.1, d) + 1
    white = Whitening.fit(x, k)
    y = white.exactly(x)
    assert y.shape == (n, k)
    assert_allclose(y.mean(axis=0), 0, atol=1e-9)
    assert_allclose(np.cov(y.T), np.eye(k), atol=1e-9)
    assert (
        f"{n - 1} of {d:,} directions exist (the rank of the covariance): {n} vectors differ in no more"
        in white.notes[0]
    )


def test_a_smaller_one_is_the_first_columns():
    x = drawn(200, 10)
    whole = Whitening.fit(x)
    for k in (1, 4, 10):
        assert whole.reduced(k).matrix.tobytes() == Whitening.fit(x, k).matrix.tobytes()
    many = whole.reduced(11)
    assert many.given == 10
    assert "11 dimensions were asked for; 10 are there" in many.notes[0]
    assert whole.notes == ()


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_batches_give_what_all_at_once_gives(sizes, d):
    x = drawn(sum(sizes), d, seed=d) + 1000
    parts = np.split(x, np.cumsum(sizes)[:-1])
    found = moments(parts)
    if not len(x):
        assert found.count == 0
        return
    assert found.count == len(x)
    assert_allclose(found.mean, x.mean(axis=0), rtol=1e-12)
    assert_allclose(found.scatter, (x - x.mean(axis=0)).T @ (x - x.mean(axis=0)), atol=1e-9)
    if len(x) > d + 1:
        one, many = Whitening.fit(x), Whitening.of(found)
        assert_allclose(many.exactly(x), one.exactly(x), atol=1e-9)


def test_blocks_change_nothing(monkeypatch):
    x = drawn(50, 4)
    whole = Whitening.fit(x)
    monkeypatch.setattr(given_rows, "BLOCK", 7)
    assert_allclose(Whitening.fit(x).matrix, whole.matrix, atol=1e-12)
    assert_allclose(whole.apply(x), whole.exactly(x), atol=1e-6)
    assert whole.apply(x[:0]).shape == whole.exactly(x[:0]).shape == (0, 4)


def test_a_mean_that_is_large_costs_no_digits():
    x = drawn(400, 3) + 1e6
    assert_allclose(Moments().update(x).covariance(), np.cov(x.T), rtol=1e-9)


def test_the_largest_component_is_positive_and_the_first_of_equals_decides():
    columns = np.array([[-0.6, 0.70710678, 0.0], [0.8, -0.70710678000001, -1.0], [0.0, 0.0, 0.0]])
    assert np.sign(with_signs(columns)).tolist() == [[-1, 1, 0], [1, -1, 1], [0, 0, 0]]
    assert with_signs(-columns).tolist() == with_signs(columns).tolist()


def slow_all_but_the_top(x, k):
    centred = x - x.mean(axis=0)
    directions = np.linalg.svd(centred, full_matrices=False)[2][:k]
    return np.array([row - sum((row @ u) * u for u in directions) for row in centred])


@pytest.mark.parametrize("k", [0, 1, 3])
def test_centring_takes_out_the_mean_and_the_top(k):
    x = drawn(100, 7)
    centring = Centring.fit(x, directions=k)
    assert_allclose(centring.exactly(x), slow_all_but_the_top(x, k) if k else x - x.mean(axis=0), atol=1e-10)
    assert_allclose(centring.exactly(x).mean(axis=0), 0, atol=1e-10)
    assert np.linalg.matrix_rank(centring.exactly(x)) == 7 - k
    matrix, bias = centring.affine()
    assert matrix.shape == (7, 7)
    assert_allclose(x @ matrix + bias, centring.exactly(x), atol=1e-10)
    assert centring.apply(x).dtype == np.float32


def test_what_leaves_nothing_is_refused():
    with pytest.raises(ArgumentError, match="nothing would be left"):
        Centring.fit(drawn(30, 7, 3), directions=3)
    with pytest.raises(ArgumentError, match="0 or more are wanted"):
        Centring.fit(drawn(30, 7), directions=-1)
    with pytest.raises(ArgumentError, match="at least 1 is wanted"):
        Whitening.fit(drawn(30, 7), dimensions=0)
    with pytest.raises(ArgumentError, match="at least 1 is wanted"):
        Whitening.fit(drawn(30, 7)).reduced(0)


def test_a_refused_batch_leaves_the_moments_as_they_were(monkeypatch):
    monkeypatch.setattr(given_rows, "BLOCK", 4)
    found = Moments().update(drawn(10, 3))
    before = found.scatter.tobytes()
    wrong = drawn(10, 3)
    wrong[6, 1] = np.nan
    with pytest.raises(ArgumentError, match=r"row 16 \(counted from 0\): the vector holds nan in dimension 1"):
        found.update(wrong)
    with pytest.raises(ArgumentError, match="4 dimensions, this was fitted to 3"):
        found.update(drawn(10, 4))
    assert (found.count, found.scatter.tobytes()) == (10, before)
    with pytest.raises(ArgumentError, match="too large for double precision"):
        Moments().update([[1e300, 1.0], [-1e300, 1.0]])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_thousands_of_equal_vectors_are_equal(dtype):
    same = np.tile(np.array([0.1, 1 / 3, -70.3], dtype=dtype), (5000, 1))
    for fit in (Whitening.fit, Centring.fit):
        with pytest.raises(ArgumentError, match="all 5,000 vectors are equal"):
            fit(same)
    varied = same.copy()
    varied[:, 1] = np.linspace(0, 1, 5000)
    white = Whitening.fit(varied)
    assert white.given == 1
    assert_allclose(white.matrix[[0, 2], 0], 0, atol=1e-6)


def test_descriptions():
    assert Whitening.fit(SQUARE, 1).describe() == (
        "whitening, 2 to 1 dimensions, fitted on 4 vectors; the dimensions kept held 80.0 % of the variance"
    )
    assert Centring.fit(SQUARE).describe() == "centring, 2 dimensions, the mean of 4 vectors taken out"
    assert "and 1 common direction, 80.0 % of the variance, of 4 vectors" in Centring.fit(SQUARE, 1).describe()
