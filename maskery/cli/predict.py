"""`maskery predict`: what a fine-tuned model, or several together, say of each text of a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import LangOption
from maskery.cli.task_files import ErrorsOption, FormatOption, HeaderOption, MapOption, MetaOption, TextOption
from maskery.errors import InputError

if TYPE_CHECKING:
    from maskery.tasks.examples import Examples
    from maskery.tasks.questions import Predicted
    from maskery.tasks.settings import TaskConfig
    from maskery.tasks.together import Answering


def predict(
    paths: Annotated[
        list[str], typer.Argument(metavar="RUN... FILE", help="Runs (answers are averaged), and a file or - for stdin.")
    ],
    out: Annotated[Path | None, typer.Option("--out", metavar="F", help="Write the answers to a file.")] = None,
    text: TextOption = None,
    meta: MetaOption = None,
    map: MapOption = None,
    header: HeaderOption = None,
    format: FormatOption = None,
    errors: ErrorsOption = None,
    no_text: Annotated[bool, typer.Option("--no-text", help="Leave the texts out of the answers.")] = False,
    lang: LangOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, with all probabilities.")] = False,
) -> None:
    """Answer for each text: guid, answer, probability, text. The file is read with the columns of the run."""
    from maskery.cli.output import say
    from maskery.cli.task_answers import json_lines, records, tsv
    from maskery.cli.task_files import column_flags
    from maskery.tasks.merging import Merging
    from maskery.tasks.read.mapping import parsed
    from maskery.tasks.together import averaged

    *runs, file = paths
    if not runs:
        raise InputError(f"only {file} is given", repair="maskery predict RUN FILE (- reads texts from stdin)")
    if out is not None and out.is_dir():
        raise InputError("is a folder", where=out, repair="--out FILE")
    if out is not None and not out.parent.is_dir():
        raise InputError("there is no such folder", where=out.parent, repair=f"mkdir -p {out.parent}, or another --out")
    flags = column_flags(text, None, meta, header, format, errors)
    models = opened(runs, flags)
    merging = Merging.of_predictions(models[0].config, parsed(map or ()))
    examples = texts_of(models[0].config, file, flags)
    for note in examples.notes:
        say(note)
    found = averaged([(each.config, _told(run, each, examples)) for run, each in zip(runs, models, strict=True)])
    found = merging.applied(found)
    for note in found.notes:
        say(note)
    answers = records(examples, found, merging.labels, texts=not no_text)
    _hand_out(json_lines(answers) if as_json else tsv(answers), out, len(answers))


def opened(runs: Sequence[str], flags: dict[str, Any]) -> list[Answering]:
    """The models; whether they can answer together is found before weights are read, where a task.toml tells it."""
    from maskery import hub
    from maskery.cli.task_files import take_texts
    from maskery.tasks import together
    from maskery.tasks.model import TASK_FILE, read_task

    for run in runs:
        if not Path(run).is_dir() and hub.in_cache(run) is None:
            raise InputError("there is no such run", where=run, repair="maskery predict RUN... FILE: runs come first")
    early = {run: together.opened(run) for run in runs if not (Path(run) / TASK_FILE).is_file()}
    for model in early.values():
        take_texts(model, flags)
    told = [(run, early[run].config if run in early else read_task(Path(run))) for run in runs]
    together.require_alike(told)
    return [early.get(run) or together.opened(run) for run in runs]


def texts_of(config: TaskConfig, file: str, flags: dict[str, Any]) -> Examples:
    from maskery.cli.generate import read_lines
    from maskery.cli.task_files import read_as_learned
    from maskery.tasks.read.stdin import examples_of_lines

    if file != "-":
        return read_as_learned(config, Path(file), flags, labelled=False)
    if flags.keys() - {"columns.header"}:
        raise InputError("stdin has texts and no columns", repair="leave out --text, --meta and --format, or a file")
    return examples_of_lines(config, read_lines(None), flags.get("columns.header", "auto"))


def _told(run: str, model: Answering, examples: Examples) -> Predicted:
    from maskery.cli.task_files import asked

    return asked(model, examples, run)


def _hand_out(text: str, out: Path | None, many: int) -> None:
    from maskery import files
    from maskery.cli.output import counted, say

    if out is None:
        sys.stdout.write(text)
        return
    files.write_text(out, text)
    say(f"written: {out} ({counted(many, 'answer')})")
