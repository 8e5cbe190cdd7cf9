"""Weights of corpora: whole numbers w, so that every block of sum(w) rows holds exactly w[c] rows of corpus c."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from maskery.errors import InputError

LARGEST_BLOCK = 1000
"""A block is drawn whole; a longer one would only say the shares more finely than a run can show them."""
_CLOSE = Fraction(1, 10**9)


def whole_weights(weights: Sequence[float | Fraction], names: Sequence[str]) -> tuple[int, ...]:
    """The same shares in whole numbers without a common divisor, to a thousandth where no small ones are exact."""
    exact = [_fraction(weight, name) for weight, name in zip(weights, names, strict=True)]
    scale = math.lcm(*(weight.denominator for weight in exact))
    numbers = [int(weight * scale) for weight in exact]
    divisor = math.gcd(*numbers)
    numbers = [number // divisor for number in numbers]
    if sum(numbers) > LARGEST_BLOCK:
        numbers = _apportioned(numbers)
        divisor = math.gcd(*numbers)
        numbers = [number // divisor for number in numbers]
    for name, number in zip(names, numbers, strict=True):
        if number == 0:
            raise InputError(
                f"the weight of {name} is less than one row in {LARGEST_BLOCK}",
                where="--corpus",
                repair="give it a larger weight, or leave it out",
            )
    return tuple(numbers)


def _fraction(weight: float | Fraction, name: str) -> Fraction:
    """1/3 for 0.3333333333333333: what a person meant."""
    if weight <= 0 or (isinstance(weight, float) and not math.isfinite(weight)):
        raise InputError(
            f"the weight of {name} is {weight}",
            where="--corpus",
            repair="give a number above 0, or leave the corpus out",
        )
    exact = Fraction(weight)
    short = exact.limit_denominator(LARGEST_BLOCK)
    return short if abs(short - exact) <= _CLOSE * exact else exact


def _apportioned(numbers: Sequence[int]) -> list[int]:
    """Parts of `LARGEST_BLOCK`: each rounded down, then the largest remainders get one more."""
    whole = sum(numbers)
    floors = [number * LARGEST_BLOCK // whole for number in numbers]
    rest = [number * LARGEST_BLOCK % whole for number in numbers]
    order = sorted(range(len(numbers)), key=lambda place: (-rest[place], place))
    for place in order[: LARGEST_BLOCK - sum(floors)]:
        floors[place] += 1
    return floors
