"""Lengths told and chosen before training, and columns beside the text as numbers."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from framing import counted, examples_of, rows_config
from hypothesis import given, settings
from hypothesis import strategies as st
from vocabularies import mixed_tokenizer

from maskery.errors import InputError
from maskery.tasks.framing.frame import template
from maskery.tasks.framing.lengths import arrangements, choose_length, length_report, row_length
from maskery.tasks.framing.make import make_rows
from maskery.tasks.framing.meta import Meta

FRAME = template(mixed_tokenizer())


def test_the_report_tells_every_arrangement():
    encoded = counted((10, 100), (20, 500), (30, 600), (40, 0), task="pair")
    lengths = arrangements(encoded, FRAME)
    assert {name: found.tolist() for name, found in lengths.items()} == {
        "text_a": [12, 22, 32, 42],
        "text_b": [102, 502, 602, 2],
        "text_a + text_b": [113, 523, 633, 43],
    }
    report = length_report(lengths)
    assert json.loads(json.dumps(report.facts)) == report.facts
    both = report.facts["text_a + text_b"]
    assert both["rows"] == 4
    assert both["mean"] == (113 + 523 + 633 + 43) / 4
    assert both["percentiles"] == {"50": 113, "90": 633, "95": 633, "99": 633, "100": 633}
    assert both["over"] == {"128": 0.5, "256": 0.5, "512": 0.5}
    assert report.facts["text_b"]["over"]["512"] == 0.25
    assert report.lines[0].split("  ")[0] == "slots"
    assert len({len(line) for line in report.lines}) == 1
    assert report.lines[3].split()[-3:] == ["50.0%"] * 3


def test_the_report_of_rows_and_of_nothing():
    rows, _ = make_rows(counted(3, 5), FRAME, rows_config(), 16)
    assert length_report(rows, limits=(6,)).facts["rows"]["over"] == {"6": 0.5}
    assert length_report([5, 7], limits=(6,)).facts == length_report(rows, limits=(6,)).facts
    assert length_report([]).lines[1].split() == ["rows", "0", *["-"] * 9]
    three = arrangements(counted((1, 2, 3)), FRAME)
    assert len(three) == 7
    assert three["text_a + text_c"].tolist() == [1 + 3 + 3]
    choices = arrangements(counted((1, 2), task="choice", choices=((1, 5),)), FRAME)
    assert {name: found.tolist() for name, found in choices.items()} == {"text_a + text_b + choice": [8, 12]}


@settings(max_examples=40)
@given(st.lists(st.integers(1, 700), min_size=1, max_size=300), st.integers(16, 600))
def test_a_chosen_length_is_enough_for_99_of_100(lengths, most):
    length, note = choose_length(lengths, most)
    assert length <= most
    assert f"rows of {length} slots" in note
    if length < most:
        assert length % 8 == 0
        assert sum(each <= length for each in lengths) >= 0.99 * len(lengths)
        assert sum(each <= length - 8 for each in lengths) < 0.99 * len(lengths), "no more than is needed"


def test_the_choice_is_told():
    assert choose_length([10] * 99 + [300], 512) == (
        16,
        "rows of 16 slots: 99 % of the rows have at most 10 slots; 1 of 100 rows is longer, the longest has 300",
    )
    assert choose_length([600] * 3, 510) == (
        510,
        "rows of 510 slots: the model reads no more; 3 of 3 rows are longer, the longest would have 600",
    )
    assert choose_length([8], 512).note.endswith("none is longer")
    with pytest.raises(InputError, match="no rows"):
        choose_length([], 512)


def test_the_length_asked_for_is_taken_unless_the_model_cannot_read_it():
    assert row_length(64, [100], 512, 512) == (64, "rows of 64 slots, as asked for")
    assert row_length(0, [100], None, 32).length == 32
    assert row_length(0, [100], 512, 32).length == 104
    assert row_length(4000, [100], None, 32).length == 4000
    with pytest.raises(InputError, match=r"rows\.length: rows of 600 slots, and the model reads 512 at most"):
        row_length(600, [100], 512, 512)


def told(*values, columns=("source", "stars")):
    return examples_of(*["x"] * len(values), meta=values, columns=columns)


def test_columns_are_learnt_from_training_and_saved_as_plain_facts():
    train = told(("web", 1.0), ("book", 3.0), ("web", 5.0))
    meta = Meta.fit(train)
    assert meta.quantities == 1
    assert meta.sizes == (3,), "two categories and one for what is unknown"
    facts = json.loads(json.dumps(meta.plain()))
    again = Meta.model_validate(facts)
    assert again == meta
    arrays = again.arrays(train)
    assert arrays.categories.tolist() == [[2], [1], [2]]
    assert arrays.notes == ()
    expected = (np.array([1, 3, 5]) - 3) / np.std([1, 3, 5])
    assert np.allclose(arrays.quantities[:, 0], expected)
    assert arrays.quantities.dtype == np.float32
    assert abs(arrays.quantities.mean()) < 1e-6


def test_what_training_has_not_seen_is_told():
    meta = Meta.fit(told(("web", 1.0), ("book", 3.0)))
    arrays = meta.arrays(told(("radio", math.nan), ("tv", ""), ("", 3.0), ("book", 2.0)))
    assert arrays.categories[:, 0].tolist() == [0, 0, 0, 1]
    assert arrays.quantities[:, 0].tolist() == [0, 0, 1, 0]
    assert arrays.notes == (
        "source: 3 rows have a category that training has not seen (radio, tv)",
        "stars: 2 rows have no number and get the mean, 2",
    )
    assert meta.arrays(told(("", 1.0))).notes == ("source: 1 rows have no value and count as unknown",)


def test_kinds_of_columns():
    meta = Meta.fit(told(("", 2.0), (3.0, 2.0), ("x", 2.0)))
    assert meta.columns[0].categories == ("3", "x"), "numbers among words are names"
    assert meta.columns[1].deviation == 1.0, "a column of one number stays zero"
    assert meta.arrays(told((3.0, 2.0))).categories.tolist() == [[1]]
    assert Meta.fit(told(("", ""), columns=("a", "b"))).sizes == (1, 1)
    none = Meta.fit(examples_of("x"))
    assert none.arrays(examples_of("x", "y")).categories.shape == (2, 0)


def test_ten_categories_have_an_embedding_of_ten_rows():
    """Nine and the unknown."""
    assert Meta.fit(told(*((f"c{n}",) for n in range(9)), columns=("kind",))).sizes == (10,)


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        (told(("web", "many")), r"train\.tsv:1: stars is 'many', and it was a number in training"),
        (told(("web", 1.0), ("web",)), r"train\.tsv:2: has 1 values beside the text, not 2"),
        (told(("web",), columns=("source",)), r"columns beside the text: source; in training: source, stars"),
    ],
    ids=["word", "ragged", "columns"],
)
def test_wrong_columns(examples, message):
    with pytest.raises(InputError, match=message):
        Meta.fit(told(("web", 1.0))).arrays(examples)
