"""`maskery.finetune`: a model and labelled text in, a run folder with the best model and how good it is out.

run = maskery.finetune("bert-folder", data="folder-with-train-and-dev", out="run")
run.judgement.metrics["accuracy"]; run.predict(["a text", "another"])
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import ValidationError

from maskery import files
from maskery.checkpoint.load import load
from maskery.errors import InputError
from maskery.tasks.examples import Example, Examples
from maskery.tasks.feed import TaskFeed
from maskery.tasks.folder import TaskFolder
from maskery.tasks.judge.calibration import calibrated
from maskery.tasks.judge.card import model_card, write_card
from maskery.tasks.judge.confusion import confusion
from maskery.tasks.judge.measure import Judgement, judge
from maskery.tasks.judge.mistakes import worst_mistakes
from maskery.tasks.judge.report import Evidence, report
from maskery.tasks.judge.results import eval_results, write_eval_results
from maskery.tasks.model import TaskModel
from maskery.tasks.questions import Predicted
from maskery.tasks.read.files import read_examples
from maskery.tasks.read.folder import read_folder, seen_in
from maskery.tasks.read.labels import labels_of, require_known
from maskery.tasks.read.processor import examples_of_processor, splits_of_processor
from maskery.tasks.resolve import Splits, resolve
from maskery.tasks.run import Watch, tune
from maskery.tasks.settings import TaskConfig
from maskery.tasks.system import TaskSystem
from maskery.tasks.tags import Tags

Say = Callable[[str], None]


def say_on_stderr(text: str) -> None:
    print(text, file=sys.stderr)


@dataclass(frozen=True)
class TaskRun:
    """A finished fine-tuning."""

    path: Path
    model: TaskModel
    judgement: Judgement | None
    """On the development set, where there was one."""

    def predict(self, texts: Iterable[str | Sequence[str]]) -> Predicted:
        return self.model.predict(examples_of_texts(self.model, texts), say_on_stderr)


def examples_of_texts(model: TaskModel, texts: Iterable[str | Sequence[str]]) -> Examples:
    """Texts without labels as the model's task reads them: one a line, or as many as it has fields."""
    fields = model.config.columns.text
    items = []
    for number, given in enumerate(texts):
        parts = (given,) if isinstance(given, str) else tuple(given)
        if len(parts) != len(fields) or not all(isinstance(part, str) for part in parts):
            raise InputError(
                f"text {number}: {len(parts)} texts, and the task reads {', '.join(fields)}",
                repair=f"give {len(fields)} strings each",
            )
        items.append(Example(guid=f"text-{number}", texts=parts))
    return Examples(task=model.config.task, fields=fields, items=tuple(items))


def read_splits(
    config: Mapping[str, Any],
    *,
    task: str | None = None,
    train: str | Path | None = None,
    dev: str | Path | None = None,
    test: str | Path | None = None,
    data: str | Path | None = None,
    processor: str | None = None,
) -> Splits:
    """The examples of a folder, of single files, or of a class of the user's own."""
    columns = made_config({"task": "classify", **config}).columns
    if processor is not None:
        where = Path(data or ".")
        found = {name: examples_of_processor(processor, where, name, task) for name in splits_of_processor(processor)}
    elif data is not None:
        found = read_folder(Path(data), task, columns)
    elif train is not None:
        found = {"train": read_examples(Path(train), task, "train", columns)}
        first = found["train"]
        seen = seen_in(first, labels_of(first, first.task))
        for name, path in (("dev", dev), ("test", test)):
            if path is not None:
                found[name] = read_examples(Path(path), first.task, name, columns, seen=seen)
    else:
        raise InputError("there is nothing to learn from", repair="--data FOLDER, or --train FILE --dev FILE")
    return Splits(found["train"], found.get("dev"), found.get("test"))


def made_config(values: Mapping[str, Any]) -> TaskConfig:
    """A task from nested values; what does not fit is named."""
    usual = TaskConfig.model_fields["training"].default.model_dump(exclude_unset=True)
    try:
        return TaskConfig(**{**values, "training": {**usual, **values.get("training", {})}})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(first["msg"], where=where, repair=f"leave out {where}, or see the guide of finetune") from None


def finetune(
    model: str | Path,
    *,
    out: str | Path,
    task: str | None = None,
    train: str | Path | Examples | None = None,
    dev: str | Path | Examples | None = None,
    test: str | Path | Examples | None = None,
    data: str | Path | None = None,
    processor: str | None = None,
    settings: Mapping[str, Any] | None = None,
    resume: bool = False,
    say: Say = say_on_stderr,
    watch: Watch | None = None,
) -> TaskRun:
    """Train `model` for a task on a folder of files (`data`), single files, or `Examples`; without a task, it is found.

    `settings` are the tables of task.toml as nested values: {"epochs": 2, "training": {"lr": 2e-5}}.
    """
    given = dict(settings or {})
    if isinstance(train, Examples):
        splits = Splits(train, _as_examples("dev", dev), _as_examples("test", test))
    else:
        paths = {"train": train, "dev": dev, "test": test}
        plain = {name: path for name, path in paths.items() if not isinstance(path, Examples)}
        splits = read_splits(given, task=task, data=data, processor=processor, **plain)
    config, labels = _settled(given, splits, str(model), say)
    loaded = load(model)
    for line in loaded.report.lines():
        say(f"{model}: {line}")
    config = resolve(config, loaded, splits, labels, say)
    begun = TaskModel(loaded, config)
    if (not config.labels or config.task == "choice" or loaded.labels == config.labels) and begun.take_native():
        say(f"the model has the task's own head, {begun.native.name}: training goes on from it")
    made = tune(begun, splits, Path(out), resume=resume, say=say, **_watched(watch))
    judgement = None if splits.dev is None else write_judgement(made, splits.dev, Path(out), say)
    return TaskRun(Path(out), made, judgement)


def _as_examples(name: str, given: str | Path | Examples | None) -> Examples | None:
    """Files are read with what is known of the training file, so they do not go with examples."""
    if given is None or isinstance(given, Examples):
        return given
    raise InputError(f"{name} is a file, and train is not", repair=f"give {name} as Examples, or train as a file")


def _watched(watch: Watch | None) -> dict[str, Watch]:
    return {} if watch is None else {"watch": watch}


def _settled(given: dict[str, Any], splits: Splits, model: str, say: Say) -> tuple[TaskConfig, tuple[str, ...]]:
    """The task with what its examples are, and its labels in their order."""
    train = splits.train
    for split in (train, splits.dev, splits.test):
        for note in () if split is None else split.notes:
            say(note)
    labels = labels_of(train, train.task)
    for other in (splits.dev, splits.test):
        if other is not None:
            require_known(other, labels)
    columns = {**given.get("columns", {}), "text": train.fields, "meta": train.meta}
    config = made_config({**given, "task": train.task, "model": model, "columns": columns})
    return config, Tags(labels).names if train.task == "tag" else labels


def write_judgement(made: TaskModel, dev: Examples, out: Path, say: Say) -> Judgement:
    """Ask the development set once more, and write what was found: a page, a card, eval_results.txt."""
    feed = made.feed(dev, lambda note: None)
    found = made.answers(feed)
    judgement, evidence = judged(made, dev, found)
    name = out.resolve().name
    report(judgement, name, evidence).save(out / "report.html")
    write_card(out, model_card(judgement, name, labels=made.config.labels, evidence=evidence))
    step = TaskFolder(out).state["step"] if TaskFolder(out).begun else made.config.training.steps
    write_eval_results(out, eval_results(judgement, eval_loss=loss_of_all(made.system, feed), global_step=step))
    files.write_json(out / "evaluation.json", judgement.plain())
    for note in (*found.notes, *judgement.notes):
        say(note)
    return judgement


def judged(made: TaskModel, examples: Examples, found: Predicted) -> tuple[Judgement, Evidence]:
    """How good the answers to labelled examples are, and what a page tells beside the figures."""
    gold, lengths = made.question(examples).gold, made.feed(examples, lambda note: None).rows.length
    judgement = judge(
        made.config.task,
        gold,
        found.answers,
        labels=made.config.labels,
        probabilities=found.probabilities,
        groups=found.groups,
    )
    return judgement, _evidence(made, examples, lengths.tolist(), found, gold)


def _evidence(made: TaskModel, dev: Examples, lengths: list[int], found: Predicted, gold: list[Any]) -> Evidence:
    chances = None if found.probabilities is None else found.probabilities.max(axis=1).tolist()
    mistakes = worst_mistakes(made.config.task, dev, gold, found.answers, chances)
    facts = {"model": made.config.model, "examples": len(dev), "epochs": made.config.epochs}
    plain: dict[str, Any] = {"mistakes": mistakes, "lengths": lengths, "limit": 0, "facts": facts}
    if made.config.task not in ("classify", "pair"):
        return Evidence(**plain)
    numbers = [made.config.labels.index(name) for name in gold]
    assert found.probabilities is not None
    return Evidence(
        confusion=confusion(gold, found.answers, made.config.labels),
        calibration=calibrated(found.probabilities, np.array(numbers)),
        **plain,
    )


@torch.no_grad()
def loss_of_all(system: TaskSystem, feed: TaskFeed) -> float:
    """The mean loss of everything that a feed asks."""
    total, count = 0.0, 0
    for start in range(0, feed.units, 32):
        batch = feed.asked(np.arange(start, min(start + 32, feed.units))).to(system.head.answer.weight.device)
        total += float(system(batch)["task"].detach())
        count += system.counts(batch)["task"]
    return total / max(1, count)
