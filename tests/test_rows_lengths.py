"""A label is not told by the lengths of the segments."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_store import random_store

from maskery.rows.config import RowsConfig
from maskery.rows.plan import plan_rows

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.pair_lengths import guessed, lines, rows_of

LEANING = ("segment_pair", "order")
"""The sentence that fills a chunk is longer than others, so the second half leans to be the longer one."""


@pytest.mark.parametrize("kind", ["segment_pair", "sentence_pair"])
@pytest.mark.parametrize(("pair", "classes"), [("order", 2), ("three", 3), ("distance", 3)])
def test_lengths_say_little_about_the_label(kind, pair, classes):
    """The best guess from the lengths of both segments, on rows it has not seen."""
    store = random_store(1, 1500, (2, 40), (3, 40))
    plan = plan_rows(RowsConfig(kind=kind, pair=pair, copies=2), store, 64, 0)
    asked = rows_of(plan, 2, 20_000, 0)
    assert len(asked) > 10_000
    right, commonest = guessed(plan, asked)
    assert commonest < 1 / classes + 0.02
    assert right < 1 / classes + (0.07 if (kind, pair) == LEANING else 0.04)


def test_lengths_that_do_tell_are_found_out():
    plan = plan_rows(RowsConfig(pair="order", copies=2), random_store(1, 500, (2, 40), (3, 40)), 64, 0)
    rows = rows_of(plan, 2, 20_000, 0)
    size = plan.piece_end - plan.piece_start
    longer = (size[plan.row_start[:-1]] > size[np.minimum(plan.row_start[:-1] + 1, len(size) - 1)]).astype(np.int8)
    assert guessed(replace(plan, label=longer), rows)[0] > 0.9


def test_the_table_has_every_question():
    told = lines(random_store(3, 300, (2, 20), (3, 20)), 40, 500, [0])
    assert len(told) == 2 + 8 + 2
    assert all(line.count("|") == 6 for line in told)
