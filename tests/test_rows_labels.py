"""What a label says, found again from the tokens of the row and the store alone: nothing of the builders is asked."""

from __future__ import annotations

from itertools import pairwise
from math import factorial

import numpy as np
import pytest
from chance import surprise
from fake_store import FakeStore, random_store
from hypothesis import given, settings
from hypothesis import strategies as st

from maskery.corpus.mixture import Mixture
from maskery.corpus.store import Corpus
from maskery.rows import plan as planning
from maskery.rows.config import PAIRS, RowsConfig
from maskery.rows.plan import plan_rows
from maskery.rows.ragged import gather
from maskery.text.tokenizer import Tokenizer
from maskery.text.training import LAYOUT

PAIRED = [(kind, pair) for kind in ("segment_pair", "sentence_pair") for pair in ("next", "order", "three", "distance")]
LABELLED = [*PAIRED, ("permuted_segments", "permuted")]
documents = st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=1, max_size=8)


@pytest.fixture(autouse=True)
def no_kept_plans():
    planning._PLANS.clear()


class Reader:
    """Finds text in a store in which no token occurs twice."""

    def __init__(self, store):
        self.store = store
        self.where = {int(token): place for place, token in enumerate(store.tokens[:])}
        assert len(self.where) == len(store.tokens), "every token is unique"

    def segments(self, rows, number):
        """The row's segments as (start, end) in the store, found by their tokens."""
        span = slice(rows.start[number], rows.start[number + 1])
        ids, special = rows.ids[span].tolist(), np.flatnonzero(rows.special[span]).tolist()
        assert special[0] == 0
        assert special[-1] == len(ids) - 1
        found = []
        for before, behind in pairwise(special):
            places = [self.where[token] for token in ids[before + 1 : behind]]
            assert places == list(range(places[0], places[0] + len(places))), "a segment is one stretch of the store"
            found.append((places[0], places[-1] + 1))
        return found

    def document(self, place):
        sentence = int(np.searchsorted(self.store.sentence_start, place, side="right")) - 1
        return int(np.searchsorted(self.store.document_start, sentence, side="right")) - 1

    def is_edge(self, place):
        return place in self.store.sentence_start

    def sentences_between(self, start, end):
        """How many whole sentences lie in a stretch."""
        edges = self.store.sentence_start
        whole = (edges[:-1] >= start) & (edges[1:] <= end) & (edges[1:] > edges[:-1])
        return int(whole.sum())


def relation(reader, a, b):
    if reader.document(a[0]) != reader.document(b[0]):
        return "other"
    if b[0] >= a[1]:
        return "behind"
    assert b[1] <= a[0], "segments do not overlap"
    return "before"


def true_label(reader, pair, segments):
    """The label by what the labels mean."""
    if pair == "permuted":
        order = np.argsort(np.argsort([start for start, _ in segments])).tolist()
        rank = sum(factorial(many) for many in range(1, len(order)))
        for place, piece in enumerate(order):
            smaller = sum(later < piece for later in order[place + 1 :])
            rank += smaller * factorial(len(order) - 1 - place)
        return rank
    a, b = segments
    found = relation(reader, a, b)
    if pair == "distance" and found != "other":
        return 0 if a[1] == b[0] else 1
    table = {
        "next": {"behind": 0, "other": 1},
        "order": {"behind": 0, "before": 1},
        "three": {"behind": 0, "before": 1, "other": 2},
        "distance": {"other": 2},
    }
    return table[pair][found]


def check_row(reader, pair, segments, label, length):
    for start, end in segments:
        assert reader.document(start) == reader.document(end - 1), "a segment lies in one document"
    if label == -1:
        assert len(segments) == 1
        assert pair in ("order", "three", "distance")
        return
    assert label == true_label(reader, pair, segments)
    uncut = sum(end - start for start, end in segments) < length - 1 - (3 if pair == "permuted" else 2)
    if pair == "permuted":
        check_permuted(reader, sorted(segments), uncut)
    elif pair == "distance":
        check_distance(reader, *segments, label)
    elif uncut and relation(reader, *segments) != "other":
        first, second = sorted(segments)
        assert first[1] == second[0], "halves of one stretch"
    if uncut and pair != "order":
        assert all(reader.is_edge(place) for segment in segments for place in segment)


def check_permuted(reader, in_text_order, uncut):
    assert len({reader.document(start) for start, _ in in_text_order}) == 1
    for (_, end), (start, _) in pairwise(in_text_order):
        assert start >= end
        assert start == end or not uncut


def check_distance(reader, a, b, label):
    assert reader.is_edge(a[1])
    assert reader.is_edge(b[0])
    if label == 1:
        gap = (a[1], b[0]) if b[0] >= a[1] else (b[1], a[0])
        assert reader.sentences_between(*gap) >= 1, "at least a sentence between them"


@pytest.mark.parametrize(("kind", "pair"), LABELLED)
@given(documents, st.integers(5, 60), st.integers(0, 9), st.integers(1, 2), st.data())
@settings(max_examples=60, deadline=None)
def test_labels_are_true_of_any_documents(kind, pair, lengths, length, seed, copies, data):
    heldout = {0, 1} | data.draw(st.sets(st.integers(2, len(lengths) + 1)))
    store = FakeStore([[4], [1, 5], *lengths, [3], [2, 2]], heldout)
    reader, config = Reader(store), RowsConfig(kind=kind, pair=pair, copies=copies, short=0.3)
    for split in ("train", "heldout"):
        plan = plan_rows(config, store, length, seed, split)
        rows = gather(plan, np.arange(len(plan)), store)
        assert rows.length.max() <= length
        mine = set(store.documents(split).tolist())
        for number, label in enumerate(rows.label.tolist()):
            segments = reader.segments(rows, number)
            assert {reader.document(start) for start, _ in segments} <= mine
            check_row(reader, pair, segments, label, length)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Two corpora of text in which no word occurs twice."""
    folder, draw, words, texts = tmp_path_factory.mktemp("labels"), np.random.default_rng(0), 0, []
    for _ in range(2):
        text = []
        for _ in range(60):
            sentences = []
            for size in draw.integers(2, 9, int(draw.integers(1, 9))).tolist():
                sentences.append(" ".join(f"w{word}" for word in range(words, words + size)))
                words += size
            text.append("\n".join(sentences))
        texts.append("\n\n".join(text))
    tokenizer = Tokenizer.from_pieces([*LAYOUT, *(f"w{word}" for word in range(words))])
    built = []
    for name, text in zip("ab", texts, strict=True):
        (folder / f"{name}.txt").write_text(text + "\n", encoding="utf-8")
        built.append(Corpus.build(folder / f"{name}.txt", folder / name, tokenizer=tokenizer, heldout=0.2, workers=0))
    return built


@pytest.mark.parametrize(("kind", "pair"), LABELLED)
def test_labels_are_true_of_a_corpus_and_of_a_mixture(corpora, kind, pair):
    config, readers = RowsConfig(kind=kind, pair=pair, copies=2), [Reader(corpus) for corpus in corpora]
    seen = set()
    for split in ("train", "heldout"):
        plan = plan_rows(config, Mixture(corpora), 40, 3, split)
        rows = gather(plan, np.arange(len(plan)), Mixture(corpora))
        part = np.searchsorted(plan.part_start, np.arange(len(plan)), side="right") - 1
        for number, label in enumerate(rows.label.tolist()):
            reader = readers[part[number]]
            segments = reader.segments(rows, number)
            mine = reader.store.documents(split)
            assert all(reader.document(start) in mine for start, _ in segments)
            check_row(reader, pair, segments, label, 40)
            seen.add(label)
    assert seen - {-1} == set(range(len(PAIRS.get(pair).labels))), "every label occurs"


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("kind", "pair"), [each for each in PAIRED if each[1] != "next"])
def test_labels_are_drawn_evenly_where_there_is_a_choice(kind, pair, seed):
    store = random_store(5, 800, (2, 30), (1, 12))
    plan = plan_rows(RowsConfig(kind=kind, pair=pair), store, 40, seed)
    drawn = np.bincount(plan.label[plan.label >= 0], minlength=len(PAIRS.get(pair).labels))
    assert drawn.sum() > 2000
    assert surprise(drawn, drawn.sum() / len(drawn)) < 3.7
    assert plan.counts.get("rows_without_pair", 0) == (plan.label == -1).sum()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_number_of_segments_and_every_order_is_as_likely(seed):
    store = FakeStore([[2] * 9] * 6000)
    plan = plan_rows(RowsConfig(kind="permuted_segments"), store, 40, seed)
    drawn = np.bincount(plan.label, minlength=9)
    assert len(plan) == 6000
    assert surprise([drawn[0], drawn[1:3].sum(), drawn[3:].sum()], 2000) < 3.7
    assert surprise(drawn[3:], drawn[3:].mean()) < 3.7
    assert abs(drawn[1] - drawn[2]) < 3.9 * np.sqrt(drawn[1] + drawn[2])
