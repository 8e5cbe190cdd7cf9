"""What holds for every kind of row plan, on stores of any shape."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from fake_store import FakeStore, random_store
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from maskery.errors import CorpusError, RecipeError, RefusedError
from maskery.rows import plan as planning
from maskery.rows.config import KINDS, ONLY_PAIR, PAIRS, UNFRAMED, RowsConfig
from maskery.rows.plan import plan_rows

COMBINATIONS = [
    (kind, pair)
    for kind in KINDS.names()
    for pair in PAIRS.names()
    if pair == ONLY_PAIR.get(kind, pair) and (kind in ONLY_PAIR or pair != "permuted")
    if kind not in (*UNFRAMED, "source_target")
]
"""Streams and pairs of texts, which are framed otherwise, have tests of their own."""

documents = st.lists(st.lists(st.integers(0, 40), max_size=12), min_size=1, max_size=8)


@pytest.fixture(autouse=True)
def no_kept_plans():
    planning._PLANS.clear()


def pieces_of(plan, row):
    span = slice(plan.row_start[row], plan.row_start[row + 1])
    return list(
        zip(
            plan.piece_start[span].tolist(),
            plan.piece_end[span].tolist(),
            plan.piece_segment[span].tolist(),
            strict=True,
        )
    )


def same(one, other):
    names = ("row_start", "piece_start", "piece_end", "piece_segment", "label")
    return all(np.array_equal(getattr(one, n), getattr(other, n)) for n in names) and one.counts == other.counts


def check_plan(plan, store, config, length, split):
    mine = set(store.documents(split).tolist())
    assert len(plan) == len(plan.row_start) - 1 == plan.counts["rows"]
    assert (plan.piece_end > plan.piece_start).all()
    assert (np.diff(plan.row_start) > 0).all()
    assert plan.counts["tokens"] == (plan.piece_end - plan.piece_start).sum()
    for row in range(len(plan)):
        pieces = pieces_of(plan, row)
        assert 1 + sum(end - start + 1 for start, end, _ in pieces) <= length
        homes = [store.document_of(start) for start, _, _ in pieces]
        assert homes == [store.document_of(end - 1) for _, end, _ in pieces], "a piece lies in one document"
        assert set(homes) <= mine
        asked = plan.label[row] >= 0
        assert asked or config.pair not in ("next", "permuted")
        assert plan.label[row] < max(1, len(PAIRS.get(config.pair).labels))
        in_pair = asked and config.pair != "permuted"
        if config.kind == "one_or_two_segments":
            assert [segment for *_, segment in pieces] == [0, 1][: len(pieces)]
            assert all(one[1] == other[0] for one, other in pairwise(pieces)) or plan.counts["cut_tokens"]
            continue
        assert [segment for *_, segment in pieces] == ([0, 1] if in_pair else [0] * len(pieces))
        assert asked or config.pair == "none" or len(pieces) == 1


@pytest.mark.parametrize(("kind", "pair"), COMBINATIONS)
@given(documents, st.integers(5, 60), st.integers(0, 9), st.integers(1, 3), st.data())
@settings(max_examples=60, deadline=None)
def test_rows_fit(kind, pair, lengths, length, seed, copies, data):
    heldout = {0, 1} | data.draw(st.sets(st.integers(2, len(lengths) + 1)))
    store = FakeStore([[4], [1, 5], *lengths, [3], [2, 2]], heldout)
    config = RowsConfig(kind=kind, pair=pair, copies=copies, short=0.3)
    for split in ("train", "heldout"):
        check_plan(plan_rows(config, store, length, seed, split), store, config, length, split)


@pytest.mark.parametrize(("kind", "pair"), COMBINATIONS)
def test_a_plan_is_pure_and_reads_no_token(kind, pair):
    store = random_store(1, 40)
    config = RowsConfig(kind=kind, pair=pair, copies=2)
    plan = plan_rows(config, store, 64, 7)
    planning._PLANS.clear()
    del store.tokens, store.flags
    assert same(plan, plan_rows(config, store, 64, 7))
    first = plan_rows(config.model_copy(update={"copies": 1}), store, 64, 7)
    assert np.array_equal(plan.piece_start[: len(first.piece_start)], first.piece_start)
    assert not plan.piece_start.flags.writeable


@pytest.mark.parametrize(("kind", "pair"), [c for c in COMBINATIONS if c[0] == "segment_pair" or c[1] != "none"])
def test_seeds_and_copies_differ(kind, pair):
    store = random_store(1, 40)
    config = RowsConfig(kind=kind, pair=pair, copies=2)
    plan = plan_rows(config, store, 64, 7)
    assert not same(plan, plan_rows(config, store, 64, 8))
    first = len(plan_rows(config.model_copy(update={"copies": 1}), store, 64, 7))
    one, other = (
        plan.piece_start[part] for part in np.split(np.arange(len(plan.piece_start)), [plan.row_start[first]])
    )
    assert not np.array_equal(one, other)


def test_a_few_plans_are_kept():
    store = random_store(2, 10)
    plan = plan_rows(RowsConfig(), store, 64, 0)
    assert plan_rows(RowsConfig(), store, 64, 0) is plan
    for seed in range(1, 5):
        plan_rows(RowsConfig(), store, 64, seed)
    assert plan_rows(RowsConfig(), store, 64, 0) is not plan
    assert len(planning._PLANS) <= planning._KEPT


def test_a_plan_of_many_rows_is_put_together_right():
    store = FakeStore([[3, 4]] * 40_000)
    plan = plan_rows(RowsConfig(kind="sentence_pair", pair="none"), store, 16, 0)
    assert len(plan) == 80_000
    assert np.array_equal(plan.row_start, np.arange(80_001))
    assert np.array_equal(plan.piece_start, store.sentence_start[:-1])
    assert np.array_equal(plan.piece_end, store.sentence_start[1:])


def test_empty_sentences_and_documents_are_left_out_and_counted():
    store = FakeStore([[0, 3, 0, 2], [], [0], [4]])
    plan = plan_rows(RowsConfig(kind="sentence_pair", pair="none"), store, 16, 0)
    assert plan.piece_start.tolist() == [0, 3, 5]
    assert plan.piece_end.tolist() == [3, 5, 9]
    assert plan.counts["empty_sentences"] == 3
    assert plan.counts["empty_documents"] == 2


@pytest.mark.parametrize("split", ["train", "heldout"])
@pytest.mark.parametrize(
    ("pair", "question"), [("next", "next_sentence"), ("three", "three_way"), ("distance", "sentence_distance")]
)
@pytest.mark.parametrize("kind", ["segment_pair", "sentence_pair"])
def test_one_document_has_no_other(kind, pair, question, split):
    store = FakeStore([[5, 6, 7], [5, 5]], heldout=[1])
    with pytest.raises(RefusedError, match=f"{split} part") as caught:
        plan_rows(RowsConfig(kind=kind, pair=pair), store, 32, 0, split)
    assert question in caught.value.cause
    assert pair in caught.value.where
    assert ("--heldout" in caught.value.repair) == (split == "heldout")
    for choice in ("order", "none"):
        assert f"--set rows.pair={choice}" in caught.value.repair
    assert caught.value.repair.count(f"--set objectives.{question}=false") == 2


@pytest.mark.parametrize(("kind", "pair"), [each for each in COMBINATIONS if each[1] in ("order", "none", "permuted")])
def test_one_document_is_enough_without_another(kind, pair):
    plan = plan_rows(RowsConfig(kind=kind, pair=pair), FakeStore([[5, 6, 7, 3]]), 32, 0)
    assert len(plan) > 0
    assert pair == "none" or (plan.label >= 0).all()


def test_no_text_and_no_room():
    store = FakeStore([[5], [5]])
    with pytest.raises(CorpusError, match="heldout part"):
        plan_rows(RowsConfig(), store, 32, 0, "heldout")
    with pytest.raises(RecipeError, match="4 slots"):
        plan_rows(RowsConfig(), store, 4, 0)


def test_pairs_belong_to_kinds_that_make_them():
    assert RowsConfig(kind="full_sentences").pair == "none"
    assert RowsConfig(kind="segment_pair").pair == "next"
    assert RowsConfig.model_validate(RowsConfig(kind="doc_sentences").plain()).pair == "none"
    assert RowsConfig(kind="permuted_segments").pair == "permuted"
    with pytest.raises(ValidationError, match=r"rows\.pair=none"):
        RowsConfig(kind="full_sentences", pair="next")
    with pytest.raises(ValidationError, match=r"rows\.pair=permuted"):
        RowsConfig(kind="permuted_segments", pair="order")
    with pytest.raises(ValidationError, match=r"rows\.kind=permuted_segments"):
        RowsConfig(kind="sentence_pair", pair="permuted")
