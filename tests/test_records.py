"""Rows of Python calls: whatever form they come in, they are the rows that JSON Lines would hold."""

from __future__ import annotations

import datetime
from decimal import Decimal

import datasets
import numpy as np
import pandas as pd
import pytest
from rows_of_tasks import FORMS, TASKS, rows_of

from maskery.errors import MaskeryError
from maskery.records import Records, is_table, records_of, records_or_items, text_columns

ROWS = [{"text": "a", "label": 1}, {"text": "b", "label": 0}]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("task", TASKS)
def test_every_form_gives_the_same_rows(task, form):
    rows = rows_of(task, 6)
    assert list(records_of("train", FORMS[form](rows)).rows) == rows


def test_a_missing_cell_of_a_table_is_none():
    frame = pd.DataFrame(
        {
            "text": ["a", None, np.nan],
            "label": [1.0, np.nan, 0.0],
            "when": pd.to_datetime(["2020-01-02", None, None]),
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "kind": pd.Categorical(["x", None, "y"]),
        }
    )
    assert list(records_of("train", frame).rows) == [
        {"text": "a", "label": 1.0, "when": "2020-01-02T00:00:00", "whole": 1, "kind": "x"},
        {"text": None, "label": None, "when": None, "whole": None, "kind": None},
        {"text": None, "label": 0.0, "when": None, "whole": 3, "kind": "y"},
    ]


def test_values_become_those_of_json():
    row = {
        "array": np.array([[1, 2]]),
        "number": np.float32(0.5),
        "flag": np.bool_(True),
        "text": np.str_("a"),
        "tuple": ("a", ("b",)),
        "set": {"b", "a"},
        "money": Decimal("1.5"),
        "day": datetime.date(2020, 1, 2),
        "missing": pd.NA,
        "never": pd.NaT,
        "inside": {"k": np.int64(3)},
    }
    (found,) = records_of("train", [row]).rows
    assert found == {
        "array": [[1, 2]], "number": 0.5, "flag": True, "text": "a", "tuple": ["a", ["b"]], "set": ["a", "b"],
        "money": 1.5, "day": "2020-01-02", "missing": None, "never": None, "inside": {"k": 3},
    }  # fmt: skip
    assert type(found["text"]) is str
    assert type(found["number"]) is float


def test_numbers_of_classes_are_named():
    names = datasets.ClassLabel(names=["neg", "pos"])
    given = datasets.Dataset.from_dict(
        {"label": [1, 0, -1], "tags": [[0], [1, 0], []], "deep": [{"k": [1]}, {"k": [0]}, {"k": []}]},
        features=datasets.Features({"label": names, "tags": datasets.List(names), "deep": {"k": datasets.List(names)}}),
    )
    for each in (given, given.to_iterable_dataset(), given.with_format("torch")):
        found = records_of("train", each)
        assert found.rows[0] == {"label": "pos", "tags": ["neg"], "deep": {"k": ["pos"]}}
        assert [row["label"] for row in found.rows] == ["pos", "neg", None], "-1 is no class"
        assert found.classes == {"label": ("neg", "pos"), "tags": ("neg", "pos")}


def test_a_large_frame_keeps_its_order():
    frame = pd.DataFrame({"text": [f"t{number}" for number in range(2500)]}, index=range(2500, 0, -1))
    assert [row["text"] for row in records_of("train", frame).rows] == list(frame["text"])


def test_items_are_no_records():
    assert records_or_items("texts", iter(["a", "b"]), "texts") == ["a", "b"]
    assert isinstance(records_or_items("texts", iter(ROWS), "texts"), Records)
    assert records_or_items("texts", pd.Series(["a", "b"]), "texts") == ["a", "b"]
    assert not is_table(pd.Series(["a"]))
    assert not is_table(datasets.Dataset.from_list(ROWS)["text"])


def test_columns_of_texts():
    assert text_columns([{"a": "x", "b": 1, "c": None, "d": None}, {"a": None, "b": "y", "c": None}, {"d": "z"}]) == [
        "a",
        "d",
    ]


WRONG = {
    "tuples": ([("a", "x")], "train is of type list, and train[0] is of type tuple"),
    "texts": (["a text"], "train[0] is 'a text' (str)"),
    "mixed": ([{"text": "a"}, "b"], "train[1] is 'b' (str)"),
    "mixed with None": ([{"text": "a"}, None], "train[1] is None"),
    "empty list": ([], "train is empty"),
    "empty frame": (pd.DataFrame({"text": []}), "train is empty"),
    "empty generator": (iter([]), "train is empty"),
    "numbers for names": (pd.DataFrame([("a", "x")]), "train has a column that is called 0 (int)"),
    "a number for a key": ([{0: "a"}], "train[0] has a column that is called 0 (int)"),
    "names twice": (pd.DataFrame([("a", "b")], columns=["text", "text"]), "the column 'text' more than once"),
    "an array": (np.zeros((2, 2)), "train is of type ndarray"),
    "a dict": ({"text": ["a"]}, "train is of type dict"),
    "a set": ({"a"}, "train is of type set"),
    "None": (None, "train is None"),
    "a number": (3, "train is 3 (int)"),
    "an object": ([{"text": object()}], "train[0]['text'] is of type object"),
    "an object inside": ([{"text": "a", "more": [1, object()]}], "train[0]['more'][1] is of type object"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_rows_is_refused_with_its_place(name):
    given, words = WRONG[name]
    with pytest.raises(MaskeryError) as caught:
        records_of("train", given)
    assert words in caught.value.text()
    assert caught.value.repair


def test_a_class_out_of_range_is_refused():
    class Broken:
        """A dataset whose numbers do not fit its classes."""

        column_names = ("label",)
        features = {"label": datasets.ClassLabel(names=["neg", "pos"])}  # noqa: RUF012

        def __iter__(self):
            return iter([{"label": 1}, {"label": 7}])

    with pytest.raises(MaskeryError, match=r"train\[1\]\['label'\] is 7, and its classes are 0 to 1"):
        records_of("train", Broken())
