"""Files that a fine-tuned model is asked about: the options that settle their columns, and reading them as it learned.

What was found in the training file holds here too: the fields, the labels, which columns are numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from maskery.tasks.base import AnyTaskModel
    from maskery.tasks.examples import Examples
    from maskery.tasks.questions import Predicted
    from maskery.tasks.settings import TaskConfig
    from maskery.tasks.together import Answering

TextOption = Annotated[str | None, typer.Option("--text", metavar="A,B", help="Columns of the texts, by name or 1, 2.")]
LabelOption = Annotated[str | None, typer.Option("--label", metavar="C", help="The column of the labels.")]
MetaOption = Annotated[str | None, typer.Option("--meta", metavar="A,B", help="Columns to join to the text's vector.")]
MapOption = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="LABEL=OTHER", help="Read a label as another; repeatable."),
]
HeaderOption = Annotated[str | None, typer.Option("--header", help="auto, yes or no.")]
FormatOption = Annotated[
    str | None, typer.Option("--format", metavar="F", help="text, tsv, csv, jsonl, json, parquet or conll.")
]
ErrorsOption = Annotated[str | None, typer.Option("--errors", help="Bytes that are no UTF-8: strict or replace.")]


def column_flags(
    text: str | None,
    label: str | None,
    meta: str | None,
    header: str | None,
    format: str | None,
    errors: str | None,
    map: list[str] | None = None,
) -> dict[str, Any]:
    """The flags as keys of task.toml; those that were not given are not there."""
    listed = {
        f"columns.{name}": [each.strip() for each in value.split(",") if each.strip()]
        for name, value in (("text", text), ("meta", meta))
        if value is not None
    }
    single = {"label": label, "header": header, "format": format, "errors": errors}
    from maskery.tasks.read.mapping import parsed

    mapping = {"columns.map": parsed(map)} if map else {}
    return listed | mapping | {f"columns.{name}": value for name, value in single.items() if value is not None}


def read_as_learned(config: TaskConfig, path: Path, flags: dict[str, Any], labelled: bool) -> Examples:
    """The examples of a file as the run's own columns say, where `flags` (`column_flags`) say nothing else."""
    from maskery.cli.task_settings import checked
    from maskery.tasks.read.learned import kept_columns, read_with
    from maskery.tasks.read.mapping import joined

    kept = {f"columns.{name}": value for name, value in kept_columns(config, path, labelled).items()}
    both = {"columns.map": joined(config.columns.map, flags.get("columns.map", {}))}
    return read_with(config, path, checked(kept | flags | both).columns, labelled)


def take_texts(model: Answering, flags: dict[str, Any], task: str | None = None) -> None:
    """A folder of Hugging Face's does not tell whether its model reads one text or two: the command line does."""
    from maskery.tasks.native import for_two_texts
    from maskery.tasks.together import first_of

    two = len(flags.get("columns.text", ())) == 2 or task == "pair"
    if two and model.config.task in ("classify", "regress", "multilabel"):
        made = first_of(model)
        made.config = for_two_texts(made.config)


def asked(model: Answering, examples: Examples, label: str) -> Predicted:
    """The answers of a model, or of several together."""
    from maskery.tasks.together import averaged, models_of

    return averaged([(each.config, _asked(each, examples, label)) for each in models_of(model)])


def _asked(model: AnyTaskModel, examples: Examples, label: str) -> Predicted:
    """With a bar where it takes long; what was cut is told."""
    from maskery.cli.output import late_progress, say

    feed = model.feed(examples, say)
    done = 0
    with late_progress(label, len(feed.rows)) as told:

        def more(rows: int) -> None:
            nonlocal done
            done += rows
            told(done)

        found: Predicted = model.answers(feed, more)
        return found
