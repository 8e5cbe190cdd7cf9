"""Whether the first record of a table is a header."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from maskery.corpus.sources import Source
from maskery.errors import TextError
from maskery.tasks.read.looks import Look, is_number, width
from maskery.tasks.read.names import known

_LOOKED_AT = 1000
_LONGEST_NAME = 40
_ENOUGH = 10
"""Rows from which the values of a column tell something about its first one."""


def has_header(
    source: Source, records: Sequence[Sequence[str]], header: str, asked: Iterable[str], labels: Iterable[str]
) -> tuple[bool, str]:
    """Whether there is one, and why."""
    first = records[0]
    # The first record again is a header in the middle of joined files: it says nothing about the values.
    rest = [record for record in records[1:_LOOKED_AT] if len(record) == len(first) and record != first]
    if header != "auto":
        return header == "yes", "as asked for"
    named = [name for name in asked if not name.isdecimal() and name in first]
    if named:
        return True, f"it has {named[0]!r}"
    if any(is_number(cell) for cell in first):
        return False, "it has a number"
    if set(first) & set(labels):
        return False, "it has a label"
    returning = [at for at in range(len(first)) if _returns(first[at], [record[at] for record in rest])]
    if returning:
        return False, f"{first[returning[0]]!r} stands in other lines too"
    names = [at for at, name in enumerate(first) if known(name) and all(record[at] != name for record in rest)]
    if names:
        return True, f"it has {first[names[0]]!r}"
    numbers = [at for at in range(len(first)) if rest and all(is_number(record[at]) for record in rest)]
    if numbers:
        return True, f"there are only numbers under {first[numbers[0]]!r}"
    if len(first) > 1 and _may_be_names(first, rest):
        cause = f"the first line may be a header or an example: {', '.join(map(repr, first))}"
        raise TextError(cause, file=source.name, line=1, repair="--header yes or --header no")
    return False, "it has no name that columns usually have"


def _returns(cell: str, values: Sequence[str]) -> bool:
    """Whether the cell is a value of a column of classes."""
    return len(values) >= _ENOUGH and cell in set(values) and Look.of(values).classes


def _may_be_names(first: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Short words, one of which heads a column of few values and is none of them."""
    if len(rest) < _ENOUGH or any(width(cell) > _LONGEST_NAME for cell in first):
        return False
    looks = [Look.of([record[at] for record in rest]) for at in range(len(first))]
    short = all(look.classes or width(cell) < 0.5 * look.width for cell, look in zip(first, looks, strict=True))
    alone = [at for at, look in enumerate(looks) if look.classes and first[at] not in {record[at] for record in rest}]
    return short and any(3 * looks[at].distinct <= len(rest) for at in alone)
