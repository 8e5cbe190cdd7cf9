"""Corruption of whole arrays equals corruption of one token after the other, draw for draw."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_rows import FACTS, MadeSimilar, made_rows
from slow_corruption import slow

from maskery.corruption.config import SOURCES, UNITS, CorruptionConfig
from maskery.corruption.corrupt import corrupt
from maskery.randomness import keys

SPANS = (
    {"law": "single"},
    {"law": "weights", "weights": [0.4, 0.3, 0.2, 0.1]},
    {"law": "weights", "weights": [0, 0, 1]},
    {"law": "geometric"},
    {"law": "geometric", "p": 0.5, "longest": 3},
    {"law": "fragment"},
    {"law": "fragment", "ends": 0.3},
)
POISSON = ({"law": "poisson", "mean": 3.0}, {"law": "poisson", "mean": 0.7})
"""The second has so many spans of no unit that all their cases occur."""
SHARES = (
    {"mask": 0.8, "random": 0.1, "keep": 0.1},
    {"mask": 0.85, "random": 0, "keep": 0.15},
    {"mask": 0.2, "random": 0.7, "keep": 0.1},
    {"mask": 0.5, "random": 0.1, "keep": 0, "delete": 0.4},
)
INFILL = {"mask": 0, "random": 0, "keep": 0, "infill": 1}
SIMILAR = {"mask": 0, "random": 0.1, "keep": 0.1, "similar": 0.8}


@st.composite
def corruptions(draw):
    unit = draw(st.sampled_from(UNITS.names()))
    shares, decide = draw(st.sampled_from(SHARES)), draw(st.sampled_from(("token", "word", "span")))
    span = draw(st.sampled_from(SPANS))
    if draw(st.booleans()) and decide == "span":
        shares, span = INFILL, draw(st.sampled_from((*SPANS, *POISSON, *POISSON)))
    elif draw(st.booleans()) and unit != "token" and decide != "token":
        shares = SIMILAR
    return CorruptionConfig(
        rate=draw(st.sampled_from((0, 0.01, 0.15, 0.3, 0.5, 0.9))),
        of=draw(st.sampled_from(("tokens", "words"))) if unit != "token" else "tokens",
        unit=unit,
        decide=decide,
        random_from=draw(st.sampled_from(SOURCES.names())),
        span=span,
        replace=shares,
        shuffle={"rate": draw(st.sampled_from((0, 0, 0.05, 0.4, 1))), "size": draw(st.integers(2, 4))},
        order={"sentences": draw(st.booleans()), "rotate": draw(st.sampled_from((0, 0.5, 1)))},
    )


def assert_equal(config, seed, many, **options):
    rows, row_keys = made_rows(seed, many, **options), keys(seed, "mask", np.arange(many))
    similar = MadeSimilar() if config.replace.similar else None
    fast = corrupt(rows, config, row_keys, FACTS, similar)
    for b, row in enumerate(slow(rows, config, row_keys, FACTS, similar)):
        span = slice(fast.start[b], fast.start[b + 1])
        assert fast.ids[span].tolist() == [slot.id for slot in row]
        assert fast.edit[span].tolist() == [slot.edit for slot in row]
        assert fast.original[span].tolist() == [slot.original for slot in row]
        assert fast.special[span].tolist() == [slot.special for slot in row]


@given(corruptions(), st.integers(0, 10**6), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_arrays_do_what_a_loop_does(config, seed, many):
    assert_equal(config, seed, many)


@pytest.mark.parametrize("unit", UNITS.names())
@pytest.mark.parametrize("span", [*SPANS, *POISSON], ids=lambda span: "-".join(map(str, span.values())))
def test_every_law_on_longer_rows(unit, span):
    shares = INFILL if span["law"] == "poisson" else SHARES[0]
    config = CorruptionConfig(unit=unit, rate=0.3, decide="span", span=span, replace=shares)
    assert_equal(config, 7, 3, tokens=(40, 60))
