"""BERT's rows against the original algorithm written out slowly, and the laws of what they draw."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from random import Random

import numpy as np
import pytest
from chance import share_is, surprise
from fake_store import FakeStore, random_store
from hypothesis import given
from hypothesis import strategies as st

from maskery.randomness import key, scalars
from maskery.rows import plan as planning
from maskery.rows.config import PAIRS, RowsConfig
from maskery.rows.pairs import cut, kept
from maskery.rows.plan import Draft, plan_rows


def slow_cut(a, b, limit):
    """Tokens that leave each segment, one at a time, the longer first."""
    left_a, left_b = a, b
    while left_a + left_b > limit:
        if left_a > left_b:
            left_a -= 1
        else:
            left_b -= 1
    return a - left_a, b - left_b


def without(tokens, surplus, draw):
    if surplus:
        front = sum(int(bit) for bit in bin(draw.getrandbits(surplus))[2:])
        tokens = tokens[front : len(tokens) - (surplus - front)]
    return tokens


def slow_instances(documents, number, length, short, draw):
    """The walk over one document as it was published: token lists, sentence by sentence."""
    document, limit, target = documents[number], length - 3, length - 3
    if draw.random() < short:
        target = 2 + int(draw.random() * (limit - 1))
    made, chunk, held, i = [], [], 0, 0
    while i < len(document):
        chunk.append(document[i])
        held += len(document[i])
        if i == len(document) - 1 or held >= target:
            a_end = 1
            if len(chunk) >= 2:
                a_end = 1 + int(draw.random() * (len(chunk) - 1))
            a, b = [t for s in chunk[:a_end] for t in s], []
            is_random = len(chunk) == 1 or draw.random() < 0.5
            if is_random:
                other = int(draw.random() * (len(documents) - 1))
                other += other >= number
                start = int(draw.random() * len(documents[other]))
                for sentence in documents[other][start:]:
                    b += sentence
                    if len(b) >= target - len(a):
                        break
                i -= len(chunk) - a_end
            else:
                b = [t for s in chunk[a_end:] for t in s]
            from_a, from_b = slow_cut(len(a), len(b), limit)
            a, b = without(a, from_a, draw), without(b, from_b, draw)
            made.append((a, b, int(is_random)))
            chunk, held = [], 0
        i += 1
    return made


@pytest.mark.parametrize(("length", "short"), [(32, 0.1), (64, 0.5), (128, 0.1), (7, 1.0)])
def test_segment_pairs_equal_the_slow_walk(length, short):
    store = random_store(length, 60)
    edge = store.sentence_start.tolist()
    documents = [
        [list(range(edge[s], edge[s + 1])) for s in range(*store.document_start[d : d + 2])] for d in range(60)
    ]
    plan = plan_rows(RowsConfig(short=short), store, length, 3)
    draw = scalars(key(3, "plan", 0))
    expected = [row for d in range(60) for row in slow_instances(documents, d, length, short, draw)]
    assert len(plan) == len(expected)
    for row, (a, b, label) in enumerate(expected):
        first, second = plan.row_start[row], plan.row_start[row] + 1
        assert (plan.piece_start[first], plan.piece_end[first]) == (a[0], a[-1] + 1)
        assert (plan.piece_start[second], plan.piece_end[second]) == (b[0], b[-1] + 1)
        assert plan.label[row] == label


@given(st.integers(1, 200), st.integers(1, 200), st.integers(2, 200))
def test_kept_lengths_equal_the_slow_cut(a, b, limit):
    from_a, from_b = slow_cut(a, b, limit)
    assert kept((a, b), limit) == [a - from_a, b - from_b]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=4), st.integers(4, 200))
def test_tokens_leave_the_longest_of_many(sizes, limit):
    left = list(sizes)
    while sum(left) > limit:
        longest = max(range(len(left)), key=lambda place: (left[place], place))
        left[longest] -= 1
    assert kept(sizes, limit) == left


def test_every_cut_token_falls_in_front_or_behind_by_a_fair_coin():
    draft, draw = Draft(), Random(0)
    fronts = np.array([cut(0, 30, 22, draw, draft)[0] for _ in range(20_000)])
    binomial = np.array([1, 8, 28, 56, 70, 56, 28, 8, 1]) / 256
    assert surprise(np.bincount(fronts, minlength=9), 20_000 * binomial) < 4
    assert draft.counts["cut_tokens"] == 8 * 20_000
    assert cut(5, 9, 4, draw, draft) == (5, 9)


def one_token_sentences(documents, sentences):
    """Such chunks never overshoot, so the draws can be read off the rows."""
    return FakeStore([[1] * sentences] * documents)


def test_half_of_the_pairs_are_random_and_every_token_is_read_once():
    store = random_store(5, 3000, (2, 30), (1, 3))
    plan = plan_rows(RowsConfig(short=0.1), store, 64, 0)
    choice = len(plan) - plan.counts["one_sentence_chunks"]
    assert share_is(int((plan.label == 0).sum()), choice, 0.5)
    assert share_is(plan.counts["short_documents"], 3000, 0.1)
    a, b = plan.row_start[:-1], plan.row_start[:-1] + 1
    own = np.concatenate([a, b[plan.label == 0]])
    reads = np.zeros(len(store.tokens) + 1, dtype=int)
    np.add.at(reads, plan.piece_start[own], 1)
    np.add.at(reads, plan.piece_end[own], -1)
    reads = np.cumsum(reads)[:-1]
    assert reads.max() == 1
    assert 0 < (reads == 0).sum() <= plan.counts["cut_tokens"]


def test_uncut_text_is_read_exactly_once():
    store = one_token_sentences(50, 333)
    plan = plan_rows(RowsConfig(short=0.5), store, 40, 0)
    a, b = plan.row_start[:-1], plan.row_start[:-1] + 1
    own = np.concatenate([a, b[plan.label == 0]])
    text = np.concatenate([np.arange(plan.piece_start[p], plan.piece_end[p]) for p in own])
    assert np.array_equal(np.sort(text), np.arange(len(store.tokens)))
    assert plan.counts["cut_tokens"] == 0


def test_short_targets_are_uniform():
    store = one_token_sentences(8000, 30)
    plan = plan_rows(RowsConfig(pair="none", short=1.0), store, 22, 0)
    starts = plan.piece_start[plan.row_start[:-1]]
    first = np.flatnonzero(starts % 30 == 0)
    target = plan.piece_end[first] - plan.piece_start[first]
    assert target.min() == 2
    assert target.max() == 20
    assert surprise(np.bincount(target)[2:], 8000 / 19) < 4


def test_the_cut_between_a_and_b_is_uniform():
    store = one_token_sentences(6000, 12)
    plan = plan_rows(RowsConfig(short=0.0), store, 15, 0)
    first = np.flatnonzero(plan.piece_start[plan.row_start[:-1]] % 12 == 0)
    a = plan.row_start[first]
    size = plan.piece_end[a] - plan.piece_start[a]
    assert surprise(np.bincount(size, minlength=12)[1:], 6000 / 11) < 4


def test_the_other_document_and_its_start_are_uniform():
    store = one_token_sentences(12, 8)
    plan = plan_rows(RowsConfig(short=0.0, copies=500), store, 11, 0)
    random = np.flatnonzero(plan.label == 1)
    own = plan.piece_start[plan.row_start[random]] // 8
    b_start = plan.piece_start[plan.row_start[random] + 1]
    gap = (b_start // 8 - own) % 12
    assert gap.min() == 1
    assert surprise(np.bincount(gap, minlength=12)[1:], len(random) / 11) < 4
    assert surprise(np.bincount(b_start % 8, minlength=8), len(random) / 8) < 4


def test_one_segment_fills_the_row():
    store = one_token_sentences(3, 100)
    plan = plan_rows(RowsConfig(pair="none", short=0.0), store, 32, 0)
    assert (plan.piece_end - plan.piece_start).tolist() == [30, 30, 30, 10] * 3
    long = plan_rows(RowsConfig(pair="none", short=0.0), FakeStore([[70]]), 32, 0)
    assert len(long) == 1
    assert long.counts["cut_tokens"] == 40
    assert long.counts["cut_rows"] == long.counts["long_sentences"] == 1


def test_sentence_pairs_use_each_sentence_once_and_half_are_random():
    store = random_store(9, 2000, (1, 9), (2, 12))
    plan = plan_rows(RowsConfig(kind="sentence_pair"), store, 40, 0)
    a, b = plan.row_start[:-1], plan.row_start[:-1] + 1
    edge = store.sentence_start
    assert np.isin(plan.piece_start, edge).all()
    assert np.array_equal(edge[np.searchsorted(edge, plan.piece_start) + 1], plan.piece_end), "single sentences"
    own = np.sort(np.concatenate([plan.piece_start[a], plan.piece_start[b[plan.label == 0]]]))
    assert np.array_equal(own, edge[:-1])
    assert np.array_equal(plan.piece_end[a][plan.label == 0], plan.piece_start[b][plan.label == 0])
    last = plan.counts["one_sentence_chunks"]
    assert share_is(int((plan.label == 0).sum()), len(plan) - last, 0.5)


BUILDERS = ("next", "order", "three", "distance")


class Overheard:
    """The table of pairs, writing down what each builder is offered."""

    def __init__(self):
        self.offered = []

    def get(self, name):
        pair = PAIRS.get(name)

        def make(outline, document, first, split, end, target, draw):
            self.offered.append((document, first, split, end, target))
            return pair.make(outline, document, first, split, end, target, draw)

        return replace(pair, make=make)


@pytest.mark.parametrize("kind", ["segment_pair", "sentence_pair"])
def test_all_builders_are_offered_the_same_chunks(kind, monkeypatch):
    """A chunk depends on the sentence at which it begins, not on who makes pairs of it."""
    store, reach = random_store(4, 300), {}
    module = import_module(f"maskery.rows.{kind}")
    for name in BUILDERS:
        overheard = Overheard()
        monkeypatch.setattr(module, "PAIRS", overheard)
        planning._PLANS.clear()
        plan = plan_rows(RowsConfig(kind=kind, pair=name, short=0.0), store, 64, 0)
        assert len(overheard.offered) == len(plan)
        for document, first, split, end, target in overheard.offered:
            assert first < split <= end
            assert reach.setdefault((document, first), (end, target)) == (end, target)
    edge, starts = store.sentence_start, store.document_start
    for (document, first), (end, target) in reach.items():
        stop = first + 1 if kind == "segment_pair" else min(first + 2, starts[document + 1])
        while kind == "segment_pair" and edge[stop] - edge[first] < target and stop < starts[document + 1]:
            stop += 1
        assert end == stop


@given(st.lists(st.integers(1, 20), min_size=6, max_size=6), st.integers(0, 50))
def test_builders_make_their_pairs_of_the_two_halves_they_are_given(lengths, seed):
    """Sentences 1, 2 | 3 of a document of six: label 0 is the halves as they stand, whoever is asked."""
    outline = planning.outline_of(FakeStore([lengths, [3, 4]]), "train")
    edge, draw = outline.sentence, Random(seed)
    first, second = (edge[1], edge[3]), (edge[3], edge[4])
    for name in BUILDERS:
        for _ in range(6):
            *stretches, label, resume = PAIRS.get(name).make(outline, 0, 1, 3, 4, edge[4] - edge[1], draw)
            a, b = tuple(stretches[:2]), tuple(stretches[2:])
            meaning = PAIRS.get(name).labels[label]
            if meaning in ("next", "order", "adjacent"):
                assert (a, b, resume) == (first, second, 4)
            elif meaning in ("swapped", "previous"):
                assert (a, b, resume) == (second, first, 4)
            else:
                assert first in (a, b)
                assert resume == 3, "what was not used is put back"


def test_exchanged_is_not_another_document():
    """Sentence order never looks outside its document, and next sentence never exchanges."""
    store = random_store(8, 200)
    for kind in ("segment_pair", "sentence_pair"):
        for name in ("order", "next"):
            plan = plan_rows(RowsConfig(kind=kind, pair=name), store, 64, 0)
            one = np.flatnonzero(plan.label == 1)
            a, b = plan.piece_start[plan.row_start[one]], plan.piece_start[plan.row_start[one] + 1]
            same = np.array([store.document_of(x) == store.document_of(y) for x, y in zip(a, b, strict=True)])
            assert same.all() if name == "order" else not same.any()
            assert name == "next" or (b < a).all()


def test_too_long_a_pair_of_neighbours_still_touches():
    plan = plan_rows(RowsConfig(pair="distance", short=0.0), random_store(2, 400, (3, 20), (20, 60)), 64, 0)
    near, rest = np.flatnonzero(plan.label == 0), np.flatnonzero(plan.label > 0)
    assert plan.counts["cut_rows"] > len(plan) / 2
    assert len(rest) > len(near)
    a, b = plan.row_start[near], plan.row_start[near] + 1
    assert np.array_equal(plan.piece_end[a], plan.piece_start[b])
