"""`maskery.evaluate`: how good a fine-tuned model is on labelled text, or an encoder's vectors are.

maskery.evaluate("my-run", "dev.tsv").metrics["accuracy"]
maskery.evaluate("my-run", [{"text": "a text", "label": "x"}, ...])
maskery.evaluate("my-encoder", "STSB.dev.tsv", task="sts").metrics["cosine_spearman"]
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from maskery import arguments
from maskery.errors import ArgumentError, UnknownName
from maskery.tasks.examples import TASKS, Examples
from maskery.tasks.finetune import say_on_stderr
from maskery.tasks.judge.measure import Judgement
from maskery.tasks.judging import judged
from maskery.tasks.predict import AnyTask, file_for, task_of
from maskery.tasks.read.given import LABELLED, RENAME, in_python, of_argument
from maskery.tasks.read.labels import require_known
from maskery.tasks.read.learned import by_number
from maskery.tasks.settings import TaskConfig
from maskery.tasks.tags import Tags
from maskery.vectors.encoder import Encoder
from maskery.vectors.judge.encodes import Encodes
from maskery.vectors.judge.examples import KINDS
from maskery.vectors.judge.measure import VectorJudgement, evaluate_vectors

Say = Callable[[str], None]


def evaluate(
    model: AnyTask | Encodes, data: Any, *, task: str | None = None, say: Say = say_on_stderr
) -> Judgement | VectorJudgement:
    """Metrics with their 95 % intervals.

        maskery.evaluate("my-run", frame).metrics["accuracy"]

    Of a fine-tuned model; or, where `task` is sts, pairs, retrieval, clustering or geometry, of the vectors of an
    encoder. `data` is labelled: the path of a file, a pandas DataFrame, a `datasets.Dataset`, a list or generator of
    dicts, or `Examples`; for vectors also a list of tuples or the classes of `maskery.vectors.judge`.
    """
    if task is not None and task not in (*TASKS, *KINDS):
        raise UnknownName("task", str(task), (*TASKS, *KINDS))
    if task in KINDS:
        encoder = Encoder(model, say=say) if isinstance(model, str | os.PathLike) else model
        return evaluate_vectors(encoder, str(task), data)  # type: ignore[arg-type]
    made = task_of(model)
    if task not in (None, made.config.task):
        raise ArgumentError(f"the model's task is {made.config.task}, not {task}", repair="leave task out")
    examples = by_number(_labelled(made.config, data), made.config.labels)
    for note in examples.notes:
        say(note)
    with in_python(RENAME):
        known = Tags.of_names(made.config.labels).kinds if made.config.task == "tag" else made.config.labels
        require_known(examples, known, learned=True)
    found = made.predict(examples, say)
    for note in found.notes:
        say(note)
    return judged(made, examples, found)[0]


def _labelled(config: TaskConfig, data: object) -> Examples:
    given = of_argument("data", data)
    if given is None:
        raise arguments.wrong("data", data, LABELLED)
    return given if isinstance(given, Examples) else file_for(config, given, labelled=True)
