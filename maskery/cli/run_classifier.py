"""The flags of Google's run_classifier.py, understood and told: a command that was written for it goes on working."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from maskery.cli.model_files import NAMES as MODEL_FILES
from maskery.cli.model_files import model_of_files
from maskery.errors import InputError
from maskery.tasks.examples import TASKS
from maskery.tasks.read.classic_tasks import KINDS, reading_of

RENAMED = {
    "output_dir": "--out",
    "max_seq_length": "--length",
    "train_batch_size": "--batch",
    "learning_rate": "--lr",
    "num_train_epochs": "--epochs",
}
SWITCHES = ("do_train", "do_eval", "do_predict", "do_lower_case", "use_tpu")
LEFT_OUT = {
    "do_train": "training is what finetune does",
    "do_eval": "the development set is asked after every epoch",
    "do_predict": "where there is a test file, its answers are written after training",
    "do_lower_case": "the model's own tokenizer says whether letters are made small",
    "use_tpu": "there is none",
    "eval_batch_size": "it is chosen by the lengths of the rows",
    "predict_batch_size": "it is chosen by the lengths of the rows",
    "save_checkpoints_steps": "the state is saved after every epoch",
    "iterations_per_loop": "it is for TPUs",
}
"""Flags that ask for nothing here, and why."""
KNOWN = {*RENAMED, *MODEL_FILES, *LEFT_OUT, "data_dir", "task_name", "warmup_proportion"}


class WithOldFlags(TyperCommand):
    """A command that takes the flags of run_classifier, too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        from maskery.cli.output import say

        given, notes = translated(args, lambda rest: self._model(ctx, rest))
        for note in notes:
            say(note)
        return super().parse_args(ctx, given)

    def _model(self, ctx: Any, arguments: list[str]) -> str | None:
        """MODEL, where the arguments have it."""
        found = self.make_parser(ctx).parse_args(list(arguments))[0].get("model")
        return found if isinstance(found, str) else None


def translated(
    arguments: Sequence[str], model: Callable[[list[str]], str | None] = lambda rest: None
) -> tuple[list[str], list[str]]:
    """The arguments in our spelling, and what was changed. `model` finds MODEL among arguments in our spelling."""
    found: list[str] = []
    notes: list[str] = []
    later: dict[str, str] = {}
    rest = iter(arguments)
    for each in rest:
        name, equals, value = each.removeprefix("--").partition("=")
        if not each.startswith("--") or not {name, name.removeprefix("no")} & KNOWN:
            found.append(each)
            continue
        switch = name if name in KNOWN else name.removeprefix("no")
        if switch in SWITCHES:
            _refuse_without_training(switch, "false" if switch != name else value)
        else:
            value = value if equals else _next(rest, name)
        if switch in (*MODEL_FILES, "task_name", "data_dir"):
            later[switch] = value
            continue
        replaced, note = _ours(switch, value)
        found += replaced
        notes.append(note)
    for options, told in (_of_data(later), _of_model(later, model, found)):
        found = [*options, *found]
        notes += told
    return found, notes


def _of_data(given: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The task and its folder, which are read together."""
    name, folder = given.get("task_name"), given.get("data_dir")
    plain = [] if folder is None else ["--data", folder]
    told = [] if folder is None else [f"--data_dir is understood as --data {folder}"]
    if name is None:
        return plain, told
    if name.lower() in TASKS:
        return ["--task", name.lower(), *plain], [f"--task_name is understood as --task {name.lower()}", *told]
    reading = None if folder is None else reading_of(name, Path(folder))
    if reading is None and name.lower() in KINDS:
        return ["--task", KINDS[name.lower()]], [f"--task_name {name} is understood as --task {KINDS[name.lower()]}"]
    if reading is None:
        what = "it names a class of run_classifier.py; the files tell the task, or --processor FILE.py:CLASS reads them"
        return plain, [f"--task_name {name} is left out: {what}", *told]
    return list(reading.options), [
        f"--task_name {name} with --data_dir is understood as {shlex.join(reading.options)}",
        *reading.notes,
    ]


def _of_model(
    given: Mapping[str, str], model: Callable[[list[str]], str | None], rest: list[str]
) -> tuple[list[str], list[str]]:
    """MODEL, where the files of a model are given in its place."""
    files = {name: given[name] for name in MODEL_FILES if name in given}
    if not files:
        return [], []
    flags, said = ", ".join(f"--{name}" for name in files), model(rest)
    if said is not None:
        return [], [f"{flags} left out: the model is {said}, as given before the options"]
    found = model_of_files(files)
    return [found], [f"{flags}: the model is {found}"]


def _next(rest: Iterator[str], name: str) -> str:
    value = next(rest, None)
    if value is None:
        raise InputError(f"--{name} has no value", repair=f"--{name} VALUE")
    return value


def _refuse_without_training(name: str, value: str) -> None:
    if name == "do_train" and value.lower() in ("false", "0", "no", "f", "n"):
        raise InputError(
            "--do_train=false: finetune always trains",
            repair="maskery evaluate RUN --data FILE, or maskery predict RUN FILE",
        )


def _ours(name: str, value: str) -> tuple[list[str], str]:
    if name in RENAMED:
        return [RENAMED[name], value], f"--{name} is understood as {RENAMED[name]} {value}"
    if name == "warmup_proportion":
        return ["--set", f"training.warmup={value}"], f"--{name} is understood as --set training.warmup={value}"
    return [], f"--{name} is left out: {LEFT_OUT[name]}"
