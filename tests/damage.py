"""Ways to damage files: cut short, bits flipped, JSON values exchanged. And what may happen then."""

from __future__ import annotations

import json
import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from maskery.errors import MaskeryError

FOREIGN = [
    None, True, False, 0, -1, 1, 2**31, 2**40, 2**63, 10**40, 1e308, float("inf"), float("nan"), 1.5,
    "", "x", "gelu", "[MASK]", "\x00", "9" * 50, [], [1], ["x"], [[]], [None], {}, {"a": 1}, {"0": {}},
]  # fmt: skip
"""Values that a field may not expect."""


def tries(number: int, *, slow: bool = False):
    """As many examples in the suite; ten times as many where new ones are looked for (`make grid`). `slow`: each writes
    files, which hypothesis would warn of."""
    many = number * 10 if os.environ.get("HYPOTHESIS_PROFILE") == "explore" else number
    return settings(max_examples=many, suppress_health_check=list(HealthCheck) if slow else [])


def survives(act, *arguments):
    """Whether it works; if not, the error says what is wrong, where, and what to do, and is no longer than a screen."""
    refusal = None
    try:
        act(*arguments)
    except MaskeryError as error:
        refusal = error
    if refusal is None:
        return True
    assert refusal.cause
    assert refusal.where or " problems in the recipe" in refusal.cause, refusal
    assert refusal.repair, refusal
    assert len(refusal.text()) < 5000
    return False


def cuts(data: bytes):
    """The data cut short."""
    return st.integers(0, len(data) - 1).map(lambda at: data[:at])


def flips(data: bytes, first: int | None = None):
    """One to three bits flipped, among the first bytes or anywhere."""

    def flip(places):
        changed = bytearray(data)
        for place, bit in places:
            changed[place] ^= 1 << bit
        return bytes(changed)

    place = st.tuples(st.integers(0, min(first or len(data), len(data)) - 1), st.integers(0, 7))
    return st.lists(place, min_size=1, max_size=3, unique=True).map(flip)


def exchanges(data: bytes):
    """JSON with one value replaced or left out."""
    value = json.loads(data)

    def exchange(drawn):
        path, foreign, leave_out = drawn
        changed = json.loads(data)
        holder = changed
        for part in path[:-1]:
            holder = holder[part]
        if not path:
            changed = foreign
        elif leave_out and isinstance(holder, dict):
            del holder[path[-1]]
        else:
            holder[path[-1]] = foreign
        return json.dumps(changed).encode()

    return st.tuples(
        st.sampled_from(list(_paths(value))), st.sampled_from(FOREIGN), st.integers(0, 6).map(lambda n: n == 0)
    ).map(exchange)


def _paths(value, path=()):
    yield path
    if isinstance(value, dict):
        for key in list(value)[:25]:
            yield from _paths(value[key], (*path, key))
    elif isinstance(value, list):
        for number in range(min(len(value), 6)):
            yield from _paths(value[number], (*path, number))


def any_damage(name: str, data: bytes):
    every = [cuts(data), flips(data)]
    if name.endswith(".json"):
        every += [exchanges(data), exchanges(data)]
    if name.endswith(".safetensors"):
        every += [flips(data, 8), flips(data, 600)]
    return st.one_of(every)
