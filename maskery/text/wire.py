"""Protocol-buffer messages as far as checkpoints and sentencepiece models use them: numbered fields of integers, fixed
words and byte strings.

Malformed bytes raise ValueError; who reads a file knows where they stand.
"""

from __future__ import annotations

from collections.abc import Iterator

Fields = dict[int, list[int | bytes]]
"""Field number -> its values in the order of the message."""

_LONGEST = 10
"""Bytes of the longest number: 64 bits, seven in a byte."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at `at`, and where the next thing begins."""
    value = 0
    for place in range(_LONGEST):
        if at + place >= len(data):
            raise ValueError("ends inside a number")
        byte = data[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value & (1 << 64) - 1, at + place + 1
    raise ValueError("has a number of more than 64 bits")


def fields(message: bytes) -> Fields:
    found: Fields = {}
    for number, value in _each(message):
        found.setdefault(number, []).append(value)
    return found


def _each(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(message, at)
            yield number, value
            continue
        if kind not in (1, 2, 5):
            raise ValueError(f"has a field of the unknown kind {kind}")
        size, at = varint(message, at) if kind == 2 else (8 if kind == 1 else 4, at)
        part = message[at : at + size]
        if len(part) < size:
            raise ValueError("ends inside a field")
        at += size
        yield number, part if kind == 2 else int.from_bytes(part, "little")


def number(found: Fields, key: int) -> int:
    """The last value of a field of numbers, as such messages are read; 0 where there is none."""
    value = found.get(key, [0])[-1]
    if not isinstance(value, int):
        raise ValueError(f"has bytes where field {key} should be a number")
    return value - (1 << 64) if value >> 63 else value


def messages(found: Fields, key: int) -> list[bytes]:
    values = found.get(key, [])
    parts = [value for value in values if isinstance(value, bytes)]
    if len(parts) < len(values):
        raise ValueError(f"has a number where field {key} should be a message")
    return parts
