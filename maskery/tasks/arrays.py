"""What scikit-learn hands an estimator, as texts: lists, arrays, series and tables of strings, or of tuples of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from maskery import arguments
from maskery.errors import ArgumentError
from maskery.records import is_table, rows_of

Texts = list[tuple[str, ...]]
_REPAIR = 'give a list of texts, ["one", "another"], or of tuples of texts, [("a", "b"), ("c", "d")]'


def texts_of(given: Any) -> Texts:
    """The texts of each example, as many for each; anything that is no text is refused with its place."""
    rows = [_texts(row, number) for number, row in enumerate(_listed(given))]
    if not rows:
        raise ArgumentError("there is no text: X is empty", repair=_REPAIR)
    for number, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ArgumentError(
                f"{_many(len(row))}, and those before it have {len(rows[0])}", where=f"X[{number}]", repair=_REPAIR
            )
    return rows


def columns_of(given: Any) -> tuple[str, ...]:
    """The names of a table's columns; none where it is no table, or has numbers for names."""
    names = getattr(given, "columns", None)
    found = tuple(given.column_names if is_table(given) and names is None else () if names is None else names)
    return tuple(str(name) for name in found) if all(isinstance(name, str) for name in found) else ()


def _listed(given: Any) -> list[Any]:
    if hasattr(given, "tocsr"):
        raise ArgumentError("X is sparse, and sparse input is not supported: texts are read", repair=_REPAIR)
    if given is None or isinstance(given, str | bytes | Mapping | Set):
        raise ArgumentError(f"X is of type {type(given).__name__}, not a list of texts", repair=_REPAIR)
    if is_table(given) and not hasattr(given, "columns"):  # a dataset
        return [tuple(row.values()) for row in rows_of("X", given)]
    if hasattr(given, "to_numpy"):
        given = given.to_numpy()
    elif hasattr(given, "__array__"):
        given = np.asarray(given)
    if isinstance(given, np.ndarray):
        return _of_array(given)
    try:
        return list(given)
    except TypeError:
        raise ArgumentError(f"X is of type {type(given).__name__}, not a list of texts", repair=_REPAIR) from None


def _of_array(given: np.ndarray[Any, Any]) -> list[Any]:
    if given.ndim not in (1, 2):
        raise ArgumentError(f"X has {given.ndim} dimensions, not 1 or 2", repair=_REPAIR)
    if given.ndim == 2 and not given.shape[1]:
        cause = f"X has 0 feature(s) (shape={given.shape}) while a minimum of 1 is required."
        raise ArgumentError(cause, repair=_REPAIR)
    if given.dtype.kind == "c":
        raise ArgumentError("Complex data not supported: X holds numbers, and texts are read", repair=_REPAIR)
    listed: list[Any] = given.tolist()
    return listed


def _texts(row: Any, number: int) -> tuple[str, ...]:
    parts = tuple(row) if isinstance(row, list | tuple | np.ndarray) else (row,)
    for part in parts:
        if not isinstance(part, str):
            raise ArgumentError(f"{_shown(part)} is no text", where=f"X[{number}]", repair=_REPAIR)
    if not parts:
        raise ArgumentError("has no text", where=f"X[{number}]", repair=_REPAIR)
    return tuple(str(part) for part in parts)


def _shown(part: Any) -> str:
    """As it is written, with its type; what is missing in a table comes as the number NaN."""
    text = repr(part)
    plain = {"nan": "NaN", "inf": "inf (infinity)", "-inf": "-inf (infinity)"}.get(text, text)
    return f"{plain if len(plain) < 60 else plain[:57] + '...'} ({type(part).__name__})"


def _many(texts: int) -> str:
    return "has 1 text" if texts == 1 else f"has {texts} texts"


def named(columns: tuple[str, ...], many: int) -> tuple[str, ...]:
    """The names of an example's texts."""
    if columns or many == 1:
        return columns or ("text",)
    return ("text_a", "text_b") if many == 2 else tuple(f"text_{number}" for number in range(1, many + 1))


def folder_of(model: Any) -> str:
    if not isinstance(model, str | os.PathLike):
        raise ArgumentError(
            f"model is of type {type(model).__name__}, not a folder",
            repair=arguments.unsaved("model", model, "the path of a model or run folder")
            or 'Classifier("folder of a pretrained model")',
        )
    return os.fspath(model)
