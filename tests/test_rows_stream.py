"""Rows of a stream: the text as it runs, against a list that is written out and cut."""

from __future__ import annotations

import numpy as np
import pytest
from fake_store import FakeStore, random_store
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from maskery.rows.config import RowsConfig
from maskery.rows.plan import plan_rows
from maskery.rows.ragged import gather

STREAM = RowsConfig(kind="stream")


def written_out(store, split="train", begin=0):
    """(token place or None for [SEP], document) of the whole run, one by one."""
    run = []
    chosen = store.documents(split).tolist()
    for document in chosen[begin:] + chosen[:begin]:
        first, end = store.document_start[document : document + 2]
        places = range(store.sentence_start[first], store.sentence_start[end])
        if len(places):
            run += [(place, document) for place in places] + [(None, document)]
    return run


def assert_rows(store, plan, run, length, first=0):
    rows = len(run) // length
    read = gather(plan, np.arange(first, first + rows), store)
    cut = run[: rows * length]
    assert read.length.tolist() == [length] * rows
    assert read.ids.tolist() == [store.specials.sep if p is None else int(store.tokens[p]) for p, _ in cut]
    assert read.special.tolist() == [p is None for p, _ in cut]
    assert read.flags.tolist() == [0 if p is None else int(store.flags[p]) for p, _ in cut]
    documents = np.array([document for _, document in cut]).reshape(-1, length)
    apart = np.diff(documents, axis=1) != 0
    expected = np.concatenate((np.zeros((len(documents), 1), dtype=int), apart.cumsum(1)), axis=1)
    assert read.document.reshape(-1, length).tolist() == expected.tolist(), "a [SEP] belongs to what it ends"
    assert not read.segment.any()
    assert (read.label == -1).all()


@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=6), min_size=1, max_size=8), st.integers(5, 40))
@settings(max_examples=60, deadline=None)
def test_equals_the_run_that_is_written_out(lengths, length):
    store = FakeStore([[1], *lengths])
    plan, run = plan_rows(STREAM, store, length, 0), written_out(store)
    assert len(plan) == max(1, len(run) // length)
    assert plan.counts.get("tail_slots", 0) == (len(run) % length if len(run) >= length else 0)
    assert_rows(store, plan, run, min(length, len(run)))


def test_a_document_that_ends_with_its_row_is_ended_in_the_next():
    store = FakeStore([[6], [4, 3]])
    plan = plan_rows(STREAM, store, 6, 0)
    first, second = gather(plan, [0], store), gather(plan, [1], store)
    assert first.ids.tolist() == [5, 6, 7, 8, 9, 10]
    assert second.ids.tolist() == [3, 11, 12, 13, 14, 15]
    assert second.document.tolist() == [0, 1, 1, 1, 1, 1]
    assert plan.counts["tail_slots"] == 3


def test_every_pass_holds_the_same_text_from_another_document():
    store = random_store(3, 40)
    once, thrice = plan_rows(STREAM, store, 16, 7), plan_rows(RowsConfig(kind="stream", copies=3), store, 16, 7)
    assert len(thrice) == 3 * len(once)
    starts = []
    for turn in range(3):
        place = int(thrice.piece_start[thrice.row_start[turn * len(once)]])
        starts.append(store.document_of(place))
        assert_rows(store, thrice, written_out(store, begin=starts[-1]), 16, turn * len(once))
    assert starts[0] == 0
    assert len(set(starts)) == 3
    assert (
        plan_rows(RowsConfig(kind="stream", copies=3), store, 16, 8).piece_start.tolist() != thrice.piece_start.tolist()
    )


def test_any_rows_in_any_order_and_the_part_set_aside():
    store = random_store(5, 30, heldout=(2, 9, 11))
    plan = plan_rows(STREAM, store, 20, 0, "heldout")
    assert_rows(store, plan, written_out(store, "heldout"), 20)
    mixed = gather(plan, [3, 0, 3], store)
    for row, number in enumerate([3, 0, 3]):
        alone = gather(plan, [number], store)
        assert mixed.ids[row * 20 : row * 20 + 20].tolist() == alone.ids.tolist()


def test_a_stream_makes_no_pairs():
    assert STREAM.pair == "none"
    with pytest.raises(ValidationError, match="goes with pair 'none' only"):
        RowsConfig(kind="stream", pair="next")
