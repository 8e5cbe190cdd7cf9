"""What every corruption promises: over all units, laws, sources, draws and replacements, and over every recipe."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields
from functools import lru_cache
from itertools import product
from random import Random

import numpy as np
import pytest
from made_rows import FACTS, MadeSimilar, made_rows, some_of
from pydantic import ValidationError
from slow_corruption import slots_of, units_of, words_of

from maskery.corruption.config import LAWS, SOURCES, UNITS, CorruptionConfig
from maskery.corruption.corrupt import corrupt
from maskery.edit import Edit
from maskery.randomness import keys, uniform
from maskery.recipes.recipe import names, recipe

MANY = 12
ROWS = [made_rows(seed, MANY) for seed in range(2)]
NUMBERS = {"weights": {"weights": [0.4, 0.3, 0.2, 0.1]}}
"""For laws that have no default of their own."""
SHARES = {
    "bert": {"mask": 0.8, "random": 0.1, "keep": 0.1},
    "electra": {"mask": 0.85, "random": 0, "keep": 0.15},
    "random": {"mask": 0, "random": 1, "keep": 0},
    "similar": {"mask": 0, "random": 0.1, "keep": 0.1, "similar": 0.8},
    "delete": {"mask": 0.5, "random": 0, "keep": 0, "delete": 0.5},
    "infill": {"mask": 0, "random": 0, "keep": 0, "infill": 1},
}
CHANGED = (Edit.MASK, Edit.RANDOM, Edit.KEEP, Edit.SIMILAR, Edit.UNMATCHED, Edit.INFILLED)


@lru_cache
def accepted(unit, law):
    """Every corruption of a unit and a law that a recipe may name, at three rates."""
    found = []
    for source, decide, shares, of in product(SOURCES.names(), ("token", "word", "span"), SHARES, ("tokens", "words")):
        rate = (0.15, 0.5, 0.03)[len(found) % 3]
        try:
            config = CorruptionConfig(
                unit=unit, decide=decide, random_from=source, of=of, rate=rate, replace=SHARES[shares],
                span={"law": law, **NUMBERS.get(law, {})},
            )  # fmt: skip
        except ValidationError:
            continue
        found.append(config)
    return found


@lru_cache
def of_recipes():
    return {f"{name} at {done}": recipe(name).corruption.at(done) for name in names() for done in (0.0, 0.5, 1.0)}


def corrupted(rows, config, seed=0):
    """The rows under keys of their own numbers."""
    similar = MadeSimilar() if config.replace.similar else None
    return corrupt(rows, config, keys(seed, "mask", rows.number), FACTS, similar)


def moves(config):
    return config.order.sentences or config.order.rotate > 0


def resizes(config):
    return config.replace.infill > 0 or config.replace.delete > 0


def assert_only_text_changes(rows, out, config):
    """Specials stay, answers are the ids before, and every code says the truth about its slot."""
    assert np.array_equal(out.ids[out.special], rows.ids[rows.special]), "[CLS] and [SEP] are never chosen"
    assert not out.edit[out.special].any()
    if not moves(config) and not resizes(config):
        assert np.array_equal(out.original, rows.original), "targets are the ids before"
        assert np.array_equal(out.special, rows.special)
    assert (out.length <= rows.length).all(), "no row becomes longer"
    same = np.isin(out.edit, (Edit.NONE, Edit.KEEP))
    assert np.array_equal(out.ids[same], out.original[same])
    assert (out.ids[np.isin(out.edit, (Edit.MASK, Edit.INFILLED, Edit.NGRAM))] == FACTS.specials.mask).all()
    least = 0 if config.random_from == "vocabulary" else 5
    drawn = out.ids[out.edit == Edit.RANDOM]
    assert ((drawn >= least) & (drawn < FACTS.vocabulary)).all()
    shuffled = out.edit == Edit.SHUFFLED
    for b in range(len(out)):
        mine = shuffled & (out.row == b)
        assert sorted(out.ids[mine].tolist()) == sorted(out.original[mine].tolist())


def assert_budget_and_units(rows, out, config):
    """The row's budget is spent as far as whole units allow, and no unit is chosen in part."""
    chance = uniform(keys(0, "mask", rows.number), "budget")
    for b in range(len(out)):
        slots = slots_of(out, b)
        units = units_of(slots, config.unit)
        hit = [{slots[place].edit in CHANGED for place in unit} for unit in units]
        assert all(len(kinds) == 1 for kinds in hit), "a unit is chosen whole or not at all"
        cost = [len(unit) if config.of == "tokens" else words_of(slots, unit) for unit in units]
        spent = sum(price for price, kinds in zip(cost, hit, strict=True) if True in kinds)
        most = max(np.floor(config.rate * sum(cost) + chance[b]), min(1, sum(cost))) if config.rate else 0
        if config.span.law != "fragment":
            assert spent <= most, "no row exceeds its budget"
            rest = [price for price, kinds in zip(cost, hit, strict=True) if True not in kinds]
            assert most - spent < min(rest, default=np.inf), "nothing is left that would fit"


def assert_promises(config, which=None):
    for rows in ROWS if which is None else [ROWS[which % len(ROWS)]]:
        before = {item.name: deepcopy(getattr(rows, item.name)) for item in fields(rows)}
        out = corrupted(rows, config)
        for name, values in before.items():
            assert np.array_equal(getattr(rows, name), values), f"the given {name} is not touched"
        assert_only_text_changes(rows, out, config)
        if not resizes(config) and config.ngram.longest == 0:
            assert_budget_and_units(rows, out, config)
        assert_rows_are_on_their_own(rows, out, config)


def assert_rows_are_on_their_own(rows, out, config):
    """Any part of the rows, in any order, becomes what it becomes among all."""
    numbers = np.random.default_rng(int(rows.ids.sum())).permutation(len(rows))[: MANY // 2].tolist()
    part, expected = corrupted(some_of(rows, numbers), config), some_of(out, numbers)
    for name in ("ids", "original", "edit", "flags", "start", "segment", "document"):
        assert np.array_equal(getattr(part, name), getattr(expected, name)), name


def half(unit, law):
    """Of them a half, the same in every run; in each unit and law others."""
    configs = accepted(unit, law)
    return Random(f"{unit} {law}").sample(configs, (len(configs) + 1) // 2)


@pytest.mark.parametrize("law", LAWS.names())
@pytest.mark.parametrize("unit", UNITS.names())
def test_many_combinations_keep_the_promises(unit, law):
    configs = half(unit, law)
    assert configs
    for number, config in enumerate(configs):
        assert_promises(config, number)


@pytest.mark.grid
@pytest.mark.parametrize("law", LAWS.names())
@pytest.mark.parametrize("unit", UNITS.names())
def test_every_combination_keeps_the_promises(unit, law):
    for number, config in enumerate(accepted(unit, law)):
        assert_promises(config, number)


@pytest.mark.parametrize("law", LAWS.names())
@pytest.mark.parametrize("unit", UNITS.names())
def test_another_key_is_another_corruption_and_the_same_the_same(unit, law):
    rows = made_rows(5, 50, tokens=(30, 40))
    config = accepted(unit, law)[0]
    one, two, again = (corrupted(rows, config, seed) for seed in (0, 1, 0))
    assert np.array_equal(one.ids, again.ids)
    assert np.array_equal(one.edit, again.edit)
    differ = [
        one.edit[slice(*one.start[b : b + 2])].tolist() != two.edit[slice(*two.start[b : b + 2])].tolist()
        for b in range(50)
    ]
    assert sum(differ) > 40


def test_all_pieces_are_met():
    configs = [config for unit, law in product(UNITS.names(), LAWS.names()) for config in half(unit, law)]
    assert {config.random_from for config in configs} == set(SOURCES.names())
    assert {config.decide for config in configs} == {"token", "word", "span"}
    shares = {name for config in configs for name, share in config.replace.plain().items() if share}
    assert shares == {"mask", "random", "keep", "similar", "infill", "delete"}


@pytest.mark.parametrize("name", of_recipes())
def test_every_recipe_keeps_the_promises(name):
    assert_promises(of_recipes()[name])


@pytest.mark.parametrize("unit", UNITS.names())
@pytest.mark.parametrize("order", [{"sentences": True}, {"rotate": 1.0}, {"sentences": True, "rotate": 0.5}], ids=str)
def test_moved_text_keeps_the_promises(unit, order):
    assert_promises(CorruptionConfig(unit=unit, order=order, shuffle={"rate": 0.1}, span={"law": "geometric"}))


@pytest.mark.parametrize("unit", UNITS.names())
def test_a_rate_of_nothing_changes_nothing(unit):
    for law in LAWS.names():
        config = accepted(unit, law)[-1].model_copy(update={"rate": 0.0})
        out = corrupted(ROWS[0], config)
        assert np.array_equal(out.ids, ROWS[0].ids)
        assert not out.edit.any()
