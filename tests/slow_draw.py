"""Drawing from a distribution in the obvious way."""

from __future__ import annotations


def slowly(weights, number):
    """The token into whose part of the whole the number falls, one by one."""
    reached, whole = 0.0, sum(weights)
    for token, weight in enumerate(weights):
        reached += weight
        if number * whole < reached:
            return token
    raise AssertionError("the number is below 1")
