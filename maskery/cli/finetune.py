"""`maskery finetune`: a model and labelled text in, a run folder with the best model and how good it is out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.run_classifier import WithOldFlags
from maskery.cli.settings import JsonOption, LangOption, new_app, parse_settings
from maskery.cli.task_files import (
    ErrorsOption,
    FormatOption,
    HeaderOption,
    LabelOption,
    MapOption,
    MetaOption,
    TextOption,
    column_flags,
)
from maskery.cli.task_options import (
    AdaptOption,
    BatchOption,
    BudgetOption,
    CrfOption,
    CurveOption,
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
    SeedsOption,
    TaskOption,
    TaskSetOption,
    TestOption,
    TowersOption,
    TrainOption,
    TruncateOption,
    WindowsOption,
)
from maskery.errors import InputError, UnknownName

if TYPE_CHECKING:
    from maskery.tasks.finetune import TaskRun
    from maskery.tasks.own_loss import OwnLoss
    from maskery.tasks.plan import Plan
    from maskery.tasks.resolve import Splits

app = new_app()


@app.command(cls=WithOldFlags)
def finetune(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model or run folder, or a TensorFlow checkpoint.")],
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="The run's folder.")],
    data: DataOption = None,
    train: TrainOption = None,
    dev: DevOption = None,
    test: TestOption = None,
    task: TaskOption = None,
    text: TextOption = None,
    label: LabelOption = None,
    meta: MetaOption = None,
    map: MapOption = None,
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
    towers: TowersOption = None,
    pool: PoolOption = None,
    freeze: FreezeOption = False,
    crf: CrfOption = False,
    seed: SeedOption = None,
    patience: PatienceOption = None,
    seeds: SeedsOption = 1,
    curve: CurveOption = False,
    adapt: AdaptOption = 0,
    budget: BudgetOption = None,
    settings: TaskSetOption = None,
    resume: ResumeOption = False,
    lang: LangOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train a model for a task. Columns, labels and the task are found and told; the best on dev is kept."""
    began = time.monotonic()
    from maskery.cli.output import say
    from maskery.cli.task_results import answer_test, emit, show
    from maskery.cli.task_settings import keys_of
    from maskery.tasks.own_loss import taken_loss
    from maskery.train.options import nested

    require_sources(data, train, dev, test, processor)
    plan = plan_of(truncate, seeds, curve, adapt, budget)
    named = {
        "epochs": epochs, "patience": patience, "training.batch": batch, "training.lr": lr, "training.seed": seed,
        "rows.length": length, "rows.truncate": None if plan.truncate else truncate, "rows.windows": windows,
        "rows.towers": towers, "read.pool": pool, "read.frozen": freeze or None, "head.crf": crf or None,
    }  # fmt: skip
    named |= column_flags(text, label, meta, header, format, errors, map)
    keys = keys_of(parse_settings(settings, "head.dropout=0.2"), named)
    require_room(model, out, resume, task, keys)
    given = taken_loss(nested(keys), say)
    splits = _read(keys, task, {"data": data, "train": train, "dev": dev, "test": test}, processor)
    run = _trained(model, splits, given, plan, out, resume, began)
    answers = answer_test(run, splits)
    (emit if as_json else show)(run, answers, time.monotonic() - began)


def plan_of(truncate: str | None, seeds: int, curve: bool, adapt: int, budget: str | None) -> Plan:
    from maskery.tasks.plan import ENDS, Plan
    from maskery.train.budget import parse_budget

    several = ("all", "fuse")
    if truncate is not None and truncate not in (*ENDS, *several):
        raise UnknownName("--truncate", truncate, (*ENDS, *several))
    seconds = 0.0 if budget is None else parse_budget(budget)
    ends = truncate if truncate in several else ""
    return Plan.model_validate({"truncate": ends, "seeds": seeds, "curve": curve, "adapt": adapt, "budget": seconds})


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


def require_room(model: str, out: Path, resume: bool, task: str | None, keys: Mapping[str, Any]) -> None:
    """What is wrong with the command line alone is told before anything is read."""
    from maskery.checkpoint.locate import locate
    from maskery.cli.task_settings import checked
    from maskery.files import require_writable
    from maskery.tasks.examples import TASKS
    from maskery.train.run import occupied

    if task is not None and task not in TASKS:
        raise UnknownName("task", task, TASKS)
    checked(keys)
    locate(Path(model))
    occupied(out, resume)
    require_writable(out)


def _read(keys: Mapping[str, Any], task: str | None, paths: Mapping[str, Path | None], processor: str | None) -> Splits:
    from maskery.cli.output import say
    from maskery.tasks.finetune import read_splits
    from maskery.train.options import nested

    splits = read_splits(nested(keys), task=task, processor=processor, **paths)
    found = splits.train.task
    if keys.get("head.crf") and found != "tag":
        raise InputError(f"--crf is for the task tag; this is {found}", repair="leave out --crf, or --task tag")
    if splits.dev is None:
        say("there is no development set: the last model is kept, and nothing is measured (--dev FILE)")
    if splits.dev is None and keys.get("patience"):
        raise InputError("--patience needs a development set", repair="--dev FILE, or leave out --patience")
    return splits


def _trained(
    model: str,
    splits: Splits,
    given: tuple[dict[str, Any], OwnLoss | None],
    plan: Plan,
    out: Path,
    resume: bool,
    began: float,
) -> TaskRun:
    from maskery.cli.live_task import watching
    from maskery.cli.output import say
    from maskery.tasks.finetune import learn

    settings, own = given
    return learn(model, splits, settings, out, plan, began, resume=resume, say=say, watching=watching, own=own)
