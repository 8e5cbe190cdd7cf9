"""The estimators take texts and values as pandas, polars and datasets hold them, and answer as for lists."""

from __future__ import annotations

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pytest
from networks import model_of

import maskery
from maskery.errors import MaskeryError

TEXTS = ["the cat sat", "a b c", "the mat", "d e f g"] * 4
SECOND = [*TEXTS[1:], TEXTS[0]]
NAMES = ["cat", "abc"] * 8
SCORES = [1.5, -0.5] * 8
QUICK = {"epochs": 1, "lr": 1e-2, "batch": 8}
FRAME = pd.DataFrame({"first": TEXTS, "second": SECOND, "name": NAMES, "score": SCORES})
NUMBERED = datasets.Dataset.from_pandas(FRAME).cast_column("name", datasets.ClassLabel(names=["abc", "cat"]))
COLUMNS = {
    "series": lambda name: FRAME[name],
    "series of strings": lambda name: FRAME[name].astype("string") if name == "first" else FRAME[name],
    "array": lambda name: FRAME[name].to_numpy(),
    "polars": lambda name: pl.from_pandas(FRAME)[name],
    "column": lambda name: datasets.Dataset.from_pandas(FRAME)[name],
    "list": lambda name: list(FRAME[name]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("estimator") / "model"
    model_of(pooler=True).save(path)
    return path


@pytest.mark.parametrize("form", COLUMNS)
def test_columns_are_texts_and_values(folder, form):
    column = COLUMNS[form]
    plain = maskery.Classifier(folder, **QUICK).fit(TEXTS, NAMES)
    found = maskery.Classifier(folder, **QUICK).fit(column("first"), column("name"))
    assert np.array_equal(found.predict_proba(column("first")), plain.predict_proba(TEXTS))
    assert found.classes_.tolist() == ["abc", "cat"]
    numbers = maskery.Regressor(folder, **QUICK).fit(TEXTS, SCORES).predict(TEXTS)
    own = maskery.Regressor(folder, **QUICK).fit(column("first"), column("score"))
    assert np.array_equal(own.predict(column("first")), numbers)


@pytest.mark.parametrize(
    "table",
    [
        FRAME[["first", "second"]],
        pl.from_pandas(FRAME[["first", "second"]]),
        datasets.Dataset.from_pandas(FRAME).select_columns(["first", "second"]),
    ],
    ids=["pandas", "polars", "dataset"],
)
def test_a_table_of_two_columns_is_pairs(folder, table):
    plain = maskery.Classifier(folder, **QUICK).fit(list(zip(TEXTS, SECOND, strict=True)), NAMES)
    found = maskery.Classifier(folder, **QUICK).fit(table, NAMES)
    assert found.feature_names_in_.tolist() == ["first", "second"]
    assert np.array_equal(found.predict_proba(table), plain.predict_proba(list(zip(TEXTS, SECOND, strict=True))))


def test_numbers_of_classes_stay_numbers(folder):
    """A column alone does not know its names: `predict` answers what `fit` was given."""
    found = maskery.Classifier(folder, **QUICK).fit(NUMBERED["first"], NUMBERED["name"])
    assert found.classes_.tolist() == [0, 1]


def test_a_missing_text_is_refused_with_its_place(folder):
    with pytest.raises(MaskeryError, match=r"X\[1\]: NaN|X\[1\]: None|X\[1\]: nan"):
        maskery.Classifier(folder, **QUICK).fit(pd.Series(["a", None, "b"]), ["x", "y", "x"])
    with pytest.raises(MaskeryError, match=r"X\[0\]: 1.5 \(float\) is no text"):
        maskery.Classifier(folder, **QUICK).fit(FRAME[["first", "score"]], NAMES)
