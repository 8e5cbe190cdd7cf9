"""What every corruption promises, over all units, span laws and sources that are registered."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from fake_store import random_store
from hypothesis import given, settings
from hypothesis import strategies as st

from maskery.corruption.config import LAWS, SOURCES, UNITS, CorruptionConfig, SpanConfig
from maskery.corruption.corrupt import budget, corrupt
from maskery.edit import Edit
from maskery.randomness import keys
from maskery.rows.config import RowsConfig
from maskery.rows.plan import plan_rows
from maskery.rows.ragged import gather

STORE = random_store(11, 60, tokens=(1, 30), vocabulary=500)
PLANS = {
    kind: plan_rows(RowsConfig(kind=kind), STORE, 64, 0) for kind in ("segment_pair", "sentence_pair", "full_sentences")
}
every_corruption = pytest.mark.parametrize(
    ("unit", "law", "source"), [(u, law, s) for u in UNITS.names() for law in LAWS.names() for s in SOURCES.names()]
)
rates = st.floats(0, 0.99)


def config_of(unit, law, source, rate):
    return CorruptionConfig(unit=unit, span=SpanConfig(law=law), random_from=source, rate=rate)


@st.composite
def some_rows(draw):
    plan = PLANS[draw(st.sampled_from(sorted(PLANS)))]
    numbers = draw(st.lists(st.integers(0, len(plan) - 1), min_size=1, max_size=10))
    return plan, gather(plan, numbers, STORE), keys(draw(st.integers(0, 99)), "mask", np.array(numbers))


@every_corruption
@given(some_rows(), rates)
@settings(max_examples=50, deadline=None)
def test_targets_budget_and_specials(unit, law, source, given_rows, rate):
    _, rows, row_keys = given_rows
    before = {item.name: getattr(rows, item.name).copy() for item in fields(rows)}
    out = corrupt(rows, config_of(unit, law, source, rate), row_keys, STORE.facts)
    for name, values in before.items():
        assert np.array_equal(getattr(rows, name), values), f"the given {name} is not touched"
    assert np.array_equal(out.original, rows.original), "targets are the ids before"
    assert not out.special[out.edit != Edit.NONE].any(), "[CLS] and [SEP] are never chosen"
    as_it_was = np.isin(out.edit, (Edit.NONE, Edit.KEEP))
    assert np.array_equal(out.ids[as_it_was], out.original[as_it_was])
    assert (out.ids[out.edit == Edit.MASK] == STORE.specials.mask).all()
    drawn = out.ids[out.edit == Edit.RANDOM]
    assert ((drawn >= 0) & (drawn < STORE.vocabulary)).all()
    count = np.bincount(out.row[out.edit != Edit.NONE], minlength=len(out))
    assert (count <= budget(rows, rate, row_keys)).all()
    if unit == "token" and law == "single":
        assert np.array_equal(count, budget(rows, rate, row_keys))
    if rate == 0:
        assert not count.any()


@every_corruption
@given(some_rows(), rates, st.data())
@settings(max_examples=50, deadline=None)
def test_a_row_depends_on_itself_and_its_key_alone(unit, law, source, given_rows, rate, data):
    plan, rows, row_keys = given_rows
    config = config_of(unit, law, source, rate)
    out = corrupt(rows, config, row_keys, STORE.facts)
    b = data.draw(st.integers(0, len(rows) - 1))
    alone = corrupt(gather(plan, rows.number[b : b + 1], STORE), config, row_keys[b : b + 1], STORE.facts)
    span = slice(out.start[b], out.start[b + 1])
    assert np.array_equal(out.ids[span], alone.ids)
    assert np.array_equal(out.edit[span], alone.edit)


@every_corruption
def test_another_key_is_another_corruption_and_the_same_the_same(unit, law, source):
    rows = gather(PLANS["segment_pair"], np.arange(50), STORE)
    config = config_of(unit, law, source, 0.15)
    one, two = (corrupt(rows, config, keys(seed, "mask", np.arange(50)), STORE.facts) for seed in (0, 1))
    again = corrupt(rows, config, keys(0, "mask", np.arange(50)), STORE.facts)
    assert np.array_equal(one.ids, again.ids)
    assert np.array_equal(one.edit, again.edit)
    differ = [
        not np.array_equal(one.edit[slice(*one.start[b : b + 2])], two.edit[slice(*two.start[b : b + 2])])
        for b in range(50)
    ]
    assert sum(differ) > 40
