"""What a method of training word vectors is: a generator that yields after every epoch, and can go on from there.

`train(words, config, progress, state, stopped)` yields an `Epoch` for state.number + 1 ... config.epochs. Given the
last `Epoch` that was yielded (read back from a disk), with the same words and config, it goes on as if it had never
stopped. Where `stopped()` becomes true it ends without a further yield; what it did of that epoch is lost.
`vectors(words, config, arrays)` makes the vectors of an epoch's arrays. W words, D numbers a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskery.words.config import WordsConfig
from maskery.words.subwords import Subwords
from maskery.words.vocabulary import Told, Words

Arrays = dict[str, NDArray[Any]]
"""Numbers by name; each contiguous, as safetensors wants them."""
Stopped = Callable[[], bool]


class Epoch(NamedTuple):
    number: int
    """Epochs that are done."""
    arrays: Arrays
    """All that training goes on from. They may change when the generator goes on: save them before."""
    loss: float | None = None
    """Of the epoch, where the method knows it."""


class Trained(NamedTuple):
    matrix: NDArray[np.float32]
    """(W,D)"""
    subwords: Subwords | None = None


class Method(NamedTuple):
    train: Callable[[Words, WordsConfig, Told | None, Epoch | None, Stopped | None], Iterator[Epoch]]
    """`progress` is told work done and work in all, over all epochs of the training."""
    vectors: Callable[[Words, WordsConfig, Arrays], Trained]
    check: Callable[[], None] = lambda: None
    """Refuses where something that the method needs is not installed."""
