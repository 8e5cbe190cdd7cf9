"""What a task leaves open, settled by model and training data, and told: labels, length, what is read, steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from maskery.checkpoint.model import Model
from maskery.errors import InputError
from maskery.tasks.examples import Examples
from maskery.tasks.framing.frame import frame_of, longest_row, tokenizer_of
from maskery.tasks.framing.lengths import arrangements, length_report, row_length
from maskery.tasks.framing.marks import take_marks
from maskery.tasks.framing.meta import Meta
from maskery.tasks.framing.sides import make_sides, side_lengths
from maskery.tasks.framing.tokens import encode
from maskery.tasks.joins import orders_of, sides_of, with_sides
from maskery.tasks.native import USUAL, native_head
from maskery.tasks.no_answer import with_threshold
from maskery.tasks.questions import question_of
from maskery.tasks.seq2seq.rooms import with_room
from maskery.tasks.settings import LayerConfig, TaskConfig
from maskery.tasks.unread import require_read

Say = Callable[[str], None]


@dataclass(frozen=True)
class Splits:
    train: Examples
    dev: Examples | None = None
    test: Examples | None = None


_LARGEST = 1 << 20
"""Examples of one step."""


def resolve(config: TaskConfig, model: Model, splits: Splits, labels: tuple[str, ...], say: Say) -> TaskConfig:
    """The task with nothing left open; `labels` as the training data has them."""
    if config.task == "seq2seq":
        told, units = with_room(config, model, splits.train, splits.dev, say), len(splits.train)
    else:
        require_read(config)
        _require_able(config, model)
        told = with_reading(with_sides(config, model.family, say), model, say)
        told, units = _with_length(told, model, splits.train, say)
    _require_possible(told)
    steps = steps_of(told, units)
    training = told.training.model_copy(update={"steps": steps, "length": told.rows.length})
    told = with_threshold(told, splits.train, splits.dev, say)
    meta = Meta.fit(splits.train) if splits.train.meta else Meta()
    return told.model_copy(update={"labels": labels, "training": training, "meta": meta})


def _require_possible(config: TaskConfig) -> None:
    """Refuse a step that no memory holds, before anything is made of it."""
    if config.training.batch > _LARGEST:
        raise InputError(
            f"training.batch: {config.training.batch:,} examples a step are more than memory holds",
            repair=f"set it to {_LARGEST:,} or fewer",
        )


def _require_able(config: TaskConfig, model: Model) -> None:
    """Refuse what no network here does."""
    if model.config.target_vocabulary:
        raise InputError(
            "the model's decoder has a vocabulary of its own, so it cannot read the row again",
            repair="take a model without a decoder, or one whose decoder has the same vocabulary",
        )
    if config.head.lm and (model.config.visibility != "causal" or model.config.decoder):
        raise InputError(
            "the language model's loss needs a model that reads from the left: in any other a slot sees its answer",
            where="head.lm",
            repair="leave it at 0, or take a GPT",
        )


def with_reading(config: TaskConfig, model: Model, say: Say) -> TaskConfig:
    native = native_head(model, config.task, config.head.dropout)
    if config.task in ("tag", "qa"):
        head = config.head.model_copy(update={"layers": config.head.layers or native.layers})
        return config.model_copy(update={"head": head})
    if config.read.pool != "auto":
        return config
    if config.read.frozen and native.pool == "pooler" and model.network.pooler is None:
        layer = LayerConfig(width=model.config.width, activation="tanh")
        native = replace(native, pool="first", layers=(layer,))
        say("the model has no pooler, and it is frozen: a layer on its first slot is trained instead")
    read = config.read.model_copy(update={"pool": native.pool})
    head = config.head.model_copy(update={"layers": config.head.layers or native.layers})
    if native.pool == "pooler" and model.network.pooler is None:
        say("the model has no pooler: a new one is trained")
    say(f"read: {native.pool}, the head of {model.family} ({native.name})")
    return config.model_copy(update={"read": read, "head": head})


def _with_length(config: TaskConfig, model: Model, train: Examples, say: Say) -> tuple[TaskConfig, int]:
    """With the length of rows; and how many units (see `Question.units`) the training examples then are."""
    tokenizer, frame = tokenizer_of(model), frame_of(model)
    marks = take_marks(tokenizer, config.rows.marks)
    for note in (*marks.notes, *([frame.note] if frame.note else [])):
        say(note)
    encoded = encode(train, marks.tokenizer, marks.ids)
    for line in length_report(arrangements(encoded, frame)).lines:
        say(line)
    orders = orders_of(config)
    chosen = row_length(config.rows.length, side_lengths(encoded, frame, orders), longest_row(model), USUAL)
    say(chosen.note)
    rows, _ = make_sides(encoded, frame, config.rows, chosen.length, orders)
    units = len(np.unique(question_of(train, config.labels, sides_of(config)).units(rows)))
    if units != len(train):
        say(f"{len(train):,} examples make {units:,} units of training")
    return config.model_copy(update={"rows": config.rows.model_copy(update={"length": chosen.length})}), units


def steps_of(config: TaskConfig, units: int) -> int:
    """Updates of all epochs; a batch may hold the end of one epoch and the beginning of the next."""
    return max(1, math.ceil(config.epochs * units / config.training.batch))


def evaluations(config: TaskConfig, units: int) -> list[int]:
    """The steps after which the development set is evaluated: the end of every epoch, or of every so many, and of
    training."""
    last, every = config.training.steps, config.evaluate_every
    ends = np.arange(every, math.floor(config.epochs) + 1, every) * units / config.training.batch
    return sorted({*(min(last, math.ceil(each)) for each in ends.tolist()), last})
