"""Choosing single tokens, measured: how many, which places, what becomes of them, in which epochs."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from chance import share_is, surprise
from fake_store import FakeFacts, FakeSpecials, FakeStore, random_store

from maskery.corruption.choose import choose
from maskery.corruption.config import CorruptionConfig, ReplaceConfig
from maskery.corruption.corrupt import budget, corrupt
from maskery.corruption.replace import edits
from maskery.corruption.spans import Spans
from maskery.corruption.units import Units, token
from maskery.edit import Edit
from maskery.errors import RecipeError
from maskery.randomness import keys, permute
from maskery.recipes.recipe import recipe
from maskery.rows.config import RowsConfig
from maskery.rows.plan import plan_rows
from maskery.rows.ragged import gather


def equal_rows(many, tokens, vocabulary=30_000):
    """`many` rows of `tokens` tokens, and their keys."""
    store = FakeStore([[tokens]] * many, vocabulary=vocabulary)
    rows = gather(plan_rows(RowsConfig(kind="doc_sentences"), store, tokens + 2, 0), np.arange(many), store)
    return store, rows, keys(0, "mask", np.arange(many))


def chosen(rows):
    return rows.edit != Edit.NONE


def test_the_number_chosen_is_the_rate_rounded_at_random():
    store, rows, row_keys = equal_rows(20_000, 21)
    out = corrupt(rows, CorruptionConfig(rate=0.15), row_keys, store.facts)
    counts = np.bincount(out.row[chosen(out)], minlength=len(out))
    assert set(counts.tolist()) == {3, 4}
    assert share_is(int((counts == 4).sum()), len(out), 0.15)


@pytest.mark.parametrize(
    ("rate", "tokens", "expected"), [(0.15, 20, {3}), (0.01, 5, {1}), (0.999, 4, {3, 4}), (0.0, 9, {0})]
)
def test_the_budget_at_its_edges(rate, tokens, expected):
    store, rows, row_keys = equal_rows(2000, tokens)
    units = token(rows)
    assert set(budget(rows, units, units.length, rate, row_keys).tolist()) == expected
    out = corrupt(rows, CorruptionConfig(rate=rate), row_keys, store.facts)
    assert set(np.bincount(out.row[chosen(out)], minlength=len(out)).tolist()) == expected


def test_places_are_uniform_and_pairs_of_places_too():
    store, rows, row_keys = equal_rows(30_000, 10)
    out = corrupt(rows, CorruptionConfig(rate=0.2), row_keys, store.facts)
    places = out.slot[chosen(out)].reshape(-1, 2) - 1
    assert surprise(np.bincount(places.ravel(), minlength=10), 6000) < 4
    pairs = Counter(map(tuple, places.tolist()))
    assert len(pairs) == 45
    assert surprise(list(pairs.values()), 30_000 / 45) < 4


def test_shares_of_replacements():
    store, rows, row_keys = equal_rows(20_000, 20)
    out = corrupt(rows, CorruptionConfig(rate=0.15), row_keys, store.facts)
    counts = np.bincount(out.edit[chosen(out)], minlength=6)
    assert counts.sum() == 60_000
    assert surprise(counts[1:4], 60_000 * np.array([0.8, 0.1, 0.1])) < 4
    assert counts[4:].sum() == 0


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ((1.0, 0.0, 0.0), {Edit.MASK}),
        ((0.0, 1.0, 0.0), {Edit.RANDOM}),
        ((0.0, 0.0, 1.0), {Edit.KEEP}),
        ((0.85, 0.0, 0.15), {Edit.MASK, Edit.KEEP}),
        ((0.7, 0.3000000001, 0.0), {Edit.MASK, Edit.RANDOM}),
    ],
)
def test_a_share_of_nothing_is_never_drawn(shares, expected):
    config = ReplaceConfig(mask=shares[0], random=shares[1], keep=shares[2])
    drawn = edits(config, keys(0, "mask", np.arange(50_000)), np.zeros(1, dtype=np.int64))
    assert set(drawn.tolist()) == expected


def test_what_is_chosen_says_nothing_about_what_becomes_of_it():
    store, rows, row_keys = equal_rows(30_000, 10)
    out = corrupt(
        rows, CorruptionConfig(rate=0.2, replace=ReplaceConfig(mask=0.5, random=0, keep=0.5)), row_keys, store.facts
    )
    table = np.zeros((10, 2))
    np.add.at(table, (out.slot[chosen(out)] - 1, (out.edit[chosen(out)] == Edit.MASK).astype(int)), 1)
    assert surprise(table, table.sum(1, keepdims=True) / 2) < 4
    both = (out.edit[chosen(out)] == Edit.MASK).reshape(-1, 2)
    assert surprise(np.bincount(both @ [2, 1], minlength=4), 7500) < 4


def test_random_ids_are_uniform_over_the_vocabulary_specials_included():
    store, rows, row_keys = equal_rows(20_000, 10, vocabulary=50)
    everything = ReplaceConfig(mask=0, random=1, keep=0)
    out = corrupt(rows, CorruptionConfig(rate=0.5, replace=everything), row_keys, store.facts)
    assert surprise(np.bincount(out.ids[chosen(out)], minlength=50), 2000) < 4
    own = (out.ids == out.original)[chosen(out)]
    assert share_is(int(own.sum()), len(own), 1 / 50)
    ordinary = CorruptionConfig(rate=0.5, replace=everything, random_from="ordinary")
    out = corrupt(rows, ordinary, row_keys, store.facts)
    counts = np.bincount(out.ids[chosen(out)], minlength=50)
    assert counts[:5].sum() == 0
    assert surprise(counts[5:], counts.sum() / 45) < 4
    corpus = CorruptionConfig(rate=0.5, replace=everything, random_from="corpus")
    counts = np.bincount(corrupt(rows, corpus, row_keys, store.facts).ids[chosen(out)], minlength=50)
    assert counts[:5].sum() == 0
    assert surprise(counts[5:], counts.sum() * np.arange(5, 50) / np.arange(5, 50).sum()) < 4


def test_unknown_tokens_take_part_like_any_other():
    store, rows, row_keys = equal_rows(10_000, 10)
    middle = rows.slot == 5
    rows.ids[middle] = rows.original[middle] = store.specials.unk
    out = corrupt(rows, CorruptionConfig(rate=0.2), row_keys, store.facts)
    assert share_is(int(chosen(out)[middle].sum()), 10_000, 0.2)


@pytest.mark.parametrize("when", ["static", "dynamic"])
def test_static_copies_and_dynamic_corruption_over_forty_epochs(when):
    """Ten copies, four epochs of the plan: a static text shows ten corruptions four times each, a dynamic one forty."""
    store = FakeStore([[60]] * 6)
    plan = plan_rows(RowsConfig(kind="doc_sentences", copies=10 if when == "static" else 1), store, 62, 0)
    config = CorruptionConfig(when=when)
    seen = {}
    for epoch in range(4 if when == "static" else 40):
        numbers = permute(epoch, np.arange(len(plan)), len(plan))
        counters = (numbers,) if when == "static" else (np.int64(epoch), numbers)
        rows = corrupt(gather(plan, numbers, store), config, keys(0, "mask", *counters), store.facts)
        for b in range(len(rows)):
            span = slice(rows.start[b], rows.start[b + 1])
            seen.setdefault(tuple(rows.original[span].tolist()), []).append(rows.ids[span].tobytes())
    assert len(seen) == 6
    for shown in seen.values():
        assert sorted(Counter(shown).values()) == ([4] * 10 if when == "static" else [1] * 40)


def test_spans_of_several_units_stay_within_the_budget():
    """Two rows, units of one to three slots, spans of one to two units: what does not fit is cut or left out."""
    units = Units(start=np.array([1, 2, 4, 9, 10]), length=np.array([1, 2, 3, 1, 3]), row=np.array([0, 0, 0, 1, 1]))
    count = np.array([1, 1, 1, 2, 1])
    spans = Spans(first=np.array([1, 0, 2, 3, 4]), count=count, drawn=count, row=np.array([0, 0, 0, 1, 1]))
    taken = choose(units, spans, units.length, np.array([4, 4]))
    assert taken.slot.tolist() == [2, 3, 1, 9, 10, 11, 12]
    assert taken.unit.tolist() == [1, 1, 0, 3, 4, 4, 4]
    assert taken.span.tolist() == [0, 0, 1, 3, 3, 3, 3]
    assert choose(units, spans, units.length, np.array([1, 3])).slot.tolist() == [1, 9]
    assert choose(units, spans, units.length, np.array([0, 3]), whole=True).slot.tolist() == [10, 11, 12]
    by_words = choose(units, spans, np.ones(5, dtype=np.int64), np.array([1, 2]))
    assert by_words.slot.tolist() == [2, 3, 9, 10, 11, 12]


def test_no_rows_and_a_tokenizer_without_mask():
    store = random_store(0, 5)
    plan = plan_rows(RowsConfig(), store, 32, 0)
    empty = corrupt(gather(plan, [], store), CorruptionConfig(), keys(0, "mask", np.arange(0)), store.facts)
    assert len(empty.ids) == 0
    facts = FakeFacts(100, replace(FakeSpecials(), mask=None))
    rows = gather(plan, [0, 1], store)
    with pytest.raises(RecipeError, match="no mask token"):
        corrupt(rows, CorruptionConfig(), keys(0, "mask", np.arange(2)), facts)
    only_keep = CorruptionConfig(replace=ReplaceConfig(mask=0, random=0, keep=1))
    assert np.array_equal(corrupt(rows, only_keep, keys(0, "mask", np.arange(2)), facts).ids, rows.ids)
    with pytest.raises(RecipeError, match="no ordinary token"):
        corrupt(rows, CorruptionConfig(random_from="ordinary"), keys(0, "mask", np.arange(2)), FakeFacts(5))


def test_bert_and_roberta_are_corrupted_as_ever():
    """The rows of both recipes, as they were when only single tokens could be chosen."""
    store = random_store(11, 60, tokens=(1, 30), vocabulary=500)
    expected = {"bert": "c825277f22cfe23c", "roberta": "2de0820ecf9025d9"}
    for name, digest in expected.items():
        asked = recipe(name)
        plan = plan_rows(asked.rows, store, 64, 0)
        numbers = np.arange(len(plan))
        out = corrupt(gather(plan, numbers, store), asked.corruption, keys(3, "mask", numbers), store.facts)
        data = out.ids.tobytes() + out.edit.tobytes() + out.original.tobytes()
        assert hashlib.sha256(data).hexdigest()[:16] == digest
