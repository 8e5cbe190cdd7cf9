"""`maskery evaluate`: how good a fine-tuned model is on a file of labelled text, or an encoder's vectors are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import HtmlOption, JsonOption, LangOption
from maskery.cli.task_files import (
    ErrorsOption,
    FormatOption,
    HeaderOption,
    LabelOption,
    MapOption,
    MetaOption,
    TextOption,
)
from maskery.errors import InputError, UnknownName
from maskery.language import phrases

if TYPE_CHECKING:
    from maskery.tasks.examples import Examples
    from maskery.tasks.judge.measure import Judgement
    from maskery.tasks.settings import TaskConfig


ByOption = Annotated[
    list[str] | None,
    typer.Option("--by", metavar="COLUMN", help="Also evaluate every group of a column (A,B: of both); repeatable."),
]


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run, a folder with a task's head, or an encoder.")],
    data: Annotated[Path, typer.Option("--data", metavar="F", help="Labelled text; of a folder, its dev file.")],
    task: Annotated[
        str | None,
        typer.Option(
            "--task", metavar="T", help="The run's own; of vectors: sts, pairs, retrieval, clustering or geometry."
        ),
    ] = None,
    text: TextOption = None,
    label: LabelOption = None,
    meta: MetaOption = None,
    map: MapOption = None,
    by: ByOption = None,
    header: HeaderOption = None,
    format: FormatOption = None,
    errors: ErrorsOption = None,
    html: HtmlOption = None,
    lang: LangOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell the metrics of the task, or of sentence vectors, with their 95 % intervals."""
    from maskery.cli.output import emit_json, save_picture, say_all
    from maskery.cli.task_files import asked, column_flags, take_texts
    from maskery.tasks.judge.report import report
    from maskery.tasks.judging import judged
    from maskery.tasks.merging import Merging, without_labels
    from maskery.tasks.model import TASK_FILE, read_task
    from maskery.tasks.read.labels import require_known
    from maskery.tasks.together import opened
    from maskery.vectors.judge.examples import KINDS

    if task in KINDS:
        require_no_report(task, {"--html": html, "--meta": meta, "--map": map, "--by": by})
        from maskery.cli.vectors_evaluate import evaluate_vectors_of

        evaluate_vectors_of(run, task, data, as_json, column_flags(text, label, None, header, format, errors))
        return
    require_name(task)
    require_run(run, task)
    early = None if (run / TASK_FILE).is_file() else opened(run)  # of Hugging Face's: only the model tells its task
    flags = column_flags(text, label, meta, header, format, errors, map) | ({"columns.by": by} if by else {})
    if early is not None:
        take_texts(early, flags, task)
    config = read_task(run) if early is None else early.config
    require_task(task, config.task, run)
    merging = Merging.of(config, flags.get("columns.map", {}))
    examples = _read(config, data, flags)
    require_known(examples, merging.labels, learned=True)
    model = early or opened(run)
    found = merging.applied(asked(model, without_labels(examples) if merging.to else examples, "reading"))
    say_all(found.notes)
    judgement, evidence = judged(model, examples, found, labels=merging.labels)
    if html is not None:
        save_picture(report(judgement, run.resolve().name, evidence, phrases(lang).lang), html)
    if as_json:
        emit_json(plain(judgement))
    else:
        show(judgement)


def require_name(asked: str | None) -> None:
    from maskery.tasks.examples import TASKS
    from maskery.vectors.judge.examples import KINDS

    if asked is not None and asked not in TASKS:
        raise UnknownName("task", asked, (*TASKS, *KINDS))


def require_run(run: Path, task: str | None) -> None:
    """A folder; an encoder has no task of its own, and which figures are wanted has to be said."""
    from maskery import hub
    from maskery.tasks.model import TASK_FILE
    from maskery.vectors.folder import is_encoder
    from maskery.vectors.judge.examples import KINDS

    if not run.is_dir() and hub.in_cache(str(run)) is None:
        raise InputError("there is no such run", where=run, repair="maskery evaluate RUN --data FILE")
    if task is None and is_encoder(run) and not (run / TASK_FILE).is_file():
        cause = "makes vectors, and has no task of its own"
        raise InputError(cause, where=run, repair=f"--task {', '.join(KINDS[:-1])} or {KINDS[-1]}")


def require_task(asked: str | None, own: str, run: Path) -> None:
    if asked not in (None, own):
        raise InputError(f"its task is {own}, not {asked}", where=run, repair=f"leave out --task, or --task {own}")


def require_no_report(task: str, given: Mapping[str, object]) -> None:
    for flag, value in given.items():
        if value is not None:
            cause = f"{flag} belongs to fine-tuned models: --task {task} looks at vectors and has figures only"
            raise InputError(cause, repair=f"leave out {flag}")


def _read(config: TaskConfig, data: Path, flags: dict[str, Any]) -> Examples:
    from maskery.cli.output import say
    from maskery.cli.task_files import read_as_learned
    from maskery.tasks.read.folder import joined
    from maskery.tasks.read.learned import by_number

    parts = [read_as_learned(config, path, flags, labelled=True) for path in files_to_read(data)]
    examples = by_number(joined(parts), config.labels)
    for note in examples.notes:
        say(note)
    return examples


def files_to_read(data: Path) -> tuple[Path, ...]:
    """A file as it is; of a folder the development set, or else the test set, told."""
    from maskery.cli.output import say
    from maskery.tasks.read.passages import holds_passages
    from maskery.tasks.read.splits import files_of

    if not data.is_dir():
        return (data,)
    files = files_of(data)
    found = files.get("dev") or files.get("test")
    if found is None and holds_passages(data):
        return (data,)
    if found is None:
        raise InputError("there is no dev file and no test file", where=data, repair="--data FILE")
    for path in found.paths:
        say(f"--data {path}: the folder's {'dev' if 'dev' in files else 'test'} file")
    for note in found.notes:
        say(note)
    return found.paths


def plain(judgement: Judgement) -> dict[str, Any]:
    """The figures for programs; one that cannot be told (an area of one class) is null."""
    return {key: _finite(value) for key, value in judgement.plain().items()}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and value != value else value


def show(judgement: Judgement) -> None:
    from maskery.cli.output import counted, results, say_all, tell
    from maskery.tasks.judge.words import figure_text

    width = max(map(len, judgement.metrics))
    many = counted(judgement.n, "question" if judgement.task == "rank" else "example")
    tell(f"{judgement.task}, {many}; in brackets the 95 % interval")
    for name, value in judgement.metrics.items():
        low, high = judgement.intervals[name]
        results().print(f"  {name:{width}}  {figure_text(value)}  [{figure_text(low)}, {figure_text(high)}]")
    show_groups(judgement)
    say_all(judgement.notes)


def show_groups(judgement: Judgement) -> None:
    from maskery.cli.output import print_table
    from maskery.tasks.judge.grouped import group_lines
    from maskery.tasks.judge.words import figure_text

    for by in judgement.groups:
        (column, *heads), lines = group_lines(judgement, by)
        print_table(
            [
                [column, *map(phrases().name, heads)],
                *([each if isinstance(each, str) else figure_text(each) for each in line] for line in lines),
            ]
        )
