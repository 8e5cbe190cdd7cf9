"""Reading rows of a plan into flat arrays."""

from __future__ import annotations

import numpy as np
import pytest
from fake_store import FakeStore, random_store
from hypothesis import given, settings
from hypothesis import strategies as st

from maskery.edit import Edit
from maskery.rows.config import RowsConfig
from maskery.rows.plan import plan_rows
from maskery.rows.ragged import gather

NAMES = ("ids", "original", "flags", "special", "segment", "document", "edit")


def slow_row(plan, row, store):
    ids, flags, special, segment, document = [], [], [], [], []
    for place, piece in enumerate(range(plan.row_start[row], plan.row_start[row + 1])):
        start, end, number = plan.piece_start[piece], plan.piece_end[piece], plan.piece_segment[piece]
        lead = [store.specials.cls] if place == 0 else []
        text = store.tokens[start:end].tolist()
        ids += [*lead, *text, store.specials.sep]
        flags += [0] * len(lead) + store.flags[start:end].tolist() + [0]
        special += [True] * len(lead) + [False] * len(text) + [True]
        segment += [number] * (len(lead) + len(text) + 1)
        document += [place] * (len(lead) + len(text) + 1)
    return {"ids": ids, "original": ids, "flags": flags, "special": special, "segment": segment, "document": document}


@pytest.mark.parametrize("kind", ["segment_pair", "full_sentences", "doc_sentences"])
@given(st.data())
@settings(max_examples=25, deadline=None)
def test_gather_equals_the_slow_reading(kind, data):
    store = random_store(6, 30, tokens=(1, 12))
    plan = plan_rows(RowsConfig(kind=kind), store, 48, 0)
    numbers = data.draw(st.lists(st.integers(0, len(plan) - 1), max_size=12))
    rows = gather(plan, numbers, store)
    assert rows.number.tolist() == numbers
    assert rows.label.tolist() == plan.label[numbers].tolist() if numbers else len(rows.label) == 0
    for b, number in enumerate(numbers):
        expected = slow_row(plan, number, store) | {"edit": [Edit.NONE] * int(rows.length[b])}
        for name in NAMES:
            assert getattr(rows, name)[rows.start[b] : rows.start[b + 1]].tolist() == expected[name], name
        assert rows.slot[rows.start[b] : rows.start[b + 1]].tolist() == list(range(rows.length[b]))
        assert set(rows.row[rows.start[b] : rows.start[b + 1]].tolist()) == {b}
    assert rows.start[-1] == len(rows.ids)


def test_a_row_reads_as_it_should():
    store = FakeStore([[2, 1], [2]])
    rows = gather(plan_rows(RowsConfig(kind="full_sentences"), store, 16, 0), [0], store)
    assert rows.ids.tolist() == [2, 5, 6, 7, 3, 8, 9, 3]
    assert rows.special.tolist() == [True, False, False, False, True, False, False, True]
    assert rows.document.tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
    assert rows.segment.tolist() == [0] * 8
    assert rows.label.tolist() == [-1]
    assert rows.flags.tolist() == [0, 1, 2, 3, 0, 4, 5, 0]


def test_a_separator_in_the_text_is_text():
    store = FakeStore([[3]])
    store.tokens[1] = store.specials.sep
    rows = gather(plan_rows(RowsConfig(kind="doc_sentences"), store, 16, 0), 0, store)
    assert rows.special.tolist() == [True, False, False, False, True]


def test_gather_copies_and_original_is_apart():
    store = random_store(8, 10)
    plan = plan_rows(RowsConfig(), store, 32, 0)
    rows = gather(plan, np.arange(4), store)
    before = rows.original.copy()
    rows.ids[:] = 0
    assert np.array_equal(rows.original, before)
    assert np.array_equal(gather(plan, np.arange(4), store).ids, before)
