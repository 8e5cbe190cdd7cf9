"""What is compared: recipes with changes, and named sets of them that ask one question of the literature each.

masks      static with one mask for ever, static with ten, a new one each time (RoBERTa, section 4.1)
layouts    RoBERTa's four kinds of rows (section 4.2)
batches    the same rows in batches of 1 : 8 : 32, with rates in the paper's proportion (section 4.3)
questions  nothing, next sentence, sentence order, or three-way, asked beside the masked tokens (ALBERT, table 5)
recipes    every recipe of the package that asks for masked tokens
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from maskery.recipes.recipe import names, recipe
from maskery.train.defaults import CPU_BATCH, CPU_LENGTH, SHORT_RUN

Settings = Mapping[str, Any]
"""Dotted keys of a recipe."""

COMMON_TRAINING: dict[str, Any] = {
    **SHORT_RUN,
    "training.lr": 1e-3,
    "training.batch": CPU_BATCH,
    "training.length": CPU_LENGTH,
    "training.phases": [],
}
"""One way to train for all, with which small networks learn quickly. The published ones differ in more than what is
compared: a batch of 8,192 would decide before anything else could. The rate is that of mini; a comparison takes that of
its size (`defaults.compared`)."""


@dataclass(frozen=True)
class Variant:
    label: str
    recipe: str
    """A name, or the path of a file."""
    changes: Settings = field(default_factory=dict)
    """They win over what all variants share."""


@dataclass(frozen=True)
class Preset:
    help: str
    variants: Callable[[Settings], list[Variant]]
    """What all variants share -> the set."""
    questions: tuple[str, ...] = ()
    """What every model is asked about pairs of segments."""


def _masks(shared: Settings) -> list[Variant]:
    once = {"rows.copies": 1}
    return [
        Variant("static-x1", "bert", {**once, "corruption.when": "static"}),
        Variant("static-x10", "bert", {**once, "corruption.when": "static", "corruption.masks": 10}),
        Variant("dynamic", "bert", {**once, "corruption.when": "dynamic"}),
    ]


def _layouts(shared: Settings) -> list[Variant]:
    same = {"rows.copies": 1, "corruption.when": "dynamic"}
    alone = {**same, "rows.pair": "none", "rows.short": 0.0, "objectives.next_sentence": False}
    return [
        Variant("segment-pair", "bert", {**same, "rows.kind": "segment_pair"}),
        Variant("sentence-pair", "bert", {**same, "rows.kind": "sentence_pair"}),
        Variant("full-sentences", "bert", {**alone, "rows.kind": "full_sentences"}),
        Variant("doc-sentences", "bert", {**alone, "rows.kind": "doc_sentences"}),
    ]


def _batches(shared: Settings) -> list[Variant]:
    least = max(1, int(shared["training.batch"]) // 4)
    rate = float(shared["training.lr"]) / 7
    return [
        Variant(f"batch-{least * times}", "roberta", {"training.batch": least * times, "training.lr": rate * faster})
        for times, faster in ((1, 1), (8, 7), (32, 10))
    ]


def _questions(shared: Settings) -> list[Variant]:
    silent = {"objectives.next_sentence": False}
    return [
        Variant("none", "bert", silent),
        Variant("next", "bert"),
        Variant("order", "bert", {**silent, "rows.pair": "order", "objectives.sentence_order.weight": 1.0}),
        Variant("three", "bert", {**silent, "rows.pair": "three", "objectives.three_way.weight": 1.0}),
    ]


def _recipes(shared: Settings) -> list[Variant]:
    asking = [name for name in names() if "masked_token" in recipe(name).objectives]
    return [Variant(name, name) for name in sorted(asking, key=lambda name: (name != "bert", name))]


PRESETS: dict[str, Preset] = {
    "masks": Preset("when masks are drawn: static x1, static x10, dynamic", _masks),
    "layouts": Preset("RoBERTa's four kinds of rows", _layouts),
    "batches": Preset("small, large and very large batches of the same rows", _batches),
    "questions": Preset("four questions about pairs", _questions, ("next_sentence", "sentence_order")),
    "recipes": Preset("every recipe that asks for masked tokens", _recipes),
}

PUBLISHED: dict[tuple[str, ...], dict[str, float]] = {
    (): {"next_sentence": 52.4, "sentence_order": 53.3},
    ("next_sentence",): {"next_sentence": 90.5, "sentence_order": 52.0},
    ("sentence_order",): {"next_sentence": 78.9, "sentence_order": 86.5},
}
"""Lan et al. 2019, table 5, per cent: trained with these questions, asked those."""
