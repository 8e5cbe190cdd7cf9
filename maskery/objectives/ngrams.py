"""The hidden runs of words as rows of their own: [CLS] words [SEP], once as they stood and once in another order.

R runs, M slots of all runs together. The other order is drawn from (row number, place of the run), so it is the same
in every batch; all orders but the old one can come, and one that comes out as the old one is turned by one word.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskery.corruption.choose import ramp
from maskery.corruption.units import word_starts
from maskery.edit import Edit
from maskery.randomness import bits, keys
from maskery.rows.ragged import Rows


@dataclass(frozen=True, kw_only=True)
class Ngrams:
    row: NDArray[np.int64]
    """(R,) the rows that have one, ascending."""
    start: NDArray[np.int64]
    """(R+1,) where each run begins among the M."""
    slot: NDArray[np.int64]
    """(M,) flat slots of the rows."""
    other: NDArray[np.int64]
    """(M,) the same slots, words in another order."""

    def __len__(self) -> int:
        return len(self.row)


def ngrams_of(rows: Rows) -> Ngrams:
    slot = np.flatnonzero(rows.edit == Edit.NGRAM)
    row, size = np.unique(rows.row[slot], return_counts=True)
    start = np.concatenate(([0], np.cumsum(size)))
    begins = word_starts(rows)[slot]
    begins[start[:-1]] = True
    word = np.flatnonzero(begins)
    run = np.repeat(np.arange(len(row)), size)[word]
    length = np.diff(np.append(word, len(slot)))
    own = keys(0, "ngram order", rows.number[row], rows.slot[slot[start[:-1]]])
    order = _other_order(run, len(row), bits(own[run], "word", word - start[run]))
    other = slot[np.repeat(word[order], length[order]) + ramp(length[order])]
    return Ngrams(row=row, start=start, slot=slot, other=other)


def _other_order(run: NDArray[np.int64], runs: int, draw: NDArray[np.uint64]) -> NDArray[np.int64]:
    """(W,) word numbers, run after run, each run's sorted by its draws; never as they were."""
    number = np.arange(len(run))
    order = np.lexsort((draw, run))
    many = np.bincount(run, minlength=runs)
    first = np.cumsum(many) - many
    moved = np.bincount(run[order != number], minlength=runs) > 0
    turned = first[run] + (number - first[run] + 1) % many[run]
    return np.where(moved[run], order, turned)


def fingerprints(rows: Rows, ngrams: Ngrams) -> NDArray[np.int64]:
    """(R,) a number for each run's ids in their order: equal for equal runs."""
    if not len(ngrams):
        return np.zeros(0, dtype=np.int64)
    place = ramp(np.diff(ngrams.start))
    words = bits(rows.original[ngrams.slot], "ngram", place)
    return np.add.reduceat(words, ngrams.start[:-1]).view(np.int64)


def order_matters(rows: Rows, ngrams: Ngrams) -> NDArray[np.bool_]:
    """(R,) whether the other order has other ids: not so where a word was repeated."""
    run = np.repeat(np.arange(len(ngrams)), np.diff(ngrams.start))
    changed = rows.original[ngrams.slot] != rows.original[ngrams.other]
    differs: NDArray[np.bool_] = np.bincount(run[changed], minlength=len(ngrams)) > 0
    return differs


def ngram_rows(rows: Rows, ngrams: Ngrams) -> Rows:
    """2R rows: the runs as they stood, then all of them in their other order. [CLS] and [SEP] are those of the row."""
    row = np.tile(ngrams.row, 2)
    start = np.concatenate(([0], np.cumsum(np.tile(np.diff(ngrams.start) + 2, 2))))
    special = np.zeros(start[-1], dtype=bool)
    special[start[:-1]] = special[start[1:] - 1] = True
    source = np.empty(start[-1], dtype=np.int64)
    source[start[:-1]], source[start[1:] - 1] = rows.start[row], rows.start[row + 1] - 1
    source[~special] = np.concatenate((ngrams.slot, ngrams.other))
    ids = rows.original[source]
    return Rows(
        number=rows.number[row],
        start=start,
        ids=ids,
        original=ids,
        flags=rows.flags[source],
        special=special,
        segment=np.zeros(len(ids), dtype=np.uint8),
        document=np.zeros(len(ids), dtype=np.int32),
        edit=np.full(len(ids), Edit.NONE, dtype=np.uint8),
        label=np.full(len(row), -1, dtype=np.int64),
        mode=None if rows.mode is None else rows.mode[row],
    )
