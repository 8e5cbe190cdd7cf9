"""Vectors in Python: columns are encoded as lists are; encoders are trained and evaluated on rows as on files."""

from __future__ import annotations

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pytest
from rows_of_tasks import FORMS, write_lines
from small_encoder import quiet, small_encoder

import maskery
from maskery.errors import MaskeryError
from maskery.tasks.settings import ColumnsConfig
from maskery.vectors.learn.read import read_texts, texts_given
from maskery.vectors.learn.run import train_encoder

TEXTS = ["the cat sat", "", "on the mat", "a b c"]
ROWS = {
    "simcse": [{"text": f"the cat {'x' * (1 + at)}"} for at in range(6)],
    "multiple_negatives": [{"anchor": f"cat {at}", "positive": f"the cat {at}"} for at in range(6)],
    "triplet": [{"anchor": f"cat {at}", "positive": f"the cat {at}", "negative": f"mat {at}"} for at in range(6)],
    "cosent": [{"sentence1": f"cat {at}", "sentence2": f"the {at}", "score": at / 2} for at in range(6)],
    "softmax": [
        {"premise": f"cat {at}", "hypothesis": f"the {at}", "label": "neutral" if at % 2 else "entailment"}
        for at in range(6)
    ],
}
JUDGED = {
    "sts": ROWS["cosent"],
    "pairs": [{"text_a": f"cat {at}", "text_b": f"the {at}", "label": at % 2} for at in range(6)],
    "retrieval": [{"query": f"cat {at}", "document": f"the {at}", "relevance": at % 3} for at in range(9)],
    "clustering": [{"text": f"cat {at} {at}", "label": "ab"[at % 2]} for at in range(8)],
    "geometry": [{"text": f"cat {at}"} for at in range(6)],
}


@pytest.fixture(scope="module")
def encoder():
    return maskery.Encoder(small_encoder(), say=quiet)


@pytest.mark.parametrize(
    "make",
    [
        lambda texts: pd.DataFrame({"text": texts})["text"],
        lambda texts: pd.Series(texts, dtype="string"),
        lambda texts: pl.Series(texts),
        lambda texts: datasets.Dataset.from_dict({"text": texts})["text"],
        lambda texts: datasets.Dataset.from_dict({"text": texts})[:]["text"],
        lambda texts: (text for text in texts),
        np.array,
    ],
    ids=["series", "strings", "polars", "column", "slice", "generator", "array"],
)
def test_columns_are_encoded_as_lists_are(encoder, make):
    assert np.array_equal(encoder.encode(make(TEXTS)), encoder.encode(TEXTS))


TABLES = {
    "frame": pd.DataFrame({"text": TEXTS}),
    "polars": pl.DataFrame({"text": TEXTS}),
    "dataset": datasets.Dataset.from_dict({"text": TEXTS}),
    "dicts": [{"text": text} for text in TEXTS],
}


@pytest.mark.parametrize("name", TABLES)
def test_of_a_table_the_column_of_texts_is_encoded(encoder, name):
    """Its members are columns, their names, or rows: none of them is taken for a text."""
    assert np.array_equal(encoder.encode(TABLES[name]), encoder.encode(TEXTS))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ROWS)
def test_rows_are_learned_from_as_lines_are(tmp_path, loss, form):
    expected = read_texts(write_lines(tmp_path / "train.jsonl", ROWS[loss]), loss)
    found = texts_given("train", FORMS[form](ROWS[loss]), loss, ColumnsConfig())
    assert (found.kind, found.fingerprint) == (expected.kind, expected.fingerprint)


def test_texts_alone_are_lines(tmp_path):
    texts = [row["text"] for row in ROWS["simcse"]]
    expected = read_texts(write_lines(tmp_path / "train.jsonl", ROWS["simcse"]), "simcse")
    for given in (texts, iter(texts), pd.Series(texts), np.array(texts)):
        assert texts_given("train", given, "simcse", ColumnsConfig()).fingerprint == expected.fingerprint


def test_an_encoder_is_trained_on_frames(tmp_path):
    settings = {"epochs": 1, "training": {"batch": 4}}
    made = [
        train_encoder(
            small_encoder(), loss="cosent", train=train, dev=dev, out=tmp_path / name, settings=settings, say=quiet
        )
        for name, train, dev in (
            ("rows", pd.DataFrame(ROWS["cosent"]), iter(ROWS["cosent"])),
            ("files", write_lines(tmp_path / "a.jsonl", ROWS["cosent"]), str(tmp_path / "a.jsonl")),
        )
    ]
    assert np.array_equal(made[0].encode(TEXTS), made[1].encode(TEXTS))


@pytest.mark.parametrize("kind", JUDGED)
def test_vectors_are_evaluated_on_rows(encoder, tmp_path, kind):
    rows = JUDGED[kind]
    expected = maskery.evaluate(encoder, str(write_lines(tmp_path / "data.jsonl", rows)), task=kind).metrics
    for data in (rows, pd.DataFrame(rows), datasets.Dataset.from_list(rows), iter(rows)):
        assert maskery.evaluate(encoder, data, task=kind).metrics == pytest.approx(expected, nan_ok=True)


WRONG = {
    "None": (lambda e: train(None), "train is None"),
    "a number": (lambda e: train(3), "train is 3 (int)"),
    "tuples": (lambda e: train([("a", "b")]), "train is of type list, and train[0] is of type tuple"),
    "empty": (lambda e: train([]), "train is empty"),
    "mixed": (lambda e: train([{"text": "a"}, 3]), "train[1] is 3 (int)"),
    "no texts": (lambda e: train([{"a": 1}, {"a": 2}]), "train: no column holds texts"),
    "a number in a text": (lambda e: train([{"text": "a"}, {"text": 2}]), "train[1]: '2' is no text"),
    "evaluate None": (lambda e: maskery.evaluate(e, None, task="sts"), "data is None"),
    "evaluate columns": (
        lambda e: maskery.evaluate(e, pd.DataFrame({"a": ["x"], "b": ["y"]}), task="sts"),
        "data: no column looks like a label",
    ),
}


def train(data):
    return train_encoder(
        small_encoder(), loss="simcse", train=data, out="nowhere", say=quiet,
        settings={"columns": {"text": ["text"]}} if data == [{"text": "a"}, {"text": 2}] else None,
    )  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_data_are_refused_with_their_place(encoder, name):
    call, words = WRONG[name]
    with pytest.raises(MaskeryError) as caught:
        call(encoder)
    assert words in caught.value.text()
    assert caught.value.repair
    assert "--" not in caught.value.text()
