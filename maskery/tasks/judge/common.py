"""What two texts have in common: units of text, longest common sequences, and overlaps of bags."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence

_SIGNS = "\u2e80-\u2fff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_SIGN = re.compile(f"[{_SIGNS}]")
_UNIT = re.compile(rf"[{_SIGNS}]|[^\W_{_SIGNS}]+|[^\w\s]|_")


def units(text: str) -> list[str]:
    """Chinese and Japanese signs one by one, other writing word by word, every other sign by itself."""
    return _UNIT.findall(text)


def is_chinese(text: str) -> bool:
    return _SIGN.search(text) is not None


def common_sequence(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """The length of the longest common subsequence; a whole line of the table is one number, a bit for each place
    (Hyyrö 2004)."""
    places: dict[Hashable, int] = {}
    for place, unit in enumerate(one):
        places[unit] = places.get(unit, 0) | 1 << place
    full = (1 << len(one)) - 1
    open_ = full
    for unit in other:
        met = open_ & places.get(unit, 0)
        open_ = ((open_ + met) | (open_ - met)) & full
    return len(one) - open_.bit_count()


def common_run(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """The length of the longest run of neighbours that both have."""
    places: dict[Hashable, list[int]] = {}
    for place, unit in enumerate(other):
        places.setdefault(unit, []).append(place)
    longest, before = 0, dict[int, int]()
    for unit in one:
        before = {place: before.get(place - 1, 0) + 1 for place in places.get(unit, ())}
        longest = max(longest, *before.values(), 0)
    return longest


def overlap_f1(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """F1 of two bags; two empty ones are the same."""
    if not one or not other:
        return float(len(one) == len(other))
    return f1((Counter(one) & Counter(other)).total(), len(one), len(other))


def f1(same: int, one: int, other: int) -> float:
    return 2 * same / (one + other) if same else 0.0
