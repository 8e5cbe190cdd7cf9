"""Span boundary and word order against slow references written from their papers: every loss and every gradient."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made_rows import FACTS, made_rows
from small_model import VOCABULARY, batch_of, small_network

from maskery.corruption.config import CorruptionConfig, ShuffleConfig, SpanConfig
from maskery.corruption.corrupt import corrupt
from maskery.edit import ASKED, Edit
from maskery.model.flow import read_answers
from maskery.model.initial import initialise
from maskery.model.transformer import inputs_of
from maskery.objectives.span_boundary import LONGEST, SpanBoundary
from maskery.objectives.word_order import WordOrder
from maskery.randomness import keys

SPANS = CorruptionConfig(unit="word", rate=0.3, decide="span", span=SpanConfig(law="geometric"))
SHUFFLED = CorruptionConfig(shuffle=ShuffleConfig(rate=0.2, size=3))


def corrupted(seed, config, many=6):
    rows = made_rows(seed, many, tokens=(10, 28), stretches=(1, 2))
    rows = replace(rows, ids=rows.ids % VOCABULARY, original=rows.original % VOCABULARY)
    out = corrupt(rows, config, keys(seed, "mask", rows.number), FACTS)
    return replace(out, ids=(out.ids % VOCABULARY).astype(np.int32))


def slow_spans(rows):
    """(row, first slot, last slot) of every maximal run of chosen slots that does not touch [CLS] or [SEP]."""
    found = []
    for row in range(len(rows)):
        begin, length = rows.start[row], rows.length[row]
        chosen = [rows.edit[begin + slot] in ASKED for slot in range(length)]
        for first in range(length):
            if not chosen[first] or chosen[first - 1]:
                continue
            last = first
            while chosen[last + 1]:
                last += 1
            if not rows.special[begin + first - 1] and not rows.special[begin + last + 1]:
                found.append((row, first, last))
    return found


@given(seed=st.integers(0, 10_000), rate=st.floats(0.05, 0.9), ngram=st.booleans())
@settings(max_examples=40, deadline=None)
def test_the_targets_are_those_of_the_slow_way(seed, rate, ngram):
    config = SPANS.model_copy(update={"rate": rate})
    if ngram:
        config = CorruptionConfig(**config.plain() | {"ngram": {"shortest": 2, "longest": 5}})
    rows = corrupted(seed, config)
    width = 70
    targets = SpanBoundary().ask(rows, width)
    expected = [
        (row * width + first + place, row * width + first - 1, row * width + last + 1, place)
        for row, first, last in slow_spans(rows)
        for place in range(min(last - first + 1, LONGEST))
    ]
    extra = targets.extra
    got = zip(targets.index.tolist(), *(extra[name].tolist() for name in ("left", "right", "place")), strict=True)
    assert list(got) == expected
    labels = [int(rows.original[rows.start[at // width] + at % width]) for at, *_ in expected]
    assert targets.label.tolist() == labels


def test_a_long_run_is_asked_for_its_first_fifteen():
    rows = made_rows(0, 1, tokens=(25, 25), stretches=(1, 1))
    edit = np.where((rows.slot >= 2) & (rows.slot < 24), Edit.MASK, Edit.NONE).astype(np.uint8)
    targets = SpanBoundary().ask(replace(rows, edit=edit), 27)
    assert targets.index.tolist() == list(range(2, 17))
    assert targets.extra["place"].tolist() == list(range(15))
    assert set(targets.extra["right"].tolist()) == {24}


@pytest.mark.parametrize("edges", [(1, 4), (20, 26), (1, 26)], ids=["after cls", "before sep", "all"])
def test_a_run_that_touches_an_end_is_left_out(edges):
    rows = made_rows(0, 1, tokens=(25, 25), stretches=(1, 1))
    edit = np.where((rows.slot >= edges[0]) & (rows.slot < edges[1]), Edit.MASK, Edit.NONE).astype(np.uint8)
    edit[10] = edit[12] = Edit.KEEP
    found = SpanBoundary().ask(replace(rows, edit=edit), 27).index.tolist()
    assert found == ([] if edges == (1, 26) else [10, 12])


def test_nothing_chosen_asks_nothing():
    rows = made_rows(3, 4)
    assert SpanBoundary().ask(rows, 99).index.numel() == 0


def boundary_head(network):
    head = SpanBoundary().head(network.shape)
    initialise(head, 0.3, 1)
    for parameter in head.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, 0.5, 0.3, generator=torch.Generator().manual_seed(2))
    return head.double()


def slow_norm(x, norm, eps):
    return (x - x.mean()) / (x.var(unbiased=False) + eps).sqrt() * norm.weight + norm.bias


def slow_gelu(x):
    return x * (1 + torch.erf(x / 2**0.5)) / 2


@pytest.mark.parametrize("embedding", [0, 8], ids=["full", "factorised"])
def test_span_boundary_is_the_papers_formula(embedding):
    """y = f(x[s-1], x[e+1], p[i-s+1]) by two layers, each LN(GELU(W .)), and a softmax tied to the embeddings."""
    network = small_network(embedding=embedding).double()
    head, rows, shape = boundary_head(network), corrupted(4, SPANS), network.shape
    batch, objective = batch_of(rows, ["span_boundary"]), SpanBoundary()
    states = network(inputs_of(batch)).last
    losses, hits = [], 0
    for row, first, last in slow_spans(rows):
        for place in range(min(last - first + 1, 15)):
            x = torch.cat([states[row, first - 1], states[row, last + 1], head.places[place]])
            x = slow_norm(slow_gelu(head.first.weight @ x + head.first.bias), head.first_norm, shape.eps)
            y = slow_norm(slow_gelu(head.second.weight @ x + head.second.bias), head.second_norm, shape.eps)
            scores = network.embeddings.tokens @ y + head.bias
            label = int(batch.original[row, first + place])
            losses.append(scores.logsumexp(0) - scores[label])
            hits += int(scores.argmax()) == label
    expected = torch.stack(losses).sum()
    hidden = network(inputs_of(batch), reads=objective.reads(batch))
    found = objective.total(network, head, hidden, batch)
    assert objective.count(batch) == len(losses) > 20
    assert len({last - first for _, first, last in slow_spans(rows)}) > 2
    same_to_a_millionth(found, expected, [*network.parameters(), *head.parameters()])
    with torch.no_grad():
        assert objective.measure(network, head, hidden, batch)["accuracy"] == (hits, len(losses))
    assert head.places.shape == (15, 200)


def same_to_a_millionth(found, expected, parameters):
    assert abs(float(found.detach()) / float(expected.detach()) - 1) < 1e-6
    pairs = zip(
        torch.autograd.grad(found, parameters, allow_unused=True),
        torch.autograd.grad(expected, parameters, allow_unused=True),
        strict=True,
    )
    for one, other in pairs:
        assert (one is None) == (other is None)
        if one is not None:
            assert float((one - other).norm()) <= 1e-6 * max(1e-3, float(other.norm()))


def test_word_order_is_the_token_that_stood_there():
    network = small_network().double()
    rows, objective = corrupted(5, SHUFFLED), WordOrder()
    head = objective.head(network.shape)
    initialise(head, 0.3, 1)
    head.double()
    batch = batch_of(rows, ["word_order"])
    states, losses, moved = network(inputs_of(batch)).last, [], 0
    for row in range(len(rows)):
        for slot in range(rows.length[row]):
            if batch.edit[row, slot] == Edit.SHUFFLED:
                scores = head(states[row, slot], network.embeddings.tokens)
                losses.append(scores.logsumexp(0) - scores[int(batch.original[row, slot])])
                moved += int(batch.ids[row, slot] != batch.original[row, slot])
    assert objective.count(batch) == len(losses) > 20
    assert moved > len(losses) / 3
    hidden = network(inputs_of(batch), reads=objective.reads(batch))
    found = objective.total(network, head, hidden, batch)
    same_to_a_millionth(found, torch.stack(losses).sum(), [*network.parameters(), *head.parameters()])


def test_word_order_looks_for_no_leak_and_span_boundary_does():
    """A shuffled token stands in the input: that is the question. The answers of a span must not."""
    rows = corrupted(4, SPANS)
    batch, objective = batch_of(rows, ["span_boundary"]), SpanBoundary()
    answers, count = objective.answers(batch), objective.count(batch)
    targets = batch.targets["span_boundary"]
    assert answers.asked.tolist() == targets.extra["left"].tolist() + targets.extra["right"].tolist()
    assert answers.answer.tolist() == 2 * targets.index.tolist()
    reading = read_answers(small_network(), batch, answers.asked, answers.answer)
    kept = int((batch.edit.flatten()[targets.index] == Edit.KEEP).sum())
    assert reading.leak is None
    assert (reading.targets, reading.kept) == (2 * count, 2 * kept)
    shown = replace(batch, edit=torch.zeros_like(batch.edit))
    assert read_answers(small_network(), shown, answers.asked, answers.answer).leak is not None
    assert WordOrder().answers(batch_of(corrupted(5, SHUFFLED), ["word_order"])) is None
