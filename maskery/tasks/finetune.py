"""`maskery.finetune`: a model and labelled text in, a run folder with the best model and how good it is out.

run = maskery.finetune("bert-folder", data="folder-with-train-and-dev", out="run")
run = maskery.finetune("bert-folder", train=pandas.read_csv("train.csv"), dev=[{"text": "a", "label": "x"}], out="run")
run.judgement.metrics["accuracy"]; run.predict(["a text", "another"])
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from maskery import arguments, files
from maskery.arguments import checked
from maskery.checkpoint.fingerprint import model_fingerprint
from maskery.checkpoint.load import load
from maskery.checkpoint.locate import locate
from maskery.errors import ArgumentError, ArgumentTypeError, InputError, UnknownName
from maskery.records import Records
from maskery.tasks.adapt import adapt
from maskery.tasks.copies import FILE as COPIES
from maskery.tasks.copies import overlap_of
from maskery.tasks.defaults import defaults_of, short_note
from maskery.tasks.examples import Example, Examples
from maskery.tasks.folder import FINETUNE, TaskFolder, require_kind
from maskery.tasks.judge.measure import Judgement
from maskery.tasks.judging import Repeated, read_judgement, read_repeated
from maskery.tasks.keys import as_tables, known_keys
from maskery.tasks.model import classes_of
from maskery.tasks.own_loss import OwnLoss, require_loss, taken_loss
from maskery.tasks.plan import FILE as PLAN
from maskery.tasks.plan import Plan, Watching, keep_plan, kept_plan, require_dev
from maskery.tasks.questions import Predicted
from maskery.tasks.read.files import read_examples
from maskery.tasks.read.folder import read_folder, read_split, seen_in
from maskery.tasks.read.given import SETTINGS, in_python, of_argument
from maskery.tasks.read.labels import known_only, labels_of, require_known
from maskery.tasks.read.mapping import mapped
from maskery.tasks.read.processor import read_processor
from maskery.tasks.read.turned import check_order
from maskery.tasks.resolve import Splits, resolve
from maskery.tasks.run import require_same
from maskery.tasks.settings import TaskConfig
from maskery.tasks.several import Job, begun_model, trained, trainings
from maskery.tasks.tags import Tags
from maskery.tasks.together import CLASSES, SCORES, Answering
from maskery.tasks.weak import weakness
from maskery.tasks.work import Work
from maskery.train.lock import locked
from maskery.train.run import occupied

Say = Callable[[str], None]
Labelled = str | os.PathLike[str] | Examples | Iterable[Mapping[str, Any]]
"""A file, examples that were read before, or rows: a table or dicts."""
_DATA = 'the path of a folder, or a dict by split: {"train": ..., "dev": ...}; one table is given as train='
_NOTABLE = 0.1
"""The part of a budget that may go without a word before training begins."""


def say_on_stderr(text: str) -> None:
    print(text, file=sys.stderr)


@dataclass(frozen=True)
class TaskRun:
    """A finished fine-tuning."""

    path: Path
    model: Answering
    judgement: Judgement | None
    """On the development set, where there was one."""

    def __fspath__(self) -> str:
        """A run stands wherever the path of its folder may."""
        return str(self.path)

    @property
    def repeated(self) -> Repeated:
        """What several trainings told: a curve, the figures of all seeds."""
        return read_repeated(self.path)

    def predict(self, texts: Any) -> Predicted:
        """`maskery.predict` of this run."""
        from maskery.tasks.predict import predict

        return predict(self, texts)


def examples_of_texts(model: Answering, texts: Iterable[str | Sequence[str]]) -> Examples:
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
    return check_order(Examples(task=model.config.task, fields=fields, items=tuple(items)), "texts")


def read_splits(
    config: Mapping[str, Any],
    *,
    task: str | None = None,
    train: str | Path | Records | None = None,
    dev: str | Path | Records | None = None,
    test: str | Path | Records | None = None,
    data: str | Path | Mapping[str, object] | None = None,
    processor: str | None = None,
) -> Splits:
    """The examples of a folder or a dict by split, of single files or rows, or of a class of the user's own."""
    columns = made_config({"task": "classify", **config}).columns
    if processor is not None:
        where = arguments.path("data", data or ".", "the path of the folder that the processor reads")
        found = {name: mapped(each, columns.map) for name, each in read_processor(processor, where, task).items()}
    elif data is not None:
        found = read_folder(data if isinstance(data, Mapping) else Path(data), task, columns)
    elif train is not None:
        found = {"train": read_examples(_file(train), task, "train", columns)}
        first = found["train"]
        seen = seen_in(first, labels_of(first, first.task))
        for name, other in (("dev", dev), ("test", test)):
            read = None if other is None else read_split(first, (_file(other),), name, columns, seen)
            if isinstance(read, str):
                found["train"] = replace(found["train"], notes=(*found["train"].notes, read))
            elif read is not None:
                found[name] = read
    else:
        raise InputError("there is nothing to learn from", repair="--data FOLDER, or --train FILE --dev FILE")
    return with_known_labels(Splits(found["train"], found.get("dev"), found.get("test")))


def with_known_labels(splits: Splits) -> Splits:
    """Rows of the test set whose label is not one of those of train have none."""
    if splits.test is None:
        return splits
    return replace(splits, test=known_only(splits.test, labels_of(splits.train, splits.train.task)))


def _file(given: str | Path | Records) -> Path | Records:
    return given if isinstance(given, Records) else Path(given)


def made_config(values: Mapping[str, Any]) -> TaskConfig:
    """A task from nested values; what does not fit is named."""
    usual = TaskConfig.model_fields["training"].default.model_dump(exclude_unset=True)
    try:
        return TaskConfig(**{**values, "training": {**usual, **values.get("training", {})}})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise UnknownName("key of task.toml", where, known_keys()) from None
        raise InputError(first["msg"], where=where, repair=f"leave out {where}, or see the guide of finetune") from None


@checked
def finetune(
    model: str | os.PathLike[str],
    *,
    out: str | Path,
    task: str | None = None,
    train: Labelled | None = None,
    dev: Labelled | None = None,
    test: Labelled | None = None,
    data: str | Path | Mapping[str, Any] | None = None,
    processor: str | None = None,
    settings: Mapping[str, Any] | None = None,
    plan: Plan | None = None,
    resume: bool = False,
    say: Say = say_on_stderr,
    watching: Watching | None = None,
) -> TaskRun:
    """Train `model` for a task; without `task`, it is found by the columns.

        run = maskery.finetune("bert", out="run", train=frame, dev=[{"text": "a text", "label": "x"}, ...])

    `train`, `dev`, `test`: each the path of a file, a pandas DataFrame, a `datasets.Dataset`, a list or generator of
    dicts, or `Examples`. `data` has all of them: the path of a folder, a `DatasetDict` or another dict by split.
    `settings` are keys of task.toml, {"epochs": 2, "training": {"lr": 2e-5}} or {"training.lr": 2e-5}; head.loss may be
    a function. `plan`: what is trained besides or before, such as `Plan(seeds=3)`. `watching` is told of every update.
    """
    began = time.monotonic()
    given, own = taken_loss(as_tables(settings or {}), say)
    model = _require_able(model, out, resume)
    with in_python(SETTINGS):
        splits = _splits({"train": train, "dev": dev, "test": test}, given, task, data, processor)
    return learn(model, splits, given, out, plan or Plan(), began, resume=resume, say=say, watching=watching, own=own)


def learn(
    model: str | Path,
    splits: Splits,
    given: dict[str, Any],
    out: str | Path,
    plan: Plan,
    began: float,
    *,
    resume: bool,
    say: Say,
    watching: Watching | None,
    own: OwnLoss | None = None,
) -> TaskRun:
    """`finetune` of examples that have been read. `began`: when the clock of a budget started (`time.monotonic`).
    `own`: the loss that `given` only names."""
    _require_able(model, out, resume)
    require_dev(plan, splits)
    config, labels = _settled(given, splits, str(model), say)
    loaded = load(model)
    for line in [*filter(None, [loaded.note]), *loaded.report.lines()]:
        say(f"{model}: {line}")
    weak = weakness(loaded, splits.train)
    if named := short_note(model) if weak is None else weak.note:
        say(named)
    defaults = defaults_of(config, given, loaded, model, len(splits.train), weak is not None)
    config = resolve(defaults.applied(config, len(splits.train), say), loaded, splits, labels, say)
    if config.task != "seq2seq":
        require_loss(config, classes_of(config), own)
    work = Work(source=model, out=Path(out), splits=splits, say=say, watching=watching, loaded=loaded, loss=own)
    work.base = model_fingerprint(loaded)
    work.defaults = defaults
    work.overlap = overlap_of(splits)
    for note in work.overlap.notes:
        say(note)
    run = _carried_out(plan, config, work, began)
    if work.overlap.table:
        files.write_text(run.path / COPIES, work.overlap.table)
    return run


def _carried_out(plan: Plan, config: TaskConfig, work: Work, began: float) -> TaskRun:
    """Adapt, and train as often as planned; a run that was begun goes on."""
    out, before = work.out, kept_plan(work.out, plan)
    if before is not None and TaskFolder(out).begun and TaskFolder(out).state.get("finished"):
        free = [*plan.changes, *work.open_by_time(plan.budget)]
        require_same(TaskFolder(out), work.origins(work.splits), config, free)
        work.say(f"{out}: already finished at step {TaskFolder(out).state['step']}")
        return TaskRun(out, work.opened(out), read_judgement(out))
    shorter = _with_cuts(plan, config, work)
    with locked(out) if shorter.several else nullcontext():
        if before is None and not plan.plain_training:
            out.mkdir(parents=True, exist_ok=True)
            keep_plan(out, plan, 0.0)
        if plan.adapt:
            _adapt(plan, config, work)
        seconds = float(before["seconds"]) if before else 0.0
        if plan.budget and not seconds:
            spent = time.monotonic() - began
            seconds = plan.budget - spent
            if seconds <= 0:
                raise InputError(
                    f"the budget of {plan.budget:.0f} s was over before training began: reading and preparing took "
                    f"{spent:.0f} s",
                    repair=f"--budget {2 * math.ceil(spent)}s, or fewer rows",
                )
            if spent > _NOTABLE * plan.budget:
                work.say(f"{spent:.0f} s of the budget of {plan.budget:.0f} s went before training began")
            keep_plan(out, plan, seconds)
        job = Job(path=out, config=config, train=work.splits.train, seconds=seconds)
        work.many = trainings(shorter, job)
        judgement = trained(job, shorter, work)
    return TaskRun(out, work.opened(out), judgement)


def _adapt(plan: Plan, config: TaskConfig, work: Work) -> None:
    loaded = work.loaded or load(work.source)
    seed = config.training.seed
    adapt(loaded, work.source, work.splits.train, work.out, plan.adapt, seed, work.say, work.watching)
    work.loaded = loaded


def _with_cuts(plan: Plan, config: TaskConfig, work: Work) -> Plan:
    """Where no row is cut, all ends are the same and one training is enough."""
    if not plan.truncate:
        return plan
    if plan.truncate == "fuse" and config.task not in (*CLASSES, *SCORES):
        raise InputError(
            f"--truncate fuse: answers of {config.task} cannot be averaged", repair="--truncate all keeps the best"
        )
    made = begun_model(load(work.source), config, lambda note: None)
    splits = [split for split in (work.splits.train, work.splits.dev) if split is not None]
    cut = sum(length > made.room for split in splits for length in made.uncut(split))
    if config.rows.windows or config.task == "qa" or not (cut or config.rows.limits):
        why = "long texts are read in windows" if cut else f"every row fits into {made.room} slots"
        work.say(f"--truncate {plan.truncate}: no row is cut ({why}), so there is one training")
        return plan.model_copy(update={"truncate": ""})
    return plan


def _require_able(model: str | os.PathLike[str], out: str | Path, resume: bool) -> Path:
    """The model's path. What is no model, or no place for a run, is told before anything is read: at `out` is a
    fine-tuning that was begun, or nothing."""
    found = arguments.path("model", model, "the path of a model or run folder")
    locate(found)
    out = arguments.path("out", out, "the path of the run folder to write")
    if occupied(out, resume) and (TaskFolder(out).begun or not (out / PLAN).is_file()):
        require_kind(TaskFolder(out), FINETUNE)
    return found


def _splits(
    split: Mapping[str, Labelled | None],
    config: Mapping[str, Any],
    task: str | None,
    data: object,
    processor: str | None,
) -> Splits:
    """What the arguments of a call hold, by split. Files and rows are read with what is known of those for training, so
    they do not go with examples."""
    found = {name: of_argument(name, value) for name, value in split.items()}
    beside = next((name for name, each in found.items() if each is not None), None)
    if beside is not None and (data is not None or processor is not None):
        source = "data" if data is not None else "processor"
        raise ArgumentError(f"{source} and {beside} both say what to read", repair=f"keep {source}, or {beside}")
    if data is not None and not isinstance(data, Mapping):
        data = arguments.path("data", data, _DATA)
    examples = {name: each for name, each in found.items() if isinstance(each, Examples)}
    if not examples:
        plain = {name: each for name, each in found.items() if not isinstance(each, Examples)}
        return read_splits(config, task=task, data=data, processor=processor, **plain)
    other = next((name for name, each in found.items() if not isinstance(each, Examples | None)), None)
    if other is not None or "train" not in examples:
        name, kind = other or "train", {Path: "a file", Records: "rows"}
        what = next((said for each, said in kind.items() if isinstance(found[name], each)), "None")
        cause = f"{name} is {what}, and {next(iter(examples))} is Examples"
        raise ArgumentTypeError(cause, repair="give all of them as Examples, or all as files or rows")
    to = made_config({"task": "classify", **config}).columns.map
    return with_known_labels(Splits(**{name: mapped(each, to) for name, each in examples.items()}))


def _settled(given: dict[str, Any], splits: Splits, model: str, say: Say) -> tuple[TaskConfig, tuple[str, ...]]:
    """The task with what its examples are, and its labels in their order."""
    train = splits.train
    for split in (train, splits.dev, splits.test):
        for note in () if split is None else split.notes:
            say(note)
    labels = labels_of(train, train.task)
    if splits.dev is not None:
        require_known(splits.dev, labels)
    asked = given.get("columns", {})
    numbers = tuple(str(each) for each in asked.get("text", ()) if str(each).isdecimal())
    places = numbers if len(numbers) == len(train.fields) else ()
    columns = {**asked, "text": train.fields, "places": places, "meta": train.meta}
    config = made_config({**given, "task": train.task, "model": model, "columns": columns})
    return config, Tags(labels).names if train.task == "tag" else labels
