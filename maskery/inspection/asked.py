"""What a recipe asks for at a step, in the words of what is measured: the nominal values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskery.corruption.config import LAWS, CorruptionConfig
from maskery.feed import Feed
from maskery.rows.config import PAIRS


def nominal(feed: Feed, step: int = 0) -> dict[str, Any]:
    """Under the keys of the measured values. What a recipe says nothing about has no key."""
    config = feed.corruption(step)
    phase = feed.numbers(step)[0]
    pair = PAIRS.get(feed.recipe.rows.pair)
    asked: dict[str, Any] = {_rate_key(config): config.rate}
    asked |= {"replaced": {}, "pair": {label: 1 / len(pair.labels) if pair.even else None for label in pair.labels}}
    if config.rate > 0:
        asked |= _of_the_chosen(config)
    if feed.recipe.visibility.mixed:
        asked["modes"] = feed.recipe.visibility.shares
    if config.shuffle.rate > 0:
        asked["shuffled_runs_rate"] = config.shuffle.rate
    if config.ngram.longest > 0:
        asked["ngram"] = {"mean": (config.ngram.shortest + config.ngram.longest) / 2}
    return asked | {"corpora": dict(zip(feed.names, feed.shares(phase).tolist(), strict=True))}


def _rate_key(config: CorruptionConfig) -> str:
    """What the rate counts: words, all positions, those in reach, or those that are left beside a hidden n-gram."""
    if config.of == "words":
        return "chosen_words_rate"
    if config.segment == "second" or config.end:
        return "chosen_in_reach_rate"
    return "chosen_outside_ngram_rate" if config.ngram.longest > 0 else "chosen_rate"


def law_table(config: CorruptionConfig) -> NDArray[np.float64]:
    """The chance of each length of a span; empty where the law has no such table."""
    return LAWS.get(config.span.law)(config.span)


def _of_the_chosen(config: CorruptionConfig) -> dict[str, Any]:
    shares = {name: share for name, share in config.replace.plain().items() if share > 0}
    gone = [name for name in ("infill", "delete") if name in shares]
    if gone:
        shares[" and ".join(gone)] = sum(shares.pop(name) for name in gone)
    asked: dict[str, Any] = {"replaced": shares}
    if config.unit != "token":
        asked["words_split"] = 0.0
    table = law_table(config)
    if len(table):
        lengths = {str(length): chance for length, chance in enumerate(table.tolist()) if chance > 0}
        asked["span_words"] = {"drawn_mean": float(np.arange(len(table)) @ table), "drawn_histogram": lengths}
    return asked
