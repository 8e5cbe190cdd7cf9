"""`maskery.predict`: the answers of a fine-tuned model, or the averaged ones of several.

found = maskery.predict("my-run", ["a text", "another"])
found.answers, found.probabilities
maskery.predict("my-run", pathlib.Path("texts.tsv"))         # a Path is a file, a string is a text
maskery.predict("my-run", frame)                             # a DataFrame: the columns that the run was trained on
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from maskery import arguments
from maskery.arguments import checked
from maskery.checkpoint.locate import locate
from maskery.errors import ArgumentError
from maskery.records import Records, records_or_items
from maskery.tasks.base import DoesTask
from maskery.tasks.examples import Examples
from maskery.tasks.finetune import TaskRun, examples_of_texts, made_config, say_on_stderr
from maskery.tasks.merging import Merging
from maskery.tasks.questions import Predicted
from maskery.tasks.read.given import RENAME, in_python
from maskery.tasks.read.learned import kept_columns, read_with
from maskery.tasks.read.mapping import joined
from maskery.tasks.settings import TaskConfig
from maskery.tasks.together import Answering, Together, averaged, opened, require_alike

AnyTask = Answering | TaskRun | str | os.PathLike[str]
"""A model of a task, the run that made it, or the path of its folder."""
Texts = str | os.PathLike[str] | Iterable[str | Sequence[str] | Mapping[str, Any]] | Examples
Say = Callable[[str], None]
_FORM = "a fine-tuned model, what maskery.finetune returned, or the path of its folder"
_TEXTS = (
    "a text, a list of texts (of tuples, where the task reads several), a pathlib.Path of a file, a pandas DataFrame, "
    "a datasets.Dataset, a list of dicts, or Examples"
)


@checked
def predict(
    model: AnyTask | Sequence[AnyTask],
    texts: Texts,
    *,
    map: Mapping[str, str] | None = None,
    say: Say = say_on_stderr,
) -> Predicted:
    """Answer for each text. `model` may be a list: the probabilities or scores of all are averaged.

        maskery.predict("my-run", ["a text", "another"]).answers

    `texts` is one text, a list or column of texts, or of tuples of texts where the task reads several; a `pathlib.Path`
    is a file, a pandas DataFrame, a `datasets.Dataset` or dicts are rows: both are read with the columns of the run,
    and labels in them are not read. `map` merges classes of the model ({"neutral": "non-entailment"}): their
    probabilities are added. `say` is called with what was truncated or left out.
    """
    if isinstance(model, list | tuple):
        models = [task_of(each, f"model[{number}]") for number, each in enumerate(model)]
    else:
        models = [task_of(model)]
    if not models:
        raise ArgumentError("model is an empty list", repair="give one run, or several")
    require_alike([(f"model[{number}]", each.config) for number, each in enumerate(models)])
    merging = Merging.of_predictions(models[0].config, map or {})
    examples = examples_for(models[0], texts)
    for note in examples.notes:
        say(note)
    found = merging.applied(averaged([(each.config, each.predict(examples, say)) for each in models]))
    for note in found.notes:
        say(note)
    return found


def task_of(given: object, name: str = "model") -> Answering:
    """What a Python call was given for a fine-tuned model, opened."""
    if isinstance(given, TaskRun):
        return given.model
    if isinstance(given, DoesTask | Together):
        return given
    path = arguments.path(name, given, _FORM)
    return opened(path if path.exists() else locate(path)[0])


def examples_for(model: Answering, texts: Texts) -> Examples:
    """Texts as the model's task reads them, without labels."""
    if isinstance(texts, Examples):
        return texts
    if isinstance(texts, os.PathLike):
        return file_for(model.config, arguments.path("texts", texts, _TEXTS), labelled=False)
    given = [texts] if isinstance(texts, str) else records_or_items("texts", texts, _TEXTS)
    if isinstance(given, Records):
        return file_for(model.config, given, labelled=False)
    if model.config.task == "choice" or model.config.columns.meta:
        why = "choices" if model.config.task == "choice" else f"columns ({', '.join(model.config.columns.meta)})"
        raise ArgumentError(
            f"the task reads {why}, which texts alone have not",
            repair="texts=pathlib.Path(FILE), a DataFrame, or a list of dicts",
        )
    for number, each in enumerate(given):
        for part in each if isinstance(each, list | tuple) else (each,):
            arguments.text(f"texts[{number}]", part)
    if not given:
        raise ArgumentError("texts is an empty list", repair="give at least one text")
    return examples_of_texts(model, given)


def file_for(
    config: TaskConfig,
    path: Path | Records,
    *,
    labelled: bool,
    map: Mapping[str, str] | None = None,
    by: tuple[str, ...] = (),
) -> Examples:
    """The examples of a file, or of rows, read with the columns of the run; `map` goes before the run's label map."""
    own = {"map": joined(config.columns.map, map or {}), "by": by}
    kept = made_config({"task": "classify", "columns": kept_columns(config, path, labelled) | own}).columns
    with in_python(RENAME):
        return read_with(config, path, kept, labelled)
