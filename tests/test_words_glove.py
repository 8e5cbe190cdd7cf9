"""GloVe: gradient, AdaGrad and order of its training against slow loops written from the paper and from its code."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from maskery.errors import InputError, NonFiniteError
from maskery.randomness import key, permute
from maskery.words.config import METHODS, words_config
from maskery.words.cooccurrence import Pairs, count_pairs
from maskery.words.glove import GLOVE, glove_vectors, make_batches, start_table, train_glove, update
from maskery.words.vocabulary import Words

WAYS = ("paper", "code")


def text_of(sentences):
    number = [each for sentence in sentences for each in sentence]
    size = max(number) + 1
    return Words(
        words=[f"w{each}" for each in range(size)],
        counts=np.bincount([each for each in number if each >= 0], minlength=size),
        number=np.array(number, dtype=np.int32),
        sentence_start=np.concatenate(([0], np.cumsum([len(sentence) for sentence in sentences]))),
        total=len(number),
    )


def toy(sentences=40, size=23):
    drawn = np.random.default_rng(5)
    return text_of([(size * drawn.random(drawn.integers(2, 12)) ** 2).astype(int).tolist() for _ in range(sentences)])


def small(**given):
    return words_config("glove", {"width": 4, "window": 3, "epochs": 3, "x_max": 2.0, **given})


def dense(pairs, size):
    table = np.zeros((size, size))
    table[pairs.one, pairs.other] = pairs.weight
    table[pairs.other, pairs.one] = pairs.weight
    return table


class Slow:
    """One cell after the other, number by number; `g` begins at 1."""

    def __init__(self, table, config):
        self.size, self.config = len(table) // 2, config
        split = config.width + 1
        self.value = [[float(each) for each in row[:split]] for row in table]
        self.g = [[1.0 + float(each) for each in row[split:]] for row in table]

    def visit(self, i, j, x):
        config, d = self.config, self.config.width
        w, c = self.value[i], self.value[self.size + j]
        gw, gc = self.g[i], self.g[self.size + j]
        diff = sum(w[k] * c[k] for k in range(d)) + w[d] + c[d] - math.log(x)
        f = (x / config.x_max) ** config.alpha if x < config.x_max else 1.0
        for k in range(d):
            one = min(max(f * diff * c[k], -config.clip), config.clip)
            other = min(max(f * diff * w[k], -config.clip), config.clip)
            w[k] -= config.lr * one / math.sqrt(gw[k])
            c[k] -= config.lr * other / math.sqrt(gc[k])
            scale = config.lr if config.adagrad == "code" else 1.0
            gw[k] += (scale * one) ** 2
            gc[k] += (scale * other) ** 2
        rate = 1.0 if config.adagrad == "code" else config.lr
        w[d] -= rate * f * diff / math.sqrt(gw[d])
        c[d] -= rate * f * diff / math.sqrt(gc[d])
        gw[d] += (f * diff) ** 2
        gc[d] += (f * diff) ** 2
        return 0.5 * f * diff**2

    def table(self):
        return np.array([value + [each - 1 for each in g] for value, g in zip(self.value, self.g, strict=True)])


def big_start(size, config, seed=1):
    """Numbers far from zero, so that every term of a gradient matters."""
    table = np.abs(np.random.default_rng(seed).normal(size=(2 * size, 2 * config.width + 2)))
    table[:, : config.width + 1] *= np.random.default_rng(seed + 1).choice((-1, 1), (2 * size, config.width + 1))
    return table


def test_the_defaults_are_those_of_the_origin():
    config = words_config("glove")
    assert (config.width, config.window, config.epochs, config.lr) == (50, 15, 25, 0.05)
    assert (config.x_max, config.alpha, config.clip, config.adagrad) == (100, 0.75, 100, "paper")
    assert METHODS.get("glove") is GLOVE


def test_the_first_step_is_the_gradient_of_the_papers_cost():
    """With lr 1 and G at 1 a step is the gradient; over all batches, from the same place, that of the whole J."""
    words, config = toy(), small(lr=1.0, clip=1e9)
    size = len(words.words)
    pairs = count_pairs(words, config.window)
    table = big_start(size, config)
    table[:, config.width + 1 :] = 0
    batches, steps, cost = make_batches(pairs, size, 0), np.zeros_like(table), 0.0
    for number in range(len(batches.start) - 1):
        moved = table.copy()
        cost += update(moved, *batches.cells(number), config)
        steps += table - moved
    value = torch.tensor(table[:, : config.width + 1], requires_grad=True)
    x = torch.tensor(dense(pairs, size))
    w, b, c, d = value[:size, :-1], value[:size, -1:], value[size:, :-1], value[size:, -1:]
    error = w @ c.T + b + d.T - torch.log(torch.where(x > 0, x, 1.0))
    whole = 0.5 * (torch.clamp((x / config.x_max) ** config.alpha, max=1.0) * error**2)[x > 0].sum()
    whole.backward()
    assert (x > config.x_max).any(), "both sides of f are asked"
    assert_allclose(cost, whole.item(), rtol=1e-6)
    assert_allclose(steps[:, : config.width + 1], value.grad.numpy(), rtol=1e-6, atol=1e-9)


def test_the_gradient_agrees_with_differences():
    config = small(lr=1.0, clip=1e9)
    table = big_start(1, config)
    table[:, config.width + 1 :] = 0
    cell = (np.array([0]), np.array([0]), np.array([0.7]))
    moved = table.copy()
    update(moved, *cell, config)
    for row in range(2):
        for column in range(config.width + 1):
            costs = []
            for shift in (1e-5, -1e-5):
                beside = table.copy()
                beside[row, column] += shift
                costs.append(update(beside, *cell, config))
            assert (costs[0] - costs[1]) / 2e-5 == pytest.approx((table - moved)[row, column], rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("clip", [100.0, 0.3])
def test_an_epoch_is_that_of_the_slow_loop(way, clip):
    """Two epochs of batches, and the same cells one after the other."""
    words, config = toy(), small(adagrad=way, clip=clip, epochs=2)
    size = len(words.words)
    batches = make_batches(count_pairs(words, config.window), size, config.seed)
    table = big_start(size, config)
    slow = Slow(table, config)
    for epoch in range(2):
        many = len(batches.start) - 1
        for number in permute(key(config.seed, "glove order", epoch), np.arange(many), many).tolist():
            cells = batches.cells(number)
            cost = update(table, *cells, config)
            assert cost == pytest.approx(
                sum(slow.visit(int(i), int(j), float(x)) for i, j, x in zip(*cells, strict=True))
            )
    assert_allclose(table, slow.table(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_training_in_single_precision_stays_near_the_slow_loop(way):
    words, config = toy(), small(adagrad=way, epochs=3, seed=2)
    size = len(words.words)
    epochs = [(epoch.number, epoch.loss) for epoch in train_glove(words, config)]
    *_, last = train_glove(words, config)
    pairs = count_pairs(words, config.window)
    batches, slow = make_batches(pairs, size, config.seed), Slow(start_table(size, config), config)
    many, losses = len(batches.start) - 1, []
    for epoch in range(config.epochs):
        order = permute(key(config.seed, "glove order", epoch), np.arange(many), many).tolist()
        cells = [cell for number in order for cell in zip(*batches.cells(number), strict=True)]
        losses.append(sum(slow.visit(int(i), int(j), float(x)) for i, j, x in cells) / len(cells))
        assert len(cells) == pairs.cells == np.count_nonzero(dense(pairs, size))
    assert [number for number, _ in epochs] == [1, 2, 3]
    assert_allclose([loss for _, loss in epochs], losses, rtol=1e-4)
    assert losses[2] < losses[0]
    assert last.arrays["table"].dtype == np.float32
    assert_allclose(last.arrays["table"], slow.table(), rtol=1e-3, atol=1e-5)
    matrix = glove_vectors(words, config, last.arrays).matrix
    expected = slow.table()[:size, : config.width] + slow.table()[size:, : config.width]
    assert matrix.shape == (size, config.width)
    assert_allclose(matrix, expected, rtol=1e-3, atol=1e-5)


def test_the_two_ways_differ_as_the_origins_code_says():
    """Vectors take the same first step and grow G by lr squared less; biases step 1 / lr as far and grow G alike."""
    cell = (np.array([0]), np.array([0]), np.array([0.7]))
    moved = {}
    for way in WAYS:
        config = small(adagrad=way)
        table = big_start(1, config)
        before = table.copy()
        update(table, *cell, config)
        moved[way] = table - before
    paper, code = moved["paper"], moved["code"]
    assert_allclose(code[:, :4], paper[:, :4])
    assert_allclose(code[:, 4], paper[:, 4] / 0.05)
    assert_allclose(code[:, 5:9], paper[:, 5:9] * 0.05**2)
    assert_allclose(code[:, 9], paper[:, 9])


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), st.integers(0, 5), st.data())
def test_no_word_comes_twice_in_a_batch_and_no_cell_is_lost(size, seed, data):
    cells = sorted(data.draw(st.sets(st.tuples(*[st.integers(0, size - 1)] * 2).map(sorted).map(tuple), min_size=1)))
    one, other = np.array(cells, dtype=np.int32).T
    pairs = Pairs(one, other, (1 + np.arange(len(cells))).astype(np.float32))
    batches, seen = make_batches(pairs, size, seed), np.zeros((size, size))
    for number in range(len(batches.start) - 1):
        words, contexts, weight = batches.cells(number)
        assert len(words) == len(set(words.tolist())) == len(set(contexts.tolist())) > 0
        assert not seen[words, contexts].any()
        seen[words, contexts] = weight
    assert_array_equal(seen, dense(pairs, size))


def test_going_on_is_the_same_as_never_having_stopped():
    words, config = toy(), small(epochs=4)
    kept = {epoch.number: {"table": epoch.arrays["table"].copy()} for epoch in train_glove(words, config)}
    begun = next(iter(train_glove(words, config)))
    state = begun._replace(arrays={"table": begun.arrays["table"].copy()})
    state.arrays["table"].flags.writeable = False
    rest = [(epoch.number, epoch.arrays["table"].copy()) for epoch in train_glove(words, config, None, state)]
    assert [number for number, _ in rest] == [2, 3, 4]
    for number, table in rest:
        assert_array_equal(table, kept[number]["table"])


def test_seeds_differ_and_one_seed_is_one_result():
    words = toy()
    tables = [list(train_glove(words, small(seed=seed)))[-1].arrays["table"] for seed in (0, 0, 1)]
    assert_array_equal(tables[0], tables[1])
    assert np.abs(tables[0] - tables[2]).max() > 0.01


def test_numbers_begin_as_the_origin_draws_them():
    table = start_table(2000, words_config("glove", {"width": 8}))
    value = table[:, :9]
    assert not table[:, 9:].any()
    assert np.abs(value).max() <= 0.5 / 8
    assert value.std() == pytest.approx(1 / 8 / math.sqrt(12), rel=0.01)
    assert np.abs(value.mean(axis=0)).max() < 0.003


def test_progress_is_told_and_a_stop_is_heard():
    words, config, told = toy(), small(), []
    list(train_glove(words, config, lambda done, total: told.append((done, total))))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1] == 3.5
    assert not list(train_glove(words, config, None, None, lambda: True))
    ended = []
    for epoch in train_glove(words, config, None, None, lambda: len(ended) > 0):
        ended.append(epoch.number)
    assert ended == [1]


def test_words_that_stand_alone_are_refused():
    with pytest.raises(InputError, match="no two words stand in one sentence") as caught:
        list(train_glove(text_of([[0], [1], [0]]), small()))
    assert "--min-count" in caught.value.repair


@pytest.mark.parametrize(("lr", "clip"), [(5.0, 100.0), (1e30, 1e30)], ids=["large", "not a number"])
def test_numbers_that_grow_beyond_bounds_are_told(lr, clip):
    with pytest.raises(NonFiniteError, match="beyond all bounds") as caught:
        list(train_glove(toy(), small(lr=lr, clip=clip, epochs=5)))
    assert caught.value.repair == "a lower --lr, for example 0.05"


def test_words_of_one_kind_of_company_come_together():
    """Two topics that share no word but the commonest: neighbours are of the same topic."""
    drawn = np.random.default_rng(0)
    sentences = [[0, *(1 + 10 * (each % 2) + drawn.integers(0, 10, 9)).tolist()] for each in range(400)]
    words, config = text_of(sentences), words_config("glove", {"width": 8, "window": 8, "x_max": 20.0, "epochs": 15})
    *_, last = train_glove(words, config)
    matrix = glove_vectors(words, config, last.arrays).matrix[1:]
    matrix = matrix - matrix.mean(axis=0)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    near = matrix @ matrix.T - 2 * np.eye(20)
    assert (near.argmax(axis=1) // 10 == np.arange(20) // 10).all()
