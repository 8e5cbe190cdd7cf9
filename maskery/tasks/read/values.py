"""Cells to labels: names of classes, scores, and sets of names.

What is no such label raises `Unfit`; whoever knows its place says where.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from maskery.errors import Unfit
from maskery.tasks.read.looks import is_lost, is_number

SEPARATORS = ("|", ",", ";")
"""What parts the labels of one example."""
_NO_LABEL = "give the example a label, or leave it out"


def counted(count: int, what: str) -> str:
    """`3 spans that ...` but `1 span that ...`: the noun is the first word that ends in s."""
    if count != 1:
        return f"{count:,} {what}"
    words = what.split(" ")
    at = next(place for place, word in enumerate(words) if word.endswith("s"))
    words[at] = words[at].removesuffix("s")
    return " ".join(["1", *words])


def class_name(cell: Any) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, int) or (isinstance(cell, float) and cell.is_integer()):
        return str(int(cell))
    if isinstance(cell, float) and is_lost(cell):
        raise Unfit(f"the label is {cell}", _NO_LABEL)
    if isinstance(cell, str | float):
        return str(cell).strip()
    if isinstance(cell, list):
        raise Unfit("the label is a list", "--task multilabel, or one label for each example")
    raise Unfit(f"the label is {cell!r:.60}, no name", "a text or a number as the label; or --label COLUMN")


def class_number(cell: Any) -> str:
    """The class of a column whose names are all numbers, where nan is none of them."""
    if is_lost(cell):
        raise Unfit(f"the label is {str(cell).strip()}, the others are numbers", _NO_LABEL)
    return class_name(cell)


def score(cell: Any) -> float:
    shown = repr(cell)[:60]
    if is_number(cell) and math.isfinite(float(cell)):
        return float(cell)
    if is_lost(cell):
        raise Unfit(f"the score is {str(cell).strip()}", "give the example a score, or leave it out")
    raise Unfit(f"the score is {shown}, which is no number", "--label COLUMN of numbers, or --task classify")


def names(cell: Any, separator: str) -> frozenset[str]:
    if isinstance(cell, list):
        return frozenset(class_name(each) for each in cell)
    parts = class_name(cell).split(separator) if separator else [class_name(cell)]
    return frozenset(part.strip() for part in parts if part.strip())


def separator_of(cells: Iterable[Any]) -> str:
    """The sign that parts the labels of a column; "" if each has one."""
    counts = Counter(sign for cell in cells if isinstance(cell, str) for sign in SEPARATORS if sign in cell)
    if len(counts) > 1:
        shown = ", ".join(f"{sign!r} in {count:,}" for sign, count in counts.most_common())
        raise Unfit(
            f"what parts the labels of a cell? {shown} cells", "part them all by one sign, or write lists (jsonl)"
        )
    return next(iter(counts), "")
