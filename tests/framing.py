"""Examples and tokens for tests of rows, made on the spot."""

from __future__ import annotations

import numpy as np

from maskery.tasks.examples import Example, Examples
from maskery.tasks.framing.tokens import Encoded, Tokens
from maskery.tasks.settings import TaskRowsConfig


def examples_of(*texts, task="classify", fields=None, choices=(), meta=(), columns=()):
    """Each text is a string, or a tuple of the fields."""
    rows = [text if isinstance(text, tuple) else (text,) for text in texts]
    fields = fields or tuple(f"text_{letter}" for letter in "abcdef"[: len(rows[0]) if rows else 1])
    items = [
        Example(
            guid=f"train-{n}",
            texts=row,
            choices=choices[n] if choices else (),
            meta=meta[n] if meta else (),
            file="train.tsv",
            line=n + 1,
        )
        for n, row in enumerate(rows)
    ]
    return Examples(task=task, fields=fields, items=tuple(items), meta=columns)


def counted(*lengths, task="classify", choices=()):
    """Examples whose texts have the given numbers of tokens: token n of text t is 1000 (t+1) + n, one character."""
    rows = [length if isinstance(length, tuple) else (length,) for length in lengths]
    flat = [number for row in rows for number in row] + [number for row in choices for number in row]
    ids = [1000 * (text + 1) + n for text, number in enumerate(flat) for n in range(number)]
    starts = np.array([n for number in flat for n in range(number)], dtype=np.int32)
    tokens = Tokens(
        ids=np.array(ids, dtype=np.int32), start=starts, stop=starts + 1, first=np.concatenate(([0], np.cumsum(flat)))
    )
    fields = tuple(f"text_{letter}" for letter in "abcdef"[: len(rows[0])])
    number = np.array([len(row) for row in choices] if choices else [0] * len(rows), dtype=np.int64)
    return Encoded(task=task, fields=fields, tokens=tokens, text=np.arange(len(flat)), choices=number, unknown=0)


def rows_config(**changes):
    return TaskRowsConfig(**changes)


def plain(rows):
    return [row.ids.tolist() for row in rows]
