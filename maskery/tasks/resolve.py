"""What a task leaves open, settled by model and training data, and told: labels, length, what is read, steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from maskery.checkpoint.model import Model
from maskery.errors import InputError
from maskery.tasks.examples import Examples
from maskery.tasks.framing.frame import frame_of, longest_row, tokenizer_of
from maskery.tasks.framing.lengths import arrangements, length_report, row_length
from maskery.tasks.framing.make import row_lengths
from maskery.tasks.framing.marks import take_marks
from maskery.tasks.framing.meta import Meta
from maskery.tasks.framing.tokens import encode
from maskery.tasks.native import native_head
from maskery.tasks.settings import TaskConfig

Say = Callable[[str], None]
USUAL = 512
"""Slots of a row at most, where a model reads any number."""


@dataclass(frozen=True)
class Splits:
    train: Examples
    dev: Examples | None = None
    test: Examples | None = None


def resolve(config: TaskConfig, model: Model, splits: Splits, labels: tuple[str, ...], say: Say) -> TaskConfig:
    """The task with nothing left open; `labels` as the training data has them."""
    if config.rows.towers != "one_row":
        raise InputError("towers are not read yet", where="rows.towers", repair='leave it at "one_row"')
    told = with_reading(config, model, say)
    told = _with_length(told, model, splits.train, say)
    steps = steps_of(told, len(splits.train))
    training = told.training.model_copy(update={"steps": steps, "length": told.rows.length})
    meta = Meta.fit(splits.train) if splits.train.meta else Meta()
    return told.model_copy(update={"labels": labels, "training": training, "meta": meta})


def with_reading(config: TaskConfig, model: Model, say: Say) -> TaskConfig:
    native = native_head(model, config.task, config.head.dropout)
    if config.task in ("tag", "qa") or config.read.pool != "auto":
        return config
    read = config.read.model_copy(update={"pool": native.pool})
    head = config.head.model_copy(update={"layers": config.head.layers or native.layers})
    if native.pool == "pooler" and model.network.pooler is None:
        say("the model has no pooler: a new one is trained")
    say(f"read: {native.pool}, the head of {model.family} ({native.name})")
    return config.model_copy(update={"read": read, "head": head})


def _with_length(config: TaskConfig, model: Model, train: Examples, say: Say) -> TaskConfig:
    tokenizer, frame = tokenizer_of(model), frame_of(model)
    marks = take_marks(tokenizer, config.rows.marks)
    for note in marks.notes:
        say(note)
    encoded = encode(train, marks.tokenizer, marks.ids)
    for line in length_report(arrangements(encoded, frame)).lines:
        say(line)
    chosen = row_length(config.rows.length, row_lengths(encoded, frame), longest_row(model), USUAL)
    say(chosen.note)
    return config.model_copy(update={"rows": config.rows.model_copy(update={"length": chosen.length})})


def steps_of(config: TaskConfig, examples: int) -> int:
    """Updates of all epochs; a batch may hold the end of one epoch and the beginning of the next."""
    return max(1, math.ceil(config.epochs * examples / config.training.batch))


def evaluations(config: TaskConfig, examples: int) -> list[int]:
    """The steps after which the development set is asked: the end of every epoch, and of training."""
    last = config.training.steps
    ends = np.arange(1, math.floor(config.epochs) + 1) * examples / config.training.batch
    return sorted({*(min(last, math.ceil(each)) for each in ends.tolist()), last})
