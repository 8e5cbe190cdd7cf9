"""Small labelled rows of every task, in the form that JSON Lines have them."""

from __future__ import annotations

import json

import datasets
import pandas as pd
import polars as pl
import pyarrow as pa

_WORDS = ["the cat sat", "on the mat", "x is here", "y is there"]


def _text(number):
    return f"{_WORDS[number % 4]} {'x' if number % 2 else 'y'}"


def _context(number):
    return f"the cat {'x' if number % 2 else 'y'} sat on mat {number}"


def rows_of(task, many=24):
    make = {
        "classify": lambda n: {"text": _text(n), "label": "odd" if n % 2 else "even"},
        "pair": lambda n: {"premise": _text(n), "hypothesis": _text(n + 1), "label": "same" if n % 3 else "other"},
        "regress": lambda n: {"text": _text(n), "score": n % 4 / 2},
        "multilabel": lambda n: {"text": _text(n), "labels": [["x"], ["y"], ["x", "y"], []][n % 4]},
        "tag": lambda n: {"tokens": _text(n).split(), "ner_tags": ["O", "B-ONE", "I-ONE", "B-TWO" if n % 2 else "O"]},
        "qa": lambda n: {
            "id": f"q{n}",
            "context": _context(n),
            "question": "where ?",
            "answers": {"text": ["cat"], "answer_start": [4]},
        },
        "choice": lambda n: {
            "context": _context(n), "question": "who ?", "choices": ["x", "y", "z"], "answer": "xyz"[n % 3]
        },
        "rank": lambda n: {"query": f"q {n // 3}", "text": _text(n), "relevance": float(n % 3 == 0)},
        "seq2seq": lambda n: {"source": _text(n), "target": _text(n)[::-1]},
    }[task]  # fmt: skip
    return [make(number) for number in range(many)]


TASKS = ("classify", "pair", "regress", "multilabel", "tag", "qa", "choice", "rank", "seq2seq")
FORMS = {
    "dicts": lambda rows: rows,
    "tuple of dicts": tuple,
    "generator": lambda rows: (row for row in rows),
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.Table.from_pylist,
    "dataset": datasets.Dataset.from_list,
    "dataset with numpy's values": lambda rows: datasets.Dataset.from_list(rows).with_format("numpy"),
    "iterable dataset": lambda rows: datasets.Dataset.from_list(rows).to_iterable_dataset(),
}
"""How people have the same rows in Python."""


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path
