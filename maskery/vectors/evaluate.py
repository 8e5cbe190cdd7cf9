"""`maskery.evaluate`: how good a fine-tuned model is on labelled text, or an encoder's vectors are.

maskery.evaluate("my-run", "dev.tsv").metrics["accuracy"]
maskery.evaluate("my-run", [{"text": "a text", "label": "x"}, ...])
maskery.evaluate("my-encoder", "STSB.dev.tsv", task="sts").metrics["cosine_spearman"]
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from maskery import arguments
from maskery.arguments import checked
from maskery.checkpoint.model import Model
from maskery.errors import ArgumentError, UnknownName
from maskery.tasks.examples import TASKS, Examples
from maskery.tasks.finetune import say_on_stderr
from maskery.tasks.judge.measure import Judgement
from maskery.tasks.judging import judged
from maskery.tasks.merging import Merging, known_labels, without_labels
from maskery.tasks.predict import AnyTask, file_for, task_of
from maskery.tasks.read.given import LABELLED, RENAME, in_python, of_argument
from maskery.tasks.read.labels import require_known
from maskery.tasks.read.learned import by_number
from maskery.tasks.read.mapping import mapped
from maskery.tasks.settings import TaskConfig
from maskery.vectors.encoder import Encoder
from maskery.vectors.judge.encodes import Encodes
from maskery.vectors.judge.examples import KINDS
from maskery.vectors.judge.measure import VectorJudgement, evaluate_vectors

Say = Callable[[str], None]


@checked
def evaluate(
    model: AnyTask | Encodes | Model,
    data: Any,
    *,
    task: str | None = None,
    map: Mapping[str, str] | None = None,
    by: Sequence[str] = (),
    say: Say = say_on_stderr,
) -> Judgement | VectorJudgement:
    """Metrics with their 95 % intervals.

        maskery.evaluate("my-run", frame).metrics["accuracy"]

    Of a fine-tuned model; or, where `task` is sts, pairs, retrieval, clustering or geometry, of the vectors of an
    encoder. `data` is labelled: the path of a file, a pandas DataFrame, a `datasets.Dataset`, a list or generator of
    dicts, or `Examples`; for vectors also a list of tuples or the classes of `maskery.vectors.judge`.
    `map`: labels read as others ({"neutral": "non-entailment"}); classes of the model with these names are merged.
    `by`: columns whose groups are evaluated too (`Judgement.groups`); "A,B" groups by both.
    """
    by = arguments.texts("by", by)
    if task is not None and task not in (*TASKS, *KINDS):
        raise UnknownName("task", str(task), (*TASKS, *KINDS))
    if task in KINDS:
        if map or by:
            raise ArgumentError(
                f"map and by belong to fine-tuned models, not to task={task!r}", repair="leave them out"
            )
        encoder = Encoder(model, say=say) if isinstance(model, str | os.PathLike | Model) else model
        return evaluate_vectors(encoder, str(task), data)  # type: ignore[arg-type]
    made = task_of(model)
    if task not in (None, made.config.task):
        raise ArgumentError(f"the model's task is {made.config.task}, not {task}", repair="leave task out")
    merging = Merging.of(made.config, map or {})
    examples = by_number(_labelled(made.config, data, map or {}, tuple(by)), made.config.labels)
    for note in examples.notes:
        say(note)
    with in_python(RENAME):
        require_known(examples, merging.labels, learned=True)
    found = merging.applied(made.predict(without_labels(examples) if merging.to else examples, say))
    for note in found.notes:
        say(note)
    return judged(made, examples, found, labels=merging.labels)[0]


def _labelled(config: TaskConfig, data: object, to: Mapping[str, str], by: tuple[str, ...]) -> Examples:
    given = of_argument("data", data)
    if given is None:
        raise arguments.wrong("data", data, LABELLED)
    if not isinstance(given, Examples):
        return file_for(config, given, labelled=True, map=to, by=by)
    if not set(by) <= set(given.by):
        raise ArgumentError(f"by is {by}, and the examples have {given.by}", repair="give a file, or Examples with by")
    chosen = [given.by.index(name) for name in by]
    items = tuple(replace(each, by=tuple(each.by[at] for at in chosen)) for each in given)
    return mapped(replace(given, items=items, by=by), to, known_labels(config))
