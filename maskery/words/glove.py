"""GloVe (Pennington, Socher and Manning 2014): vectors whose products tell how often words stand together.

    J = 1/2 * sum over cells of f(X[i,j]) * (w_i . c_j + b_i + d_j - log X[i,j])^2,   f(x) = min(1, (x / x_max)^alpha)

over all cells of X that are not zero (`cooccurrence.py`), by AdaGrad, one cell after the other in random order. The
paper has no 1/2; its published code has. A word's vector is w + c.

**Batches that are no approximation.** With a random order r of the W words, the cells with (r_i + r_j) mod W = k hold
every word at most once as a word and at most once as a context. No two of them touch the same numbers, so moving all at
once is the same as moving one after the other. The W values of k are the batches, and an epoch visits them in an order
of its own. The origin shuffles the cells once and visits them in the same order in every epoch.

**AdaGrad, two ways** (`adagrad`). "paper": a number's step is lr * g / sqrt(G), then G grows by g^2, for vectors and
biases alike. "code", as the origin's glove.c: G of vectors grows by (lr * g)^2, so they slow down far less, and a step
of biases has no lr at all. In both, G begins at 1, is read before it grows, and the g of vectors is clipped. Every
number begins as U(-.5, .5) / D, biases too. G is kept without its 1: small squares would be lost beside it.

W words, D numbers a vector; n cells of a batch. The table is (2W, 2D+2): a row for each word and behind them one for
each context, with vector, bias, G of the vector and G of the bias.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskery.errors import InputError, NonFiniteError
from maskery.randomness import generator, key, permute
from maskery.words.config import WordsConfig
from maskery.words.cooccurrence import Pairs, count_pairs
from maskery.words.protocol import Arrays, Epoch, Method, Stopped, Trained
from maskery.words.vocabulary import Told, Words

Table = NDArray[np.float32] | NDArray[np.float64]
Numbers = NDArray[np.int64]
COUNTING = 0.5
"""Work of counting the pairs, beside 1 for an epoch."""
LARGEST = 1e3
"""Of a number of a vector, and of a bias; they are of the size of logarithms of counts."""
_TABLE = "table"
_OFTEN = 64
"""Batches after which progress is told."""


class _Ended(Exception):
    """Somebody asked to stop."""


class Batches(NamedTuple):
    """Pairs in the order of their batches."""

    pairs: Pairs
    start: Numbers
    """(batches + 1,) pairs."""

    def cells(self, number: int) -> tuple[Numbers, Numbers, NDArray[np.float32]]:
        """A batch's cells (n,) of X: words, contexts, weights; each pair both ways, a word with itself once."""
        here = slice(self.start[number], self.start[number + 1])
        one, other, weight = (column[here] for column in self.pairs)
        apart = one != other
        words = np.concatenate((one, other[apart])).astype(np.int64)
        contexts = np.concatenate((other, one[apart])).astype(np.int64)
        return words, contexts, np.concatenate((weight, weight[apart]))


def make_batches(pairs: Pairs, size: int, seed: int) -> Batches:
    """Part the pairs of `size` words into batches in which no word comes twice."""
    place = permute(key(seed, "glove batches"), np.arange(size), size)
    batch = (place[pairs.one] + place[pairs.other]) % size
    order = (batch << 32) | np.arange(len(batch))  # sorted as one number: twice as fast as argsort, and half the memory
    del batch
    order.sort()
    first = np.flatnonzero(np.diff(order >> 32, prepend=-1))
    order &= (1 << 32) - 1
    return Batches(Pairs(*(column[order] for column in pairs)), np.append(first, len(order)))


def start_table(size: int, config: WordsConfig) -> Table:
    """The numbers before the first epoch."""
    table = np.zeros((2 * size, 2 * config.width + 2), dtype=np.float32)
    drawn = generator(key(config.seed, "glove start")).random((2 * size, config.width + 1))
    table[:, : config.width + 1] = (drawn - 0.5) / config.width
    return table


def update(
    table: Table, words: Numbers, contexts: Numbers, weight: NDArray[np.floating[Any]], config: WordsConfig
) -> float:
    """Move the numbers of cells (n,) that share none of them, and return their part of J as it was before."""
    many, width = len(words), config.width
    places = np.concatenate((words, contexts + len(table) // 2))
    rows = table.take(places, axis=0)
    vector, bias = rows[:, :width], rows[:, width]
    weight = weight.astype(table.dtype, copy=False)
    error = np.einsum("nd,nd->n", vector[:many], vector[many:])
    error += bias[:many] + bias[many:] - np.log(weight)
    slope = np.minimum(1, (weight / config.x_max) ** config.alpha) * error
    gradient = np.empty((2 * many, width), dtype=table.dtype)
    np.multiply(slope[:, None], vector[many:], out=gradient[:many])
    np.multiply(slope[:, None], vector[:many], out=gradient[many:])
    np.clip(gradient, -config.clip, config.clip, out=gradient)
    _move(rows, gradient, np.concatenate((slope, slope)), config)
    table[places] = rows
    return 0.5 * float(slope @ error)


def _move(rows: Table, gradient: Table, of_bias: Table, config: WordsConfig) -> None:
    """One step of AdaGrad for rows of the table; `gradient` is used up."""
    width, code = config.width, config.adagrad == "code"
    squares, bias_squares = rows[:, width + 1 : -1], rows[:, -1]
    step = 1 + squares
    np.sqrt(step, out=step)
    np.divide(gradient, step, out=step)
    step *= config.lr
    rows[:, :width] -= step
    rows[:, width] -= (1 if code else config.lr) * of_bias / np.sqrt(1 + bias_squares)
    if code:
        gradient *= config.lr
    squares += np.square(gradient, out=gradient)
    bias_squares += np.square(of_bias)


def train_glove(
    words: Words,
    config: WordsConfig,
    progress: Told | None = None,
    state: Epoch | None = None,
    stopped: Stopped | None = None,
) -> Iterator[Epoch]:
    """Train, epoch by epoch. Going on from a `state` counts the pairs anew, which gives the same."""
    size, total = len(words.words), COUNTING + config.epochs

    def tell(done: float) -> None:
        if stopped is not None and stopped():
            raise _Ended
        if progress is not None:
            progress(done, total)

    try:
        pairs = count_pairs(words, config.window, lambda done, whole: tell(COUNTING * done / whole))
        if not len(pairs.one):
            raise InputError(
                "no two words stand in one sentence, so there is nothing to learn from",
                repair="a lower --min-count, or a corpus with longer sentences",
            )
        batches = make_batches(pairs, size, config.seed)
        cells = pairs.cells
        del pairs
        table = start_table(size, config) if state is None else np.array(state.arrays[_TABLE])
        for number in range(0 if state is None else state.number, config.epochs):
            loss = 0.0
            for done, cost in enumerate(_epoch(table, batches, number, config)):
                loss += cost
                if done % _OFTEN == 0:
                    tell(COUNTING + number + done / (len(batches.start) - 1))
            _refuse_unbounded(table, number + 1, config)
            tell(COUNTING + number + 1)
            yield Epoch(number + 1, {_TABLE: table}, loss / cells)
    except _Ended:
        return


def _epoch(table: Table, batches: Batches, number: int, config: WordsConfig) -> Iterator[float]:
    """Visit every batch once, in the order of this epoch; each one's part of J."""
    many = len(batches.start) - 1
    order = permute(key(config.seed, "glove order", number), np.arange(many), many)
    for batch in order.tolist():
        with np.errstate(over="ignore", invalid="ignore"):  # refused at the end of the epoch
            cost = update(table, *batches.cells(batch), config)
        yield cost


def _refuse_unbounded(table: Table, epoch: int, config: WordsConfig) -> None:
    if not (np.abs(table[:, : config.width + 1]) <= LARGEST).all():  # nor a value that is no number
        raise NonFiniteError(
            f"the vectors grew beyond all bounds in epoch {epoch} (lr {config.lr:g})",
            repair=f"a lower --lr, for example {min(0.05, config.lr / 10):g}",
        )


def glove_vectors(words: Words, config: WordsConfig, arrays: Arrays) -> Trained:
    """The sum of a word's vector as a word and as a context, as the paper keeps it."""
    vector, size = arrays[_TABLE][:, : config.width], len(words.words)
    return Trained(np.asarray(vector[:size] + vector[size:], dtype=np.float32))


GLOVE = Method(train=train_glove, vectors=glove_vectors)
