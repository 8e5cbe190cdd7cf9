"""Both sides of `benchmarks.finetune_english`: `maskery.finetune`, and transformers' `Trainer`.

Everything is alike but the code: the weights to begin with (the fresh head's too: both have the one that our seed
draws), the rows (cut to the same length by the same rule) and their order, batch, rate, warm-up, decay, clipping,
dropout, threads. So with one seed both are asked the same at every step, and only what dropout draws is chance; Trainer
by length has an order of its own. Both pad a batch to its longest row or less, ask nothing in the course of training,
write the model once, and answer the development set at the end. Imports are not counted on either side; reading,
tokenising, loading and writing are.

A side's name says in which numbers it computes: float32, which is what both do unless they are told otherwise, or
bfloat16 (`training.precision`, and Trainer's `bf16`: autocast on both sides, weights in float32).
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from maskery.errors import InputError
from maskery.model.initial import initialise
from maskery.rows.order import Order
from maskery.tasks.examples import Examples
from maskery.tasks.finetune import finetune
from maskery.tasks.heads import head_of
from maskery.tasks.judge.measure import judge
from maskery.tasks.read.labels import labels_of
from maskery.tasks.resolve import Splits
from maskery.train.loop import Update

STARTING = 2
"""Steps at the beginning that do not count for the pace: memory is taken and code is loaded."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    epochs: float = 2.0
    batch: int = 32
    lr: float = 5e-5
    warmup: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0
    length: int = 128
    head_dropout: float = 0.1


@dataclass(frozen=True, kw_only=True)
class Cell:
    model: Path
    read: Callable[[], Splits]
    settings: Settings
    seed: int
    folder: Path
    """For the run; it is removed."""
    steps: int = 0
    """End after so many; 0: all epochs."""
    threads: int = 2


@dataclass(frozen=True)
class Done:
    answers: list[Any]
    """To the development set."""
    seconds: list[float]
    """Of each step."""
    tokens: Callable[[], int]
    """Of all training rows; reckoned when the clock has stopped."""
    loss: float
    """The mean over all steps, dropout included."""


def measured(side: str, cell: Cell) -> dict[str, Any]:
    """What a side says of the development set, and how long it took."""
    torch.set_num_threads(cell.threads)
    begin = SIDES[side]
    if side not in OURS:
        require_trainer()
        import transformers.trainer  # noqa: F401
    shutil.rmtree(cell.folder, ignore_errors=True)
    began, worked = time.perf_counter(), time.process_time()
    splits = cell.read()
    assert splits.dev is not None
    done = begin(cell, splits)
    total, processor = time.perf_counter() - began, time.process_time() - worked
    shutil.rmtree(cell.folder, ignore_errors=True)
    train, dev = splits.train, splits.dev
    judgement = judge(train.task, [each.label for each in dev], done.answers, labels=labels_of(train, train.task))
    counted = done.seconds[STARTING:] or done.seconds
    return {
        "metrics": judgement.metrics,
        "intervals": {name: list(pair) for name, pair in judgement.intervals.items()},
        "rows": [len(train), len(dev)],
        "tokens": done.tokens(),
        "steps": len(done.seconds),
        "loss": done.loss,
        "seconds": {
            "total": total,
            "training": sum(done.seconds),
            "step": sum(counted) / len(counted),
            "processor": processor,
        },
    }


def ours(cell: Cell, splits: Splits, precision: str = "float32") -> Done:
    asked, train = cell.settings, splits.train
    training = {"lr": asked.lr, "batch": asked.batch, "warmup": asked.warmup, "weight_decay": asked.weight_decay}
    training |= {"clip": asked.clip, "seed": cell.seed, "save_every": 0, "precision": precision}
    epochs = min(asked.epochs, cell.steps * asked.batch / len(train)) if cell.steps else asked.epochs
    settings = {"epochs": epochs, "rows": {"length": asked.length}, "training": training}
    settings["head"] = {"dropout": asked.head_dropout}
    updates: list[Update] = []
    run = finetune(
        cell.model,
        out=cell.folder,
        train=train,
        settings=settings,
        say=_nothing,
        watching=lambda part: nullcontext(lambda update, line: updates.append(update)),
    )
    assert splits.dev is not None
    answers = list(run.model.predict(splits.dev, _nothing).answers)
    seconds, loss = [each.seconds for each in updates], float(np.mean([each.loss for each in updates]))
    return Done(answers, seconds, lambda: int(run.model.feed(train, _nothing).rows.length.sum()), loss)


def require_trainer() -> None:
    for name in ("transformers", "accelerate"):
        if find_spec(name) is None:
            raise InputError(
                f"the side of transformers' Trainer needs {name}",
                repair=f"pip install {name}, or --sides ours",
            )


def trainer(cell: Cell, splits: Splits, *, grouped: bool = False, bfloat16: bool = False) -> Done:
    from transformers import AutoTokenizer, DataCollatorWithPadding, Trainer

    train, dev = splits.train, splits.dev
    assert dev is not None
    labels = labels_of(train, train.task)
    tokenizer = AutoTokenizer.from_pretrained(cell.model)
    rows, asked = (rows_of(tokenizer, each, labels, cell.settings.length) for each in (train, dev))
    watch, steps = _watch(), steps_of(cell, len(rows))
    made = Trainer(
        model=begun(cell.model, train.task, len(labels), cell.seed, cell.settings.head_dropout),
        args=_arguments(cell, steps, grouped, bfloat16),
        train_dataset=rows if grouped else in_our_order(rows, steps, cell),
        data_collator=DataCollatorWithPadding(tokenizer),
        callbacks=[watch],
    )
    loss = float(made.train().training_loss)
    made.save_model(str(cell.folder))
    if grouped:
        made.args.train_sampling_strategy = "random"  # it would ask in its own order, and answer so
    scores = np.asarray(made.predict(asked).predictions)
    answers = scores[:, 0].tolist() if train.task == "regress" else [labels[each] for each in scores.argmax(1)]
    return Done(answers, np.diff(watch.times).tolist(), lambda: sum(len(row["input_ids"]) for row in rows), loss)


def steps_of(cell: Cell, rows: int) -> int:
    return cell.steps or math.ceil(rows * cell.settings.epochs / cell.settings.batch)


def in_our_order(rows: Sequence[dict[str, Any]], steps: int, cell: Cell) -> list[dict[str, Any]]:
    """The rows of all steps, one epoch behind the other, as our side reads them."""
    _, numbers = Order(cell.seed, "task", (len(rows),)).visit(np.arange(steps * cell.settings.batch))
    return [rows[number] for number in numbers.tolist()]


def rows_of(tokenizer: Any, examples: Examples, labels: tuple[str, ...], length: int) -> list[dict[str, Any]]:
    """What `DataCollatorWithPadding` takes; texts that are too long are cut as ours are."""
    fields = [[each.texts[place] for each in examples] for place in range(len(examples.fields))]
    coded = tokenizer(*fields, truncation=True, max_length=length)
    numbers = {name: number for number, name in enumerate(labels)}
    wanted = [numbers[str(each.label)] if labels else float(str(each.label)) for each in examples]
    return [{**{name: coded[name][row] for name in coded}, "labels": label} for row, label in enumerate(wanted)]


def begun(folder: Path, task: str, classes: int, seed: int, dropout: float) -> Any:
    """transformers' model with the head that ours begins with."""
    from transformers import AutoModelForSequenceClassification

    kind = {"num_labels": 1, "problem_type": "regression"} if task == "regress" else {"num_labels": classes}
    model = AutoModelForSequenceClassification.from_pretrained(folder, classifier_dropout=dropout, **kind)
    head = head_of(model.config.hidden_size, kind["num_labels"])
    initialise(head, model.config.initializer_range, seed, prefix="head")
    model.classifier.load_state_dict(head.answer.state_dict())
    return model


def _arguments(cell: Cell, steps: int, grouped: bool, bfloat16: bool) -> Any:
    from transformers import TrainingArguments

    asked = cell.settings
    return TrainingArguments(
        output_dir=str(cell.folder),
        max_steps=steps,
        per_device_train_batch_size=asked.batch,
        per_device_eval_batch_size=64,
        learning_rate=asked.lr,
        warmup_steps=round(asked.warmup * steps),
        weight_decay=asked.weight_decay,
        max_grad_norm=asked.clip,
        bf16=bfloat16,
        lr_scheduler_type="linear",
        logging_strategy="no",
        save_strategy="no",
        eval_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=not torch.cuda.is_available(),
        dataloader_pin_memory=False,
        seed=cell.seed,
        train_sampling_strategy="group_by_length" if grouped else "sequential",
    )


def _watch() -> Any:
    from transformers import TrainerCallback

    class Watch(TrainerCallback):  # type: ignore[misc]
        """The times at which training began and each step ended."""

        def __init__(self) -> None:
            self.times: list[float] = []

        def on_train_begin(self, *_: Any, **__: Any) -> None:
            self.times.append(time.perf_counter())

        def on_step_end(self, *_: Any, **__: Any) -> None:
            self.times.append(time.perf_counter())

    return Watch()


def _nothing(_text: str) -> None:
    pass


SIDES: dict[str, Callable[[Cell, Splits], Done]] = {
    "ours": ours,
    "ours_bfloat16": partial(ours, precision="bfloat16"),
    "trainer": trainer,
    "grouped": partial(trainer, grouped=True),
    "grouped_bfloat16": partial(trainer, grouped=True, bfloat16=True),
}
"""Trainer, and Trainer with batches of like lengths."""
OURS = ("ours", "ours_bfloat16")
