"""The flags of Google's run_classifier.py, understood and told: a command that was written for it goes on working."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from maskery.errors import InputError
from maskery.tasks.examples import TASKS

RENAMED = {
    "data_dir": "--data",
    "output_dir": "--out",
    "max_seq_length": "--length",
    "train_batch_size": "--batch",
    "learning_rate": "--lr",
    "num_train_epochs": "--epochs",
}
MODEL_FILES = ("bert_config_file", "init_checkpoint", "vocab_file")
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


class WithOldFlags(TyperCommand):
    """A command that takes the flags of run_classifier, too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        from maskery.cli.output import say

        given, notes = translated(args)
        for note in notes:
            say(note)
        return super().parse_args(ctx, given)


def translated(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments in our spelling, and what was changed."""
    found: list[str] = []
    notes: list[str] = []
    rest = iter(arguments)
    for each in rest:
        name, equals, value = each.removeprefix("--").partition("=")
        known = {*RENAMED, *MODEL_FILES, *LEFT_OUT, "task_name", "warmup_proportion"}
        if not each.startswith("--") or not {name, name.removeprefix("no")} & known:
            found.append(each)
            continue
        switch = name if name in known else name.removeprefix("no")
        if switch in SWITCHES:
            _refuse_without_training(switch, "false" if switch != name else value)
        else:
            value = value if equals else _next(rest, name)
        replaced, note = _ours(switch, value)
        found += replaced
        notes.append(note)
    return found, notes


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
    if name in MODEL_FILES:
        folder = Path(value).parent
        raise InputError(
            f"--{name} {value}: a model is given as its folder, before the options",
            repair=f"maskery finetune {folder} ..., without {', '.join(f'--{each}' for each in MODEL_FILES)}",
        )
    if name in RENAMED:
        return [RENAMED[name], value], f"--{name} is understood as {RENAMED[name]} {value}"
    if name == "warmup_proportion":
        return ["--set", f"training.warmup={value}"], f"--{name} is understood as --set training.warmup={value}"
    if name == "task_name" and value.lower() in TASKS:
        return ["--task", value.lower()], f"--{name} is understood as --task {value.lower()}"
    if name == "task_name":
        what = "it names a class of run_classifier.py; the files tell the task, or --processor FILE.py:CLASS reads them"
        return [], f"--{name} {value} is left out: {what}"
    return [], f"--{name} is left out: {LEFT_OUT[name]}"
