"""`maskery finetune`: a model and labelled text in, a run folder with the best model and how good it is out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.run_classifier import WithOldFlags
from maskery.cli.settings import JsonOption, new_app, parse_settings
from maskery.cli.task_files import (
    ErrorsOption,
    FormatOption,
    HeaderOption,
    LabelOption,
    MetaOption,
    TextOption,
    column_flags,
)
from maskery.cli.task_options import (
    BatchOption,
    CrfOption,
    DataOption,
    DevOption,
    EpochsOption,
    FreezeOption,
    LengthOption,
    LrOption,
    PatienceOption,
    PoolOption,
    ProcessorOption,
    ResumeOption,
    SeedOption,
    TaskOption,
    TaskSetOption,
    TestOption,
    TrainOption,
    TruncateOption,
    WindowsOption,
)
from maskery.errors import InputError, UnknownName

if TYPE_CHECKING:
    from maskery.tasks.finetune import TaskRun
    from maskery.tasks.resolve import Splits

TEST_ANSWERS = "test_predictions.tsv"
app = new_app()


@app.command(cls=WithOldFlags)
def finetune(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model or run folder.")],
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="The run's folder.")],
    data: DataOption = None,
    train: TrainOption = None,
    dev: DevOption = None,
    test: TestOption = None,
    task: TaskOption = None,
    text: TextOption = None,
    label: LabelOption = None,
    meta: MetaOption = None,
    header: HeaderOption = None,
    format: FormatOption = None,
    errors: ErrorsOption = None,
    processor: ProcessorOption = None,
    epochs: EpochsOption = None,
    batch: BatchOption = None,
    lr: LrOption = None,
    length: LengthOption = None,
    truncate: TruncateOption = None,
    windows: WindowsOption = None,
    pool: PoolOption = None,
    freeze: FreezeOption = False,
    crf: CrfOption = False,
    seed: SeedOption = None,
    patience: PatienceOption = None,
    settings: TaskSetOption = None,
    resume: ResumeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Train a model for a task. Columns, labels and the task are found and told; the best on dev is kept."""
    from maskery.cli.task_settings import keys_of

    began = time.monotonic()
    require_sources(data, train, dev, test, processor)
    named = {
        "epochs": epochs, "patience": patience, "training.batch": batch, "training.lr": lr, "training.seed": seed,
        "rows.length": length, "rows.truncate": truncate, "rows.windows": windows, "read.pool": pool,
        "read.frozen": freeze or None, "head.crf": crf or None,
    }  # fmt: skip
    named |= column_flags(text, label, meta, header, format, errors)
    keys = keys_of(parse_settings(settings), named)
    require_room(out, resume, task, keys)
    splits = _read(keys, task, {"data": data, "train": train, "dev": dev, "test": test}, processor)
    run = _trained(model, splits, keys, out, resume)
    answers = _answer_test(run, splits)
    if as_json:
        _emit(run, answers, time.monotonic() - began)
    else:
        _show(run, splits, answers, time.monotonic() - began)


def require_sources(
    data: Path | None, train: Path | None, dev: Path | None, test: Path | None, processor: str | None
) -> None:
    """One way to say what to learn from, and one only."""
    files = {"--train": train, "--dev": dev, "--test": test}
    given = [name for name, path in files.items() if path is not None]
    if given and (data is not None or processor is not None):
        other = "--data" if data is not None else "--processor"
        raise InputError(f"{other} and {given[0]} both say what to read", repair=f"keep {other}, or {given[0]}")
    if given and train is None:
        raise InputError(f"{given[0]} without --train: there is nothing to learn from", repair="--train FILE")
    if not given and data is None and processor is None:
        raise InputError("there is nothing to learn from", repair="--data FOLDER, or --train FILE --dev FILE")


def require_room(out: Path, resume: bool, task: str | None, keys: Mapping[str, Any]) -> None:
    """What is wrong with the command line alone is told before anything is read."""
    from maskery.cli.task_settings import checked
    from maskery.files import require_writable
    from maskery.tasks.examples import TASKS
    from maskery.train.run import occupied

    if task is not None and task not in TASKS:
        raise UnknownName("task", task, TASKS)
    checked(keys)
    occupied(out, resume)
    require_writable(out)


def _read(keys: Mapping[str, Any], task: str | None, paths: Mapping[str, Path | None], processor: str | None) -> Splits:
    from maskery.cli.output import say
    from maskery.cli.task_settings import nested
    from maskery.tasks.finetune import read_splits

    splits = read_splits(nested(keys), task=task, processor=processor, **paths)
    found = splits.train.task
    if keys.get("head.crf") and found != "tag":
        raise InputError(f"--crf is for the task tag; this is {found}", repair="leave out --crf, or --task tag")
    if splits.dev is None:
        say("there is no development set: the last model is kept, and nothing is measured (--dev FILE)")
    if splits.dev is None and keys.get("patience"):
        raise InputError("--patience needs a development set", repair="--dev FILE, or leave out --patience")
    return splits


def _trained(model: str, splits: Splits, keys: Mapping[str, Any], out: Path, resume: bool) -> TaskRun:
    from maskery.cli.live_task import watching
    from maskery.cli.output import say
    from maskery.cli.task_settings import nested
    from maskery.tasks.finetune import finetune as train_model

    with watching(out, splits.train.task) as watch:
        return train_model(
            model,
            out=out,
            train=splits.train,
            dev=splits.dev,
            test=splits.test,
            settings=nested(keys),
            resume=resume,
            say=say,
            watch=watch,
        )


def _answer_test(run: TaskRun, splits: Splits) -> Path | None:
    """The answers to the test set, beside the model."""
    from maskery import files
    from maskery.cli.task_answers import records, tsv
    from maskery.cli.task_files import asked

    if splits.test is None:
        return None
    path = run.path / TEST_ANSWERS
    found = asked(run.model, splits.test, "test")
    files.write_text(path, tsv(records(splits.test, found, run.model.config.labels)))
    return path


def _results(run: TaskRun) -> dict[str, float]:
    """eval_results.txt, which was just written."""
    from maskery.tasks.judge.results import FILE

    lines = (run.path / FILE).read_text(encoding="utf-8").splitlines()
    pairs = [line.split(" = ") for line in lines]
    return {key: int(value) if key == "global_step" else float(value) for key, value in pairs}


def _emit(run: TaskRun, answers: Path | None, seconds: float) -> None:
    from maskery.cli.evaluate import plain
    from maskery.cli.output import emit_json
    from maskery.tasks.folder import TaskFolder

    state, judgement = TaskFolder(run.path).state, run.judgement
    emit_json(
        {
            "run": str(run.path),
            "task": run.model.config.task,
            "labels": list(run.model.config.labels),
            "steps": state["step"],
            "tokens": state["tokens"],
            "best": state["best"],
            "eval": None if judgement is None else plain(judgement),
            "results": {} if judgement is None else _results(run),
            "report": None if judgement is None else str(run.path / "report.html"),
            "test": None if answers is None else str(answers),
            "seconds": seconds,
        }
    )


def _show(run: TaskRun, splits: Splits, answers: Path | None, seconds: float) -> None:
    from maskery.cli.output import duration, results, say
    from maskery.tasks.judge.results import eval_block

    if run.judgement is not None:
        results().print(eval_block(_results(run)), soft_wrap=True)
    results().print(f"{run.path}: a model for {run.model.config.task}, in {duration(seconds)}", soft_wrap=True)
    if run.judgement is not None:
        results().print(f"report: {run.path / 'report.html'}", soft_wrap=True)
    if answers is not None:
        results().print(f"answers to the test set: {answers}", soft_wrap=True)
    say(f"next: maskery predict {run.path} FILE        maskery evaluate {run.path} --data FILE")
