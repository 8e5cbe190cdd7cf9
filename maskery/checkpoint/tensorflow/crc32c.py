"""CRC-32C, the checksum of TensorFlow's checkpoints, fast enough in numpy for hundreds of megabytes.

A checksum is the remainder of the message, read as a polynomial over two elements, by P. Dividing by a multiple of P
first does not change it, and a multiple can be far more convenient than P: Q = x^6777 + x^484 + x^100 + 1 has four
terms only. Squaring a polynomial over two elements spreads its exponents, Q(x)^2 = Q(x^2), so Q(x^8) and Q(x^64) are
multiples of P as well: Q's division over bytes, or over words of eight bytes, in place of bits. So a long run of words
is xored into three later places at once, until 6777 words are left, then bytes; those go through the usual table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

POLYNOMIAL = 0x11EDC6F41
"""P; the bit of value 2^k is the coefficient of x^k."""
MULTIPLE = (6777, 484, 100, 0)
"""The exponents of Q."""
_DEGREE = MULTIPLE[0]
_STEPS = tuple(_DEGREE - exponent for exponent in MULTIPLE[1:])
"""How many places after its own a leading coefficient is added when it is divided away."""
_PIECE = 4 << 20
_ONES = 0xFFFFFFFF


def _table() -> list[int]:
    """The register after one byte, for every byte; bits are reflected, as this checksum has them."""
    reflected = int(f"{POLYNOMIAL:033b}"[:0:-1], 2)
    table = list(range(256))
    for _ in range(8):
        table = [value >> 1 ^ (reflected if value & 1 else 0) for value in table]
    return table


_TABLE = _table()


def crc32c(data: Bytes | bytes, tell: Callable[[int], None] | None = None) -> int:
    """The checksum of the bytes; `tell` hears of each piece how many bytes it had."""
    message = np.frombuffer(data, dtype=np.uint8) if isinstance(data, bytes) else data
    if len(message) <= _DEGREE:
        _tell(tell, len(message))
        return _through_table(message.tobytes(), _ONES) ^ _ONES
    rest = np.empty(0, dtype=np.uint8)
    for start in range(0, len(message), _PIECE):
        piece = np.concatenate([rest, message[start : start + _PIECE]])
        if start == 0:
            piece[:4] ^= 0xFF  # the register begins with ones: the same as other first bytes and a register of zeros
        rest = _divided(piece, np.dtype(np.uint64))
        _tell(tell, min(_PIECE, len(message) - start))
    return _through_table(_divided(rest, np.dtype(np.uint8)).tobytes(), 0) ^ _ONES


def masked(checksum: int) -> int:
    """As the files hold it: turned and shifted, so that a checksum of bytes with checksums in them stays useful."""
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & _ONES


def _divided(message: Bytes, word: np.dtype[Any]) -> Bytes:
    """A message of at most 6777 words with the same remainder by P."""
    count = -(-len(message) // word.itemsize)
    last = count - _DEGREE
    if last <= 0:
        return message
    words = np.zeros(count, dtype=word)  # zeros in front change no remainder
    words.view(np.uint8)[count * word.itemsize - len(message) :] = message
    at_once = _STEPS[0]
    for at in range(0, last, at_once):
        end = min(at + at_once, last)
        for step in _STEPS:
            words[at + step : end + step] ^= words[at:end]
    return words[last:].view(np.uint8)


def _through_table(message: bytes, register: int) -> int:
    for byte in message:
        register = _TABLE[(register ^ byte) & 0xFF] ^ register >> 8
    return register


def _tell(tell: Callable[[int], None] | None, number: int) -> None:
    if tell is not None:
        tell(number)
