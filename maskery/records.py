"""Rows that a Python call is given: tables and records, whoever made them, as plain dicts such as JSON Lines hold.

    records_of("train", pandas.DataFrame(...))           # also polars, pyarrow.Table and datasets.Dataset
    records_of("train", [{"text": "a", "label": "x"}])   # also a generator

No library is imported for it: a table is known by what it offers. A missing cell of a table (NaN, NA, NaT) is None,
numbers of numpy are numbers, arrays and tuples are lists. Where a dataset numbers its classes (`ClassLabel`), they are
named; -1 is no class.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from numbers import Number
from typing import Any

from maskery import arguments
from maskery.errors import ArgumentError, ArgumentName, ArgumentTypeError

FORM = 'a pandas DataFrame, a datasets.Dataset, or a list of dicts, [{"text": "...", "label": "..."}, ...]'
_PLAIN = (str, int, float, bool, bytes, type(None))
_NOT_THERE = ("NAType", "NaTType")
"""What pandas puts in the place of a missing cell, by the names of its types."""
_AT_ONCE = 1000
"""Rows of a frame that are made plain at once: a large frame is not copied as a whole."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Records:
    """All rows of one argument."""

    name: str
    """Of the argument."""
    rows: tuple[Row, ...]
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Column -> the names of its classes in the order of their numbers, where the table says them."""

    @property
    def place(self) -> ArgumentName:
        return ArgumentName(self.name)

    def __str__(self) -> str:
        return self.name


def is_table(value: object) -> bool:
    return _columns(value) is not None


def records_of(name: str, value: object, form: str = FORM) -> Records:
    """What is no table and no rows is refused with the argument's name and the right form."""
    rows = tuple(rows_of(name, value, form))
    if not rows:
        raise ArgumentError(f"{name} is empty: there is no row", repair=f"give {name} at least one row")
    features = getattr(value, "features", None) if is_table(value) else None
    classes = {column: found for column, each in (features or {}).items() if (found := _names(each))}
    return Records(name, rows, classes)


def records_or_items(name: str, value: object, form: str) -> Records | list[Any]:
    """The records of a table or of rows; of anything else its members."""
    if is_table(value):
        return records_of(name, value, form)
    given = arguments.items(name, value, form)
    return records_of(name, given, form) if any(isinstance(each, Mapping) for each in given) else given


def rows_of(name: str, value: object, form: str = FORM) -> Iterator[Row]:
    """The rows one by one, as a table or an iterator has them."""
    features = getattr(value, "features", None) if is_table(value) else None
    for number, row in enumerate(_raw(name, value, form)):
        if not isinstance(row, Mapping):
            raise _no_row(name, value, number, row, form)
        found: Row = {}
        for column, cell in row.items():
            if not isinstance(column, str):
                raise _no_name(f"{name}[{number}]", column)
            where = f"{name}[{number}][{column!r}]"
            plain = _plain(cell, where)
            found[column] = _named(plain, features[column], where) if features and column in features else plain
        yield found


def _raw(name: str, value: object, form: str) -> Iterator[object]:
    """The rows as they come."""
    columns = _columns(value)
    if columns is None:
        if isinstance(value, str | bytes | Mapping | Set) or not isinstance(value, Iterable) or _is_array(value):
            raise arguments.wrong(name, value, form)
        return iter(value)
    for at, column in enumerate(columns):
        if not isinstance(column, str):
            raise _no_name(name, column)
        if column in columns[:at]:
            raise ArgumentError(f"{name} has the column {column!r} more than once", repair="give each its own name")
    return _table_rows(value)


def _columns(value: Any) -> list[Any] | None:
    """The names of a table's columns; None: it is no table."""
    if any(hasattr(value, each) for each in ("iloc", "iter_rows")) and hasattr(value, "columns"):
        return list(value.columns)
    if hasattr(value, "column_names") and (hasattr(value, "features") or hasattr(value, "to_batches")):
        return list(value.column_names or ())  # a dataset that is read as it comes may not know them
    return None


def _table_rows(table: Any) -> Iterator[object]:
    if hasattr(table, "iter_rows"):
        return iter(table.iter_rows(named=True))
    if hasattr(table, "to_batches"):
        return (row for batch in table.to_batches() for row in batch.to_pylist())
    if hasattr(table, "iloc"):
        return itertools.chain.from_iterable(
            _frame_rows(table.iloc[start : start + _AT_ONCE]) for start in range(0, len(table), _AT_ONCE)
        )
    # As Python's own values, whatever format was set.
    return iter(table.with_format(None) if hasattr(table, "with_format") else table)


def _frame_rows(frame: Any) -> list[object]:
    found: list[object] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return found


def _is_array(value: object) -> bool:
    return len(getattr(value, "shape", ())) > 1


def _plain(value: Any, where: str) -> Any:
    """A value as JSON would hold it."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(each, f"{where}[{key!r}]") for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, f"{where}[{at}]") for at, each in enumerate(value)]
    if isinstance(value, Set):
        return [_plain(each, where) for each in sorted(value, key=str)]
    if type(value).__name__ in _NOT_THERE:
        return None
    if callable(getattr(value, "tolist", None)):  # numpy's and torch's, one value or many
        return _plain(value.tolist(), where)
    if callable(getattr(value, "isoformat", None)):
        return str(value.isoformat())
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Number) and not isinstance(value, complex):
        return float(value)  # type: ignore[arg-type]  # a Decimal or a Fraction
    raise arguments.wrong(where, value, "a text, a number, a list or a dict")


def _names(feature: Any) -> tuple[str, ...]:
    """The names of the classes that a column of a dataset numbers, one in a row or a list of them."""
    names = getattr(feature, "names", None)
    if names is None and hasattr(feature, "feature"):
        return _names(feature.feature)
    return tuple(names) if isinstance(names, list | tuple) else ()


def _named(value: Any, feature: Any, where: str) -> Any:
    """The same with the names of classes in the place of their numbers."""
    if isinstance(feature, Mapping) and isinstance(value, dict):
        return {key: _named(each, feature[key], where) if key in feature else each for key, each in value.items()}
    if hasattr(feature, "feature") and isinstance(value, list):
        return [_named(each, feature.feature, where) for each in value]
    names = getattr(feature, "names", None)
    if not isinstance(names, list | tuple) or not isinstance(value, int):
        return value
    if value == -1:
        return None
    if not 0 <= value < len(names):
        raise ArgumentError(f"{where} is {value}, and its classes are 0 to {len(names) - 1}", repair="mend the row")
    return names[value]


def _no_row(name: str, value: object, number: int, row: object, form: str) -> ArgumentTypeError:
    """What stands in the place of a row."""
    if number:
        return arguments.wrong(f"{name}[{number}]", row, form, f"give every row as a dict, as {name}[0] is")
    kind, first = type(value).__name__, arguments.described(row)
    return ArgumentTypeError(f"{name} is of type {kind}, and {name}[0] is {first}", repair=f"give {name} as {form}")


def _no_name(where: str, column: object) -> ArgumentTypeError:
    cause = f"{where} has a column that is called {arguments.described(column)}"
    return ArgumentTypeError(cause, repair='columns are called by strings: frame.columns = ["text", "label"]')


def text_columns(rows: Sequence[Row]) -> list[str]:
    """The columns that hold texts in all rows that have something there."""
    names = dict.fromkeys(name for row in rows for name in row)
    held = {name: [row[name] for row in rows if row.get(name) is not None] for name in names}
    return [name for name, cells in held.items() if cells and all(isinstance(cell, str) for cell in cells)]
