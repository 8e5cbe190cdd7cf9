"""How the values of a column look: few and short like classes, numbers, texts, lists, or a count of the rows."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_CODE = re.compile(r"(?=.*\d)[A-Za-z0-9_.:/#-]+")
_LOST = frozenset({"nan", "inf", "infinity"})
_WIDE = "\u2e80"
_LOOKED_AT = 2000
_FEW = 20
"""Classes that a file may have whatever its size."""
_WIDEST_CLASS = 40


def width(text: str) -> int:
    """Columns of a screen, nearly: a Chinese character says as much as two letters."""
    return len(text) if text.isascii() else len(text) + sum(sign >= _WIDE for sign in text)


def is_number(value: Any) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_lost(value: Any) -> bool:
    """NaN or infinite, as a number or spelled: what a computation leaves that failed."""
    if isinstance(value, str):
        return value.strip().lower().lstrip("+-") in _LOST
    return isinstance(value, float) and not math.isfinite(value)


def is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return not value or value.isspace()
    return not isinstance(value, int | float | list | dict)


@dataclass(frozen=True)
class Look:
    rows: int
    filled: int
    distinct: int
    numbers: float
    """Share of the filled cells that are not lost: a NaN among scores is refused in its row, and makes no classes."""
    whole: bool
    """All numbers are whole."""
    strings: bool
    """All filled cells are texts."""
    lists: bool
    width: float
    """In the mean."""
    codes: bool
    """All distinct, and like dev-17, or numbers that ascend: they name the rows."""

    @classmethod
    def of(cls, values: Sequence[Any]) -> Look:
        filled = [value for value in values if not is_missing(value)]
        some = filled[:_LOOKED_AT]
        numbers = [value for value in filled if is_number(value)]
        lost = sum(map(is_lost, filled))
        names = [str(value).strip() for value in filled]
        distinct = len(set(names))
        return cls(
            rows=len(values),
            filled=len(filled),
            distinct=distinct,
            numbers=len(numbers) / max(1, len(filled) - lost),
            whole=all(float(value).is_integer() for value in numbers),
            strings=all(isinstance(value, str) for value in filled),
            lists=bool(filled) and all(isinstance(value, list) for value in filled),
            width=sum(width(str(value)) for value in some) / max(1, len(some)),
            codes=distinct == len(names) > 2 and _are_codes(names),
        )

    @property
    def many(self) -> int:
        """More values than this are no classes."""
        return max(_FEW, int(2 * self.rows**0.5))

    @property
    def classes(self) -> bool:
        """Few short values that return."""
        returning = self.distinct <= max(2, self.filled / 2) or (self.filled <= _FEW and not self.codes)
        plain = not self.numbers or self.whole
        scalar = not self.lists and self.width <= _WIDEST_CLASS
        return self.filled > 0 and self.distinct <= self.many and returning and plain and scalar

    @property
    def texts(self) -> bool:
        """Words, and not of a few kinds."""
        if not self.filled or not self.strings or self.numbers > 0.5 or self.codes:
            return False
        return self.width > _FEW or self.distinct > self.many or self.rows <= _FEW

    @property
    def scores(self) -> bool:
        return self.numbers >= 0.5 and not self.codes

    @property
    def really_text(self) -> bool:
        """Nearly every value is another one, and they are long; or there are far too many of them."""
        long = self.filled >= 4 and self.distinct >= 0.8 * self.filled and self.width > _FEW
        return long or (self.filled >= 50 and self.distinct > self.filled / 2)


def _are_codes(names: Sequence[str]) -> bool:
    """Numbers have to ascend, as a count does: they may measure something."""
    if not all(_CODE.fullmatch(name) for name in names):
        return False
    if not all(is_number(name) for name in names):
        return True
    numbers = [float(name) for name in names]
    ascend = all(before < after for before, after in itertools.pairwise(numbers))
    return ascend and len(numbers) > 4 and all(number.is_integer() for number in numbers)
