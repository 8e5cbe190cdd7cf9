"""Rows of a feed, in the order in which training reads them, counted into `Measured`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from maskery.corruption.corrupt import chosen_spans
from maskery.corruption.ngram import hide_ngrams
from maskery.corruption.reorder import reordered
from maskery.feed import Feed
from maskery.inspection.measured import Measured
from maskery.phases import Phase
from maskery.rows.config import PAIRS
from maskery.rows.modes import in_full
from maskery.rows.ragged import gather
from maskery.rows.written import source

Visit = tuple[int, Phase, NDArray[np.int64], NDArray[np.int64]]
"""Step, its phase, and the epochs and plan rows of some of its rows."""
_CHUNK = 512
"""Rows measured at once; bounds the memory."""


def visits(feed: Feed, count: int, step: int = 0) -> Iterator[Visit]:
    """The first `count` rows in the order of training from a step on, in chunks; fewer where another stage begins."""
    stage = feed.corruption(step)
    while count > 0 and feed.corruption(step) == stage:
        phase, epochs, numbers = feed.numbers(step)
        for start in range(0, min(count, len(numbers)), _CHUNK):
            part = slice(start, min(start + _CHUNK, count))
            yield step, phase, epochs[part], numbers[part]
        count -= len(numbers)
        step += 1


def measure(feed: Feed, count: int, step: int = 0, told: Callable[[float], None] | None = None) -> Measured:
    """Measure the first `count` rows of training from a step on; `told` hears how many are done."""
    measured = Measured()
    for visit in visits(feed, count, step):
        _add(measured, feed, *visit)
        if told is not None:
            told(measured.rows)
    return measured


def _add(
    measured: Measured, feed: Feed, step: int, phase: Phase, epochs: NDArray[np.int64], numbers: NDArray[np.int64]
) -> None:
    config, keys = feed.corruption(step), feed.mask_keys(phase, epochs, numbers)
    read = source(gather(feed.plan(phase), numbers, feed.corpus), feed.recipe.rows)
    plain = reordered(read, config.order, keys)
    rows, to_write = feed.both(step, phase, epochs, numbers)
    measured.written += 0 if to_write is None else len(to_write.ids)
    measured.add(rows, config, plain)
    label = rows.label
    if feed.recipe.visibility.mixed and rows.mode is not None:
        measured.add_modes(rows.mode)
        label = label[in_full(rows)]
    measured.add_labels(label, PAIRS.get(feed.recipe.rows.pair).labels)
    measured.plan_rows |= {(phase.number, number) for number in numbers.tolist()}
    measured.mask_keys |= set(keys.tolist())
    owners = np.bincount(feed.corpus_of(phase, numbers)[0], minlength=len(feed.names))
    measured.corpora.update(dict(zip(feed.names, owners.tolist(), strict=True)))
    if config.rate > 0:
        if config.ngram.longest > 0:
            plain = hide_ngrams(plain, config.ngram, keys, feed.corpus.facts)
        _, spans, chosen = chosen_spans(plain, config, keys)
        measured.add_spans(spans, chosen)
