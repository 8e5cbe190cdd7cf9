"""The contrast: its rows against the text, its loss against the formula written out, what is no candidate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made_rows import FACTS, made_rows, some_of
from small_model import VOCABULARY, batch_of, small_network

from maskery.batches import Targets
from maskery.corruption.config import CorruptionConfig, NgramConfig
from maskery.corruption.corrupt import corrupt
from maskery.corruption.units import word_starts
from maskery.edit import Edit
from maskery.model.transformer import inputs_of
from maskery.objectives.contrast import Contrast
from maskery.objectives.ngrams import fingerprints, ngrams_of, order_matters
from maskery.randomness import keys

CLS, SEP = 2, 3


def hidden_rows(seed, many=8, **options):
    rows = made_rows(seed, many, **options)
    config = CorruptionConfig(ngram=NgramConfig(longest=5))
    return corrupt(rows, config, keys(seed, "mask", rows.number), FACTS)


def run_of(rows, row):
    """The hidden words of a row, each a list of ids."""
    starts, words = word_starts(rows), []
    for slot in range(rows.start[row], rows.start[row + 1]):
        if rows.edit[slot] == Edit.NGRAM:
            if starts[slot] or not words:
                words.append([])
            words[-1].append(int(rows.original[slot]))
    return words


def for_network(rows):
    """The ids that the small network knows."""
    return replace(rows, ids=rows.ids % VOCABULARY, original=rows.original % VOCABULARY)


def flat(words):
    return [number for word in words for number in word]


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_every_hidden_run_is_read_twice(seed):
    """As [CLS] words [SEP], in its order and with the same words in another."""
    rows = hidden_rows(seed)
    asked = [row for row in range(len(rows)) if run_of(rows, row)]
    targets, view = Contrast().ask(rows, 99), Contrast().view(rows)
    assert targets.index.tolist() == asked
    read = [view.ids[view.start[n] : view.start[n + 1]].tolist() for n in range(len(view))]
    assert len(read) == 2 * len(asked)
    for place, row in enumerate(asked):
        words = run_of(rows, row)
        assert read[place] == [CLS, *flat(words), SEP]
        other = read[int(targets.extra["reordered"][place])]
        assert (other[0], other[-1]) == (CLS, SEP)
        assert sorted(other) == sorted(read[place])
        assert bool(targets.extra["differs"][place]) == (other != read[place])
        assert other[1:-1] in [flat(order) for order in orders(words)]
        assert view.number[place] == rows.number[row]
    assert not view.segment.any()
    assert not view.edit.any()


def orders(words):
    if len(words) < 2:
        return [words]
    return [[word, *rest] for n, word in enumerate(words) for rest in orders(words[:n] + words[n + 1 :])]


def test_the_words_move_always_and_anywhere():
    rows = made_rows(5, 1500, tokens=(6, 6), stretches=(1, 1), words=(1.0, 0, 0, 0))
    rows = replace(rows, edit=np.where((rows.slot >= 3) & (rows.slot < 6), Edit.NGRAM, Edit.NONE).astype(np.uint8))
    ngrams = ngrams_of(rows)
    places = (rows.slot[ngrams.other] - 3).reshape(-1, 3)
    found, counts = np.unique(places, axis=0, return_counts=True)
    assert len(ngrams) == 1500
    assert len(found) == 5, "every order but the old one"
    assert not (found == [0, 1, 2]).all(axis=1).any()
    turned = (found == [1, 2, 0]).all(axis=1)
    assert abs(counts[turned][0] / 1500 - 2 / 6) < 0.04, "its own sixth and that of the old order"
    assert (abs(counts[~turned] / 1500 - 1 / 6) < 0.04).all()


def test_the_view_does_not_depend_on_the_batch():
    rows = hidden_rows(3, 9)
    some = some_of(rows, [5, 2, 7])
    whole, part = ngrams_of(rows), ngrams_of(some)
    where = {int(row): n for n, row in enumerate(whole.row)}
    for n, row in enumerate(part.row):
        big = where[[5, 2, 7][int(row)]]
        mine = rows.original[whole.other[whole.start[big] : whole.start[big + 1]]]
        assert some.original[part.other[part.start[n] : part.start[n + 1]]].tolist() == mine.tolist()
        assert fingerprints(some, part)[n] == fingerprints(rows, whole)[big]


def test_equal_runs_have_equal_fingerprints_and_others_do_not():
    rows = hidden_rows(7, 300, tokens=(4, 9), stretches=(1, 1))
    rows = replace(rows, original=(rows.original % 3 + 5).astype(np.int32))
    ngrams = ngrams_of(rows)
    found = fingerprints(rows, ngrams)
    texts = [tuple(rows.original[ngrams.slot[ngrams.start[n] : ngrams.start[n + 1]]]) for n in range(len(ngrams))]
    assert len(set(texts)) < len(texts)
    for n, text in enumerate(texts):
        assert [text == other for other in texts] == (found == found[n]).tolist()
    same = [rows.original[ngrams.other[ngrams.start[n] : ngrams.start[n + 1]]].tolist() == list(text)
            for n, text in enumerate(texts)]  # fmt: skip
    assert any(same)
    assert (~order_matters(rows, ngrams)).tolist() == same


def slow(vectors, labels, differs):
    """The formula, one row after another in double precision: losses and whether the truth is first."""
    losses, hits = [], []
    for i, (row, run, other) in enumerate(vectors):

        def score(candidate, row=row):
            return sum(a * b for a, b in zip(row, candidate, strict=True))  # fmt: skip

        others = [score(each[1]) for j, each in enumerate(vectors) if labels[j] != labels[i]]
        others += [score(other)] if differs[i] else []
        losses.append(math.log(sum(math.exp(each) for each in [score(run), *others])) - score(run))
        hits.append(all(score(run) > each for each in others))
    return losses, hits


def compared(vectors, labels, differs):
    extra = {"differs": torch.tensor(differs, dtype=torch.bool)}
    return Contrast().compare(
        vectors, Targets(index=torch.arange(len(labels)), label=torch.tensor(labels), extra=extra)
    )


@given(
    seed=st.integers(0, 999),
    labels=st.lists(st.integers(0, 4), min_size=1, max_size=7),
    data=st.data(),
)
@settings(max_examples=40, deadline=None)
def test_the_loss_is_the_formula(seed, labels, data):
    differs = data.draw(st.lists(st.booleans(), min_size=len(labels), max_size=len(labels)))
    vectors = torch.randn(len(labels), 3, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    found, (losses, hits) = compared(vectors, labels, differs), slow(vectors.tolist(), labels, differs)
    assert found.losses.tolist() == pytest.approx(losses, abs=1e-6)
    assert found.hits.tolist() == hits


def test_the_gradient_is_that_of_the_formula():
    vectors = torch.randn(6, 3, 5, generator=torch.Generator().manual_seed(4), dtype=torch.float64).requires_grad_()
    labels, differs = [4, 1, 4, 2, 9, 1], [True, False, True, True, True, True]
    (found,) = torch.autograd.grad(compared(vectors, labels, differs).losses.sum(), vectors)
    step, expected, plain = 1e-6, torch.zeros_like(vectors), vectors.detach()
    for place in np.ndindex(*plain.shape):
        sides = []
        for sign in (1, -1):
            moved = plain.clone()
            moved[place] += sign * step
            sides.append(sum(slow(moved.tolist(), labels, differs)[0]))
        expected[place] = (sides[0] - sides[1]) / (2 * step)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)
    assert not found[1, 2].any(), "an order that is the same is no candidate"


def test_one_row_alone_whose_order_does_not_matter_has_nothing_to_lose():
    found = compared(torch.randn(1, 3, 4), [0], [False])
    assert found.losses.tolist() == [0.0]
    assert found.hits.tolist() == [True]


def test_through_the_network():
    """Every row and run read by itself, one at a time, gives the loss, the gradient and the accuracy of the batch."""
    rows, objective = hidden_rows(2, 6, tokens=(8, 28), stretches=(1, 2)), Contrast()
    network = small_network(pooler=True).double()
    with torch.no_grad():
        network.embeddings.tokens.mul_(0.3)
    batch = batch_of(for_network(rows), ["contrast"])
    targets, view = batch.targets["contrast"], batch.views["contrast"]
    assert objective.count(batch) == len(targets.index) > 3

    def alone(of, row):
        return network(inputs_of(replace(of, views={}).one(row))).pooled[0]

    vectors = torch.stack([
        torch.stack([alone(batch, row), alone(view, n), alone(view, n + len(targets.index))])
        for n, row in enumerate(targets.index.tolist())
    ])  # fmt: skip
    losses = [torch.stack([
        vectors[i, 0] @ each for each in
        [vectors[i, 1], *(vectors[j, 1] for j in range(len(vectors)) if targets.label[j] != targets.label[i]),
         *([vectors[i, 2]] if targets.extra["differs"][i] else [])]
    ]).log_softmax(0)[0].neg() for i in range(len(vectors))]  # fmt: skip
    expected = torch.stack(losses).sum()
    head, hidden = objective.head(network.shape), network(inputs_of(batch), reads=objective.reads(batch))
    found = objective.total(network, head, hidden, batch)
    assert float(found.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
    parameters = list(network.parameters())
    for one, other in zip(
        torch.autograd.grad(found, parameters), torch.autograd.grad(expected, parameters), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)
    with torch.no_grad():
        measured = objective.measure(network, head, hidden, batch)
    assert measured["loss"] == (pytest.approx(float(expected.detach())), len(targets.index))
    assert objective.answers(batch) is None


def test_views_stand_below_and_change_no_slot():
    """The states of the batch's own rows are what they are without the views."""
    rows = hidden_rows(2, 6, stretches=(1, 2))
    batch = batch_of(for_network(rows), ["masked_token", "contrast"])
    network, index = small_network(pooler=True), batch.targets["masked_token"].index
    with_views, without = network(inputs_of(batch)), network(inputs_of(replace(batch, views={})))
    torch.testing.assert_close(with_views.select(index), without.select(index))
    torch.testing.assert_close(with_views.pooled[: batch.size], without.pooled)
    assert batch.view_start("contrast") == batch.size == 6
    assert batch.tokens == int(batch.length.sum()) == len(rows.ids), "what is read besides is not counted"
    assert batch.to("cpu").views["contrast"].size == 2 * len(batch.targets["contrast"].index)


def test_masked_tokens_are_not_asked_in_the_run():
    rows = hidden_rows(2, 20)
    batch = batch_of(rows, ["masked_token", "span_boundary", "contrast"])
    run = batch.edit.flatten() == Edit.NGRAM
    for name in ("masked_token", "span_boundary"):
        assert not run[batch.targets[name].index].any()


def test_rows_without_a_run_are_not_asked():
    batch, network = batch_of(for_network(made_rows(0, 5, stretches=(1, 2))), ["contrast"]), small_network(pooler=True)
    assert batch.views["contrast"].size == Contrast().count(batch) == 0
    total = Contrast().total(network, torch.nn.Module(), network(inputs_of(batch)), batch)
    assert total == 0
    total.backward()
    assert network.pooler.weight.grad is not None
    assert not network.pooler.weight.grad.any()
