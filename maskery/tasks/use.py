"""How a written model is used: the commands of its card, and lines for transformers where its folder opens there."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from maskery.checkpoint.families import FAMILIES
from maskery.tasks.model import TaskModel
from maskery.tasks.native import is_native
from maskery.tasks.together import Answering

_ONE, _TWO = '"a text"', '{"text": "a text", "text_pair": "another"}'
_PIPELINES = {
    "classify": ("text-classification", ""),
    "pair": ("text-classification", ""),
    "multilabel": ("text-classification", ", top_k=None"),
    "regress": ("text-classification", ', function_to_apply="none"'),
    "rank": ("text-classification", ', function_to_apply="none"'),
    "tag": ("token-classification", ', aggregation_strategy="simple"'),
}
"""Task -> the pipeline, and what it has to be told besides."""
_SPAN = """\
from transformers import AutoModelForQuestionAnswering, AutoTokenizer

tokenizer, model = (kind.from_pretrained({name}) for kind in (AutoTokenizer, AutoModelForQuestionAnswering))
found = model(**tokenizer("a question", "the text that answers it", return_tensors="pt"))
print(found.start_logits, found.end_logits)"""


def uses_of(made: Answering, name: str) -> list[tuple[str, str]]:
    """(language, code) for the folder called `name`, as seen from the one that it is in."""
    folder = shlex.quote(name if not name.startswith("-") else f"./{name}")
    found = [("sh", f"maskery predict {folder} FILE\nmaskery evaluate {folder} --data FILE")]
    if not isinstance(made, TaskModel) or made.model.family not in FAMILIES or not is_native(made.config, made.native):
        return found
    told = _of_transformers(made.config.task, made.config.columns.text, json.dumps(name, ensure_ascii=False))
    return found + ([("python", told)] if told else [])


def _of_transformers(task: str, fields: Sequence[str], name: str) -> str:
    if task == "qa":
        return _SPAN.format(name=name)
    if task not in _PIPELINES or len(fields) > 2:
        return ""
    kind, more = _PIPELINES[task]
    given = _TWO if len(fields) == 2 else _ONE
    return f'from transformers import pipeline\n\nprint(pipeline("{kind}", model={name}{more})({given}))'
