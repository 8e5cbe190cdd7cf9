"""Columns beside the text as numbers: categories by their place in a list, quantities by distance from their mean.

Both are learnt from the training examples and kept as plain facts, so that a later example gets the same numbers. A
category that training has not seen is number 0, a quantity that is missing is the mean; both are counted and told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from maskery.config import Config
from maskery.errors import InputError
from maskery.tasks.examples import Example, Examples

UNKNOWN = 0
"""The number of categories that training has not seen."""


class MetaColumn(Config):
    name: str
    categories: tuple[str, ...] | None = None
    """In the order of their numbers, from 1; None: a quantity."""
    mean: float = 0.0
    deviation: float = Field(1.0, gt=0)

    @property
    def rows(self) -> int:
        """Vectors that an embedding of the column needs: one for each category and one for those unknown."""
        return 0 if self.categories is None else len(self.categories) + 1


class MetaArrays(NamedTuple):
    categories: NDArray[np.int64]
    """(E,C)"""
    quantities: NDArray[np.float32]
    """(E,Q)"""
    notes: tuple[str, ...]


class Meta(Config):
    columns: tuple[MetaColumn, ...] = ()

    @classmethod
    def fit(cls, train: Examples) -> Meta:
        """A column is a quantity if it holds nothing but numbers and empty places, otherwise a category."""
        _check_width(train, len(train.meta))
        columns = []
        for at, name in enumerate(train.meta):
            values = [example.meta[at] for example in train]
            if any(isinstance(value, str) and value for value in values) or all(_missing(v) for v in values):
                names = sorted({_category(value) for value in values if not _missing(value)})
                columns.append(MetaColumn(name=name, categories=tuple(names)))
            else:
                columns.append(_quantity(name, [float(v) for v in values if not _missing(v)]))
        return cls(columns=tuple(columns))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Vectors that each column of categories needs."""
        return tuple(column.rows for column in self.columns if column.categories is not None)

    @property
    def quantities(self) -> int:
        return sum(column.categories is None for column in self.columns)

    def arrays(self, examples: Examples) -> MetaArrays:
        """The numbers of examples whose columns are those of training, in the same order."""
        names = tuple(column.name for column in self.columns)
        if examples.meta != names:
            given, wanted = (", ".join(each) or "none" for each in (examples.meta, names))
            raise InputError(
                f"columns beside the text: {given}; in training: {wanted}",
                where=examples[0].file or None if len(examples) else None,
                repair="give the same columns in the same order",
            )
        _check_width(examples, len(names))
        notes: list[str] = []
        categories, quantities = [], []
        for at, column in enumerate(self.columns):
            if column.categories is None:
                quantities.append(_standard(column, examples, at, notes))
            else:
                categories.append(_numbers(column, examples, at, notes))
        size = len(examples)
        return MetaArrays(
            np.stack(categories, axis=1) if categories else np.zeros((size, 0), dtype=np.int64),
            np.stack(quantities, axis=1) if quantities else np.zeros((size, 0), dtype=np.float32),
            tuple(notes),
        )


def _check_width(examples: Sequence[Example], width: int) -> None:
    for example in examples:
        if len(example.meta) != width:
            raise example.wrong(
                f"has {len(example.meta)} values beside the text, not {width}", "give a value for each column"
            )


def _missing(value: str | float) -> bool:
    return value == "" or (not isinstance(value, str) and not math.isfinite(value))


def _category(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _quantity(name: str, values: Sequence[float]) -> MetaColumn:
    deviation = float(np.std(values))
    return MetaColumn(name=name, mean=float(np.mean(values)), deviation=deviation if deviation > 0 else 1.0)


def _numbers(column: MetaColumn, examples: Examples, at: int, notes: list[str]) -> NDArray[np.int64]:
    number = {name: place for place, name in enumerate(column.categories or (), start=UNKNOWN + 1)}
    values = [example.meta[at] for example in examples]
    found = np.array([UNKNOWN if _missing(v) else number.get(_category(v), UNKNOWN) for v in values], dtype=np.int64)
    unseen = {_category(v) for v, place in zip(values, found, strict=True) if place == UNKNOWN and not _missing(v)}
    if unseen:
        rows = int((found == UNKNOWN).sum())
        some = ", ".join(sorted(unseen)[:3]) + (", ..." if len(unseen) > 3 else "")
        notes.append(f"{column.name}: {rows:,} rows have a category that training has not seen ({some})")
    elif (found == UNKNOWN).any():
        notes.append(f"{column.name}: {int((found == UNKNOWN).sum()):,} rows have no value and count as unknown")
    return found


def _standard(column: MetaColumn, examples: Examples, at: int, notes: list[str]) -> NDArray[np.float32]:
    found = np.zeros(len(examples), dtype=np.float32)
    missing = 0
    for place, example in enumerate(examples):
        value = example.meta[at]
        if _missing(value):
            missing += 1
        elif isinstance(value, str):
            raise example.wrong(f"{column.name} is {value!r}, and it was a number in training", "write a number")
        else:
            found[place] = (value - column.mean) / column.deviation
    if missing:
        notes.append(f"{column.name}: {missing:,} rows have no number and get the mean, {column.mean:g}")
    return found
