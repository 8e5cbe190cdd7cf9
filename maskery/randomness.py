"""The one owner of randomness: everything drawn is a pure function of (seed, stream, counters).

No generator state is ever stored. A key is 64 bits: the seed and the stream's name are hashed (BLAKE2b), then each
counter is mixed in with the SplitMix64 finaliser. The mixing works on whole arrays, so the draws of ten thousand rows
cost one vector expression, and a row's draws do not depend on the rows beside it.
"""

from __future__ import annotations

import random
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import torch

Keys = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_SORTED = 256


def _mix(x: Keys) -> Keys:
    """SplitMix64's finaliser: a bijection of 64-bit words in which every input bit moves every output bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _words(values: ArrayLike) -> Keys:
    return np.atleast_1d(np.asarray(values)).astype(np.uint64)


def _absorb(state: Keys, counter: ArrayLike) -> Keys:
    """The state after one more counter; two roundings of mixing, so that nearby counters share nothing."""
    return _mix(_mix(state + _GOLDEN) ^ ((_words(counter) + _ONE) * _GOLDEN))


def _root(seed: int, stream: str) -> Keys:
    digest = blake2b(f"{seed}\0{stream}".encode(), digest_size=8).digest()
    return np.frombuffer(digest, dtype="<u8").astype(np.uint64)


def keys(seed: int, stream: str, *counters: ArrayLike) -> Keys:
    """An array of keys, one for each element of the (broadcast) counters."""
    state = _root(seed, stream)
    for counter in counters:
        state = _absorb(state, counter)
    return state


def key(seed: int, stream: str, *counters: int) -> int:
    """One key; equal to the element of `keys` with the same counters."""
    return int(keys(seed, stream, *counters)[0])


def bits(row_keys: ArrayLike, purpose: str, at: ArrayLike = 0) -> Keys:
    """64 random bits for each (key, purpose, place): what a corruption draws for a slot."""
    return _absorb(_words(row_keys) ^ _root(0, purpose), at)


def uniform(row_keys: ArrayLike, purpose: str, at: ArrayLike = 0) -> NDArray[np.float64]:
    """Numbers in [0, 1) with 53 random bits."""
    return (bits(row_keys, purpose, at) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def below(row_keys: ArrayLike, purpose: str, limit: ArrayLike, at: ArrayLike = 0) -> NDArray[np.int64]:
    """Integers in [0, limit); the bias is below limit / 2**32."""
    high = bits(row_keys, purpose, at) >> np.uint64(32)
    return ((high * _words(limit)) >> np.uint64(32)).astype(np.int64)


def permute(order_key: int, index: ArrayLike, size: int) -> NDArray[np.int64]:
    """Where a keyed permutation of range(size) sends `index`; O(1) each, no array of more than `_SORTED` is made.

    A six-round Feistel network on the smallest number of bits that holds `size`; a value that lands outside is sent
    through again (cycle walking), which keeps it a permutation. On a handful of bits no number of rounds
    makes all permutations equally likely, so a small range is ordered by sorting random bits.
    """
    places = np.atleast_1d(np.asarray(index, dtype=np.int64))
    if size < 1 or (places.size and (int(places.min()) < 0 or int(places.max()) >= size)):
        raise ValueError(f"permute: index outside 0..{size - 1}")
    if size <= _SORTED:
        order: NDArray[np.int64] = np.argsort(_absorb(_words(order_key), np.arange(size)), kind="stable")
        return order[places]
    width = (size - 1).bit_length()
    half = np.uint64(width // 2)
    masks = (_ONE << np.uint64(width - width // 2)) - _ONE, (_ONE << half) - _ONE
    round_keys = _absorb(_words(order_key), np.arange(6))
    value = places.astype(np.uint64)
    todo = np.ones(value.shape, dtype=bool)
    while todo.any():
        parts = [value[todo] >> half, value[todo] & masks[1]]
        for number in range(6):
            side = number % 2
            parts[side] ^= _absorb(round_keys[number : number + 1], parts[1 - side]) & masks[side]
        value[todo] = (parts[0] << half) | parts[1]
        todo = value >= np.uint64(size)
    return value.astype(np.int64)


def scalars(draw_key: int) -> random.Random:
    """A sequence of single draws for code that walks (a row plan); lives only inside one pure function."""
    return random.Random(draw_key)


def generator(draw_key: int) -> np.random.Generator:
    """A numpy generator (Philox, counter based) for whole arrays drawn in a fixed order."""
    return np.random.Generator(np.random.Philox(key=draw_key))


def torch_generator(draw_key: int) -> torch.Generator:
    """A torch generator on the CPU: initial weights."""
    import torch

    return torch.Generator().manual_seed(draw_key % 2**63)


def seed_dropout(draw_key: int) -> None:
    """Set torch's default generators, from which dropout draws; called before every forward pass in training.

    `default_generator.manual_seed` costs a microsecond, `torch.manual_seed` 140.
    """
    import torch

    torch.default_generator.manual_seed(draw_key % 2**63)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(draw_key % 2**63)
