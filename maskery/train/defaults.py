"""The settings of a pretraining run that its user left open: a function of the recipe, the size, the tokens that will
be read, the text and the machine.

A paper's settings are those of its own run: thousands of rows a step, a million steps, a wide network. A laptop reads
a ten thousandth of that. With a rate of 1e-4, or with LAMB, which is made for thousands of rows, so short a run learns
how frequent each token is and nothing else. The rules below were found by measurement (docs/defaults.md,
`benchmarks/pretrain_defaults.py`); they are for runs that read less than `SHORT` of what the paper's run did. What the
user names, on the command line or in a recipe file of his own, is never chosen; `as_published` chooses nothing at all.

The choices depend on each other in one direction: size (from the time), rows of a step and their length (from the
machine), and with these the number of tokens, from which the rest follows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maskery.model.config import SIZES, Architecture
from maskery.model.cost import forward_flops
from maskery.phases import phases_of
from maskery.recipes.recipe import Recipe

SHORT = 0.02
"""A run that reads less than this part of the paper's tokens is given settings of its own."""
CPU_LENGTH, CPU_BATCH, CPU_BUDGET = 128, 32, "10m"
LARGEST_CPU_BATCH = 64
SHORT_FIRST = [
    {"steps": 3, "length": CPU_LENGTH // 4, "batch": 2 * CPU_BATCH},
    {"steps": 1, "length": CPU_LENGTH, "batch": CPU_BATCH},
]
"""Phases of a run on a CPU."""
SIZE_KEYS = frozenset({"model.layers", "model.width", "model.heads"})
_CPU_SIZES = ("tiny", "mini", "small")
"""From which the size is chosen on a CPU."""
_TOKENS_A_WEIGHT = 5.0
"""A size is taken if the run reads so many tokens for each weight of its layers."""
_SUSTAINED = 0.25
"""The part of the peak of a matrix product that training reaches at these sizes."""
_VOCABULARY = 16_000
"""Assumed for the estimate of a size, before a corpus is opened."""

_RATE, _RATE_WIDTH = 2e-3, 128
"""Peak rate at a width; it falls as the width grows: at 1.4e-3 a width of 256 does not leave the plateau."""
_WARMUP = 0.1
SHORT_RUN: dict[str, Any] = {
    "training.optimizer": "adamw",
    "training.betas": [0.9, 0.98],
    "training.eps": 1e-6,
    "training.bias_correction": True,
    "training.clip": 1.0,
    "training.warmup": _WARMUP,
    "training.decay": "linear",
}
"""How a short run of any size is trained, but for its rate."""
_STARTED = 0.25
"""The part of the rate for a run that begins with a trained model."""
_INIT = 0.68
"""Weights begin with this deviation over the square root of the width: 0.06 at 128, 0.04 at 256, 0.025 at 768."""
_DROPOUTS = ((20.0, 0.0), (50.0, 0.1), (math.inf, 0.2))
"""Passes over the text, and the dropout of a run that makes fewer."""


@dataclass(frozen=True)
class Choice:
    """Keys of a recipe that were answered automatically, and why."""

    keys: Mapping[str, Any]
    reason: str


def choose_size(
    published: Recipe, *, tokens: float | None = None, seconds: float = 0.0, flops: float = 0.0
) -> Choice | None:
    """The largest size that learns enough, where the published one is larger: from the tokens of the run, or from its
    seconds and from what a matrix product reaches on this machine (`flops` a second)."""
    layers, width = published.model.layers, published.model.width
    fitting = _CPU_SIZES[0]
    for name in _CPU_SIZES:
        size = SIZES[name]
        read = tokens if tokens is not None else seconds * _SUSTAINED * flops / _training_flops(published, size)
        if read >= _TOKENS_A_WEIGHT * 12 * size["layers"] * size["width"] ** 2:
            fitting = name
    chosen = SIZES[fitting]
    if layers * width**2 <= chosen["layers"] * chosen["width"] ** 2:
        return None
    keys = {f"model.{name}": value for name, value in chosen.items()} | {"model.feedforward": 0}
    was = f"{layers} layers of width {width}, as published,"
    return Choice(keys, f"--size {fitting}: {was} would read too little text in this run (choose with --size)")


def _training_flops(published: Recipe, size: Mapping[str, int]) -> float:
    """For one token."""
    model = published.model.model_copy(update={**size, "feedforward": 0, "embedding": 0, "cutoffs": ()})
    return 3 * forward_flops(model.shape(_VOCABULARY), CPU_LENGTH, 0.15)


def choose_rows(published: Recipe, *, lengths: bool, batch: bool) -> list[Choice]:
    """The length of rows and how many a step has, each where it is open. Where both are, most steps read short rows:
    with few tokens to look at it is found sooner that neighbours matter, and a token costs less."""
    phases = phases_of(published.training)
    longest, largest = max(phase.length for phase in phases), max(phase.batch for phase in phases)
    long, large = lengths and longest > CPU_LENGTH, batch and largest > LARGEST_CPU_BATCH
    found = []
    if long and large and not published.model.memory:
        keys = {"training.length": CPU_LENGTH, "training.phases": SHORT_FIRST}
        first = SHORT_FIRST[0]
        short = f"most steps read {first['batch']} rows of {first['length']}, which teaches sooner"
        reason = f"rows of {longest}, as published, take too long on a CPU, and {short} (choose with --length)"
        found.append(Choice(keys, f"--length {CPU_LENGTH}: {reason}"))
    elif long:
        keys = {"training.length": CPU_LENGTH, "training.phases": []}
        reason = f"rows of {longest}, as published, take too long on a CPU (choose with --length)"
        found.append(Choice(keys, f"--length {CPU_LENGTH}: {reason}"))
    if large:
        reason = f"with {largest} rows a step, as published, a CPU makes too few steps (choose with --batch)"
        found.append(Choice({"training.batch": CPU_BATCH}, f"--batch {CPU_BATCH}: {reason}"))
    return found


def published_tokens(published: Recipe) -> float:
    """Positions that the published run reads."""
    phases = phases_of(published.training)
    return float(sum((phase.stop - phase.first) * phase.batch * phase.length for phase in phases))


def choose_training(
    published: Recipe, settled: Recipe, tokens: float, corpus_tokens: float, *, starts: bool = False
) -> list[Choice]:
    """How a run is trained that reads `tokens` of a text of `corpus_tokens`; nothing where the run is nearly as long as
    the published one. A run that `starts` from a trained model takes a part of the rate, so as not to unlearn it."""
    share = tokens / published_tokens(published)
    if share >= SHORT:
        return []
    rate, init = peak_rate(settled.model), initial_deviation(settled.model)
    if starts:
        rate, init = _rounded(_STARTED * rate), 0.0
    keys = {**SHORT_RUN, "training.lr": rate}
    was = published.training
    theirs = (
        f"{was.optimizer} at {was.lr:g} is for {published_tokens(published) / 1e9:,.0f} billion tokens, as published"
    )
    reason = (
        f"--lr {rate:g} with AdamW and {_WARMUP:.0%} warm-up: the run reads {_many(tokens)} tokens; "
        f"{theirs} (keep with --as-published)"
    )
    return [Choice(keys, reason), *_initial(published, init), *_dropout(published, tokens / max(1.0, corpus_tokens))]


def compared(size: str, tokens: float, corpus_tokens: float) -> dict[str, Any]:
    """What all variants of a comparison have in common: the settings of a short run, whatever their papers say."""
    model = Architecture(**SIZES[size])
    dropout = _dropout_of(tokens / max(1.0, corpus_tokens))
    return {
        **SHORT_RUN,
        "training.lr": peak_rate(model),
        "training.batch": CPU_BATCH,
        "training.length": CPU_LENGTH,
        "training.phases": [],
        "model.init_std": initial_deviation(model),
        "model.dropout": dropout,
        "model.attention_dropout": dropout,
    }


def _many(tokens: float) -> str:
    return f"{tokens / 1e6:,.1f} million" if tokens >= 1e6 else f"{tokens:,.0f}"


def _initial(published: Recipe, init: float) -> list[Choice]:
    if init <= published.model.init_std:
        return []
    reason = f"weights of {published.model.init_std:g}, as published, start a narrow network with flat attention"
    return [Choice({"model.init_std": init}, f"--set model.init_std={init:g}: {reason}")]


def _dropout(published: Recipe, passes: float) -> list[Choice]:
    wanted = _dropout_of(passes)
    model = published.model
    if (model.dropout, model.attention_dropout) == (wanted, wanted):
        return []
    keys = {"model.dropout": wanted, "model.attention_dropout": wanted}
    why = "too few to learn it by heart" if wanted == 0 else "so many that it could be learnt by heart"
    return [Choice(keys, f"--set model.dropout={wanted:g}: the run reads the text {passes:.1f} times, {why}")]


def _dropout_of(passes: float) -> float:
    return next(dropout for most, dropout in _DROPOUTS if passes < most)


def peak_rate(model: Architecture) -> float:
    """Wider networks take smaller rates."""
    return _rounded(_RATE * _RATE_WIDTH / max(_RATE_WIDTH, model.width))


def initial_deviation(model: Architecture) -> float:
    return _rounded(_INIT / math.sqrt(max(_RATE_WIDTH, model.width)))


def _rounded(number: float) -> float:
    """To two digits: a setting that can be typed again."""
    return float(f"{number:.2g}")
