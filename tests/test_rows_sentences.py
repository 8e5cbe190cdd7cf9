"""Rows of whole sentences: a hand-made example each, then against a slow walk over sentences."""

from __future__ import annotations

import numpy as np
import pytest
from fake_store import FakeStore, random_store
from hypothesis import given, settings
from hypothesis import strategies as st

from maskery.rows.config import RowsConfig
from maskery.rows.plan import plan_rows


def rows_of(store, kind, length, **options):
    plan = plan_rows(RowsConfig(kind=kind, **options), store, length, 0)
    return [
        [(int(plan.piece_start[p]), int(plan.piece_end[p])) for p in range(*plan.row_start[r : r + 2])]
        for r in range(len(plan))
    ]


def test_full_sentences_cross_documents_with_a_separator():
    store = FakeStore([[3, 4], [2, 5], [6]])
    # [CLS] 3+4 [SEP] 2 [SEP] = 12 slots: the 5 does not fit; [CLS] 5 [SEP] = 7 leaves 5: the 6 does not.
    assert rows_of(store, "full_sentences", 12) == [[(0, 7), (7, 9)], [(9, 14)], [(14, 20)]]
    assert rows_of(store, "doc_sentences", 12) == [[(0, 7)], [(7, 14)], [(14, 20)]]
    assert rows_of(store, "full_sentences", 11) == [[(0, 7)], [(7, 14)], [(14, 20)]]


def test_a_sentence_that_no_row_holds_is_split_and_counted():
    store = FakeStore([[2, 20, 3]])
    expected = [[(0, 2)], [(2, 10)], [(10, 18)], [(18, 25)]]
    assert rows_of(store, "full_sentences", 10) == expected
    assert rows_of(store, "doc_sentences", 10) == expected
    plan = plan_rows(RowsConfig(kind="full_sentences"), store, 10, 0)
    assert plan.counts["long_sentences"] == 1
    assert plan.counts["cut_tokens"] == 0


def slow_rows(documents, length, crossing):
    """Sentence by sentence; a row is a list of (document, tokens)."""
    rows, row = [], []

    def used():
        return 1 + sum(len(tokens) + 1 for _, tokens in row)

    def flush():
        nonlocal row
        if row:
            rows.append(row)
        row = []

    for number, document in enumerate(documents):
        for sentence in document:
            rest = list(sentence)
            joins = bool(row) and row[-1][0] == number
            if used() + len(rest) + (not joins) > length:
                flush()
            while len(rest) > length - 2:
                rows.append([(number, rest[: length - 2])])
                rest = rest[length - 2 :]
            if rest and row and row[-1][0] == number:
                row[-1][1].extend(rest)
            elif rest:
                row.append((number, rest))
        if not crossing:
            flush()
    flush()
    return [[(tokens[0], tokens[-1] + 1) for _, tokens in row] for row in rows]


@given(st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=10), min_size=1, max_size=8), st.integers(5, 40))
@settings(max_examples=200, deadline=None)
def test_both_kinds_equal_the_slow_walk(lengths, length):
    store = FakeStore(lengths)
    edge = store.sentence_start.tolist()
    documents = [
        [list(range(edge[s], edge[s + 1])) for s in range(*store.document_start[d : d + 2])]
        for d in range(len(lengths))
    ]
    assert rows_of(store, "full_sentences", length) == slow_rows(documents, length, crossing=True)
    assert rows_of(store, "doc_sentences", length) == slow_rows(documents, length, crossing=False)


@pytest.mark.parametrize("kind", ["full_sentences", "doc_sentences"])
def test_every_pass_reads_every_token_once(kind):
    store = random_store(3, 50, tokens=(3, 90))
    plan = plan_rows(RowsConfig(kind=kind, copies=3), store, 64, 0)
    reads = np.zeros(len(store.tokens) + 1, dtype=int)
    np.add.at(reads, plan.piece_start, 1)
    np.add.at(reads, plan.piece_end, -1)
    assert (np.cumsum(reads)[:-1] == 3).all()


@pytest.mark.parametrize("kind", ["full_sentences", "doc_sentences"])
def test_later_passes_begin_elsewhere(kind):
    store = random_store(4, 50)
    rows = rows_of(store, kind, 64, copies=4)
    assert rows[: len(rows_of(store, kind, 64))] == rows_of(store, kind, 64)
    beginnings = [row[0][0] for row in rows if row[0][0] == 0]
    assert len(beginnings) >= 1
    passes = [i for i, row in enumerate(rows) if i and row[0][0] not in (rows[i - 1][-1][1], 0)]
    assert len(passes) >= 2, "a jump in the text where a pass begins"
