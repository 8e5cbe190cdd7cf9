"""Randomness: uniform, reproducible, and never a matter of what else is drawn."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from chance import surprise
from hypothesis import given, settings
from hypothesis import strategies as st

from maskery import randomness
from maskery.randomness import below, bits, generator, key, keys, permute, scalars, torch_generator, uniform

counters = st.integers(0, 2**63 - 1)


@given(st.integers(0, 2**64), st.text(max_size=8), st.lists(counters, max_size=3))
def test_a_key_is_the_element_of_keys(seed, stream, places):
    assert key(seed, stream, *places) == int(keys(seed, stream, *[np.array([p]) for p in places])[0])
    assert 0 <= key(seed, stream, *places) < 2**64


def test_keys_broadcast_and_differ_by_every_part():
    table = keys(3, "mask", np.arange(50)[:, None], np.arange(40)[None, :])
    assert table.shape == (50, 40)
    assert int(table[7, 9]) == key(3, "mask", 7, 9)
    drawn = {int(k) for k in table.ravel()}
    drawn |= {key(4, "mask", 7, 9), key(3, "order", 7, 9), key(3, "mask", 7), key(3, "mask", 7, 9, 0)}
    assert len(drawn) == 50 * 40 + 4


def test_keys_are_stable_across_versions():
    assert key(0, "mask", 1, 2) == 13719247376101489645
    assert int(bits(5, "choose", 3)[0]) == 1390551432746455895
    assert permute(9, [0, 1, 2, 3], 4).tolist() == [1, 2, 0, 3]
    assert permute(9, [0, 1, 2, 999], 1000).tolist() == [540, 622, 585, 144]


def test_bits_are_balanced_and_neighbours_share_nothing():
    words = bits(keys(1, "rows", np.arange(400))[:, None], "choose", np.arange(256)[None, :]).ravel()
    unpacked = np.unpackbits(words.view(np.uint8)).reshape(len(words), 64)
    assert np.abs(unpacked.mean(0) - 0.5).max() < 5 * 0.5 / math.sqrt(len(words))
    turned = np.unpackbits((words[1:] ^ words[:-1]).view(np.uint8)).mean()
    assert abs(turned - 0.5) < 5 * 0.5 / math.sqrt(64 * len(words))


@pytest.mark.parametrize("by", ["key", "place"])
def test_uniform_is_uniform_along_both_axes(by):
    many = np.arange(100_000)
    drawn = uniform(keys(0, "rows", many), "edit") if by == "key" else uniform(77, "edit", many)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert surprise(np.histogram(drawn, bins=100, range=(0, 1))[0], 1000) < 4
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 5 / math.sqrt(len(many))


def test_purposes_are_independent():
    row_keys = keys(0, "rows", np.arange(50_000))
    one, other = uniform(row_keys, "edit"), uniform(row_keys, "choose")
    grid = np.histogram2d(one, other, bins=10, range=((0, 1), (0, 1)))[0]
    assert surprise(grid, 500) < 4


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
def test_below_is_uniform(limit):
    drawn = below(keys(0, "rows", np.arange(200_000)), "random id", limit)
    counts = np.bincount(drawn, minlength=limit)
    assert len(counts) == limit
    if limit > 1:
        assert surprise(counts, 200_000 / limit) < 4


def test_below_takes_a_limit_for_each():
    limits = np.array([1, 2, 30_000, 2**32])
    many = np.stack([below(keys(0, "rows", np.arange(4)), "x", limits, at) for at in range(500)])
    assert (many < limits).all()
    assert (many.max(0) >= (limits - 1) * 0.9).all()


@given(st.integers(0, 2**63), st.integers(1, 40), st.data())
def test_draws_do_not_depend_on_the_company(seed, rows, data):
    row_keys = keys(seed, "rows", np.arange(rows))
    chosen = data.draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=10))
    whole = uniform(row_keys[:, None], "edit", np.arange(9)[None, :])
    part = uniform(row_keys[chosen][:, None], "edit", np.arange(9)[None, :])
    assert np.array_equal(whole[chosen], part)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 255, 256, 257, 258, 1000, 1024, 1025, 4097])
def test_permute_is_a_permutation(size):
    for number in range(5):
        assert sorted(permute(key(0, "order", number), np.arange(size), size)) == list(range(size))


@given(st.integers(0, 2**64 - 1), st.integers(1, 3000), st.data())
@settings(max_examples=50)
def test_permute_sends_each_place_alone_where_it_sends_it_in_company(order_key, size, data):
    place = data.draw(st.integers(0, size - 1))
    assert permute(order_key, place, size)[0] == permute(order_key, np.arange(size), size)[place]


def test_permute_in_a_large_range():
    size = 10**12 + 7
    places = np.arange(size - 20_000, size)
    sent = permute(5, places, size)
    assert len(set(sent.tolist())) == len(places)
    assert surprise(np.histogram(sent, bins=50, range=(0, size))[0], 400) < 4


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_all_small_permutations_are_equally_likely(size):
    trials = 12_000
    seen = dict.fromkeys(permutations(range(size)), 0)
    for order_key in keys(0, "order", np.arange(trials)):
        seen[tuple(permute(int(order_key), np.arange(size), size).tolist())] += 1
    assert surprise(list(seen.values()), trials / len(seen)) < 4


@pytest.mark.parametrize("size", [17, 300])
def test_a_place_goes_everywhere_and_neighbours_part(size):
    orders = [permute(int(k), np.arange(size), size) for k in keys(1, "order", np.arange(1000))]
    sent = np.stack(orders)
    cells = np.array([np.histogram(column, bins=10, range=(0, size))[0] for column in sent.T])
    expected = len(sent) * np.histogram(np.arange(size), bins=10, range=(0, size))[0] / size
    assert surprise(cells, expected[None, :]) < 4
    steps = np.bincount(((sent[:, 1:] - sent[:, :-1]) % size).ravel(), minlength=size)[1:]
    assert surprise(steps, steps.sum() / len(steps)) < 4


@pytest.mark.parametrize(("index", "size"), [(3, 3), (-1, 5), (0, 0)])
def test_permute_refuses_what_is_outside(index, size):
    with pytest.raises(ValueError, match="outside"):
        permute(1, index, size)


def test_generators_start_afresh_from_their_key():
    big = key(0, "plan", 0) | 2**63
    assert scalars(big).random() == scalars(big).random()
    assert generator(big).random() == generator(big).random()
    assert generator(big).random() != generator(big - 1).random()
    one, two = torch_generator(big), torch_generator(big)
    assert torch.equal(torch.randn(5, generator=one), torch.randn(5, generator=two))


def test_seed_dropout_sets_what_dropout_draws():
    ones = torch.ones(1000)
    randomness.seed_dropout(2**64 - 1)
    first = torch.nn.functional.dropout(ones, 0.5)
    second = torch.nn.functional.dropout(ones, 0.5)
    randomness.seed_dropout(2**64 - 1)
    assert torch.equal(first, torch.nn.functional.dropout(ones, 0.5))
    assert not torch.equal(first, second)
