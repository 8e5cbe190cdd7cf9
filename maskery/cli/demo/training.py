"""The demo's training: settings that let a small network learn in minutes, as many updates as fit into the time, and a
bar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, isqrt
from pathlib import Path
from typing import Any

import torch

from maskery.cli.live import Smooth
from maskery.cli.output import Update as Bar
from maskery.corpus.store import Corpus
from maskery.errors import InputError
from maskery.feed import Feed
from maskery.recipes.recipe import Recipe, recipe
from maskery.system import System
from maskery.train import budget, defaults
from maskery.train.loggers import Logger
from maskery.train.loop import Update
from maskery.train.tokens import shares, tokens_in

RECIPE, SIZE, LENGTH = "roberta", "tiny", 32
"""RoBERTa's answers: rows of full sentences and new masks every time; no time is spent on sentence pairs."""
SETTINGS: dict[str, Any] = {
    "training.length": LENGTH,
    "training.phases": [{"steps": 1, "length": 16, "batch": 32}, {"steps": 1, "length": LENGTH, "batch": 16}],
    "training.eval_rows": 512,
    "training.keep": 1,
    "model.max_length": LENGTH,
}
"""Small batches make more updates of a minute. Half of the updates read rows of 16: where there are few tokens to look
at, it is found sooner that neighbours matter. How it is trained follows from `train/defaults`, as for `pretrain`."""
EVALUATIONS = 4
FEWEST_TOKENS, FEWEST_HELD_OUT = 3000, 200
_SECONDS, _FEWEST_SECONDS, _IN_ALL = 140.0, 20.0, 200.0
_VOCABULARY = 2500, 5000
_SMALL, _EPOCHS = 100_000, 100
"""Tokens below which a text is soon learnt by heart; then the passes over it are limited."""
_COPIES = 8
"""Passes over a small text in one plan: its few held-out rows are examined under so many masks."""


def default_seconds(before: float) -> float:
    """Time for training where none was asked for: less where the steps before it took long, so that a slow machine
    is ready within five minutes too, even if it becomes slower still."""
    return min(_SECONDS, max(_FEWEST_SECONDS, _IN_ALL - 2 * before))


def vocabulary_for(characters: int) -> int:
    """Room for every character of a short Chinese text; not so many pieces that most are hardly ever seen."""
    fewest, most = _VOCABULARY
    return min(most, max(fewest, 8 * isqrt(characters)))


def require_enough(corpus: Corpus, name: str) -> None:
    """Refuse a text on which nothing could be learnt or measured."""
    heldout = tokens_in(corpus, "heldout")
    found = tokens_in(corpus)
    if found < FEWEST_TOKENS or heldout < FEWEST_HELD_OUT:
        raise InputError(
            f"too little text: {found:,} tokens to learn from and {heldout:,} held out; the demo needs "
            f"{FEWEST_TOKENS:,} and {FEWEST_HELD_OUT:,}, about 20 kB of English or 12 kB of Chinese",
            where=name,
            repair="give more text with --text, or leave --text out",
        )


@dataclass(frozen=True)
class Settled:
    recipe: Recipe
    measured: Mapping[int, float]
    """Seconds of an update by the number of threads tried."""
    epochs: int | None
    """The most passes over a small text, where they and not the time set the number of updates."""


def settle(corpus: Corpus, seconds: float, seed: int) -> Settled:
    """The demo's recipe with as many updates as the time allows; torch is left with the number of threads that was
    quicker: on cores that others use too, one thread can be quicker than two."""
    open_ended = _open_ended(corpus, seed)
    speeds = {}
    for threads in sorted({1, torch.get_num_threads()}):
        torch.set_num_threads(threads)
        speeds[threads] = budget.measure(open_ended, corpus, seconds)
    measured = {threads: sum(each.share * each.seconds for each in found) for threads, found in speeds.items()}
    threads = min(measured, key=measured.__getitem__)
    torch.set_num_threads(threads)
    fitting = budget.steps_within(seconds, speeds[threads], 0, EVALUATIONS * open_ended.training.eval_rows)
    most = _most_steps(open_ended, corpus)
    steps = fitting if most is None else min(fitting, most)
    every = ceil(steps / EVALUATIONS)
    settled = open_ended.changed(
        {"training.steps": steps, "training.eval_every": every, "training.save_every": max(1, steps // 2)}
    )
    return Settled(settled, measured, _EPOCHS if most is not None and most < fitting else None)


def _open_ended(corpus: Corpus, seed: int) -> Recipe:
    small = tokens_in(corpus) < _SMALL
    answers: dict[str, Any] = {"training.seed": seed, "rows.copies": _COPIES if small else 1}
    drawn = recipe(RECIPE, {**SETTINGS, **answers}, size=SIZE)
    passes = _EPOCHS if small else 1  # a larger text is read a few times
    tokens = tokens_in(corpus)
    chosen = defaults.choose_training(recipe(RECIPE), drawn, float(passes * tokens), tokens)
    return drawn.changed({key: value for choice in chosen for key, value in choice.keys.items()})


def _most_steps(asked: Recipe, corpus: Corpus) -> int | None:
    if tokens_in(corpus) >= _SMALL:
        return None
    feed = Feed(asked, corpus, asked.training.seed)
    passes = sum(share * phase.batch / len(feed.plan(phase)) for phase, share in shares(asked))
    return max(1, ceil(_EPOCHS / (passes * asked.rows.copies)))


class Watch(Logger):
    """Moves a bar with the run."""

    def __init__(self, bar: Bar, note: str) -> None:
        self.bar, self.note, self.steps, self.loss = bar, note, 1, Smooth()

    def begin(self, run: Path, recipe: Recipe, step: int) -> None:
        self.steps = recipe.training.steps

    def log(self, update: Update, line: Mapping[str, Any]) -> None:
        self.loss.add(update.loss)
        note = self.note.format(step=update.step, steps=self.steps, loss=self.loss.value)
        self.bar(update.step, self.steps, note)

    def end(self, error: BaseException | None) -> None:
        return None


def parameters(asked: Recipe, corpus: Corpus) -> int:
    return sum(each.numel() for each in System(asked, corpus.vocabulary).parameters())
