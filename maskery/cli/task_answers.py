"""What a model says of each example, one line each: a TSV for eyes and sheets, JSON lines for programs.

task                answer                            probability
classify, pair      the class                         of the class
multilabel          classes, parted by a comma        of each of them
choice              the number of the choice          of the choice
regress, rank       the score
tag                 kind start-stop text; ...         of each span: the mean over its tags
qa                  the answer, empty for none        of the answer, or of none, among the best
seq2seq             the text

The texts come last, a column for each field.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from maskery.tasks.examples import Example, Examples
from maskery.tasks.questions import Predicted

HEADER = ("guid", "answer", "probability")


def records(
    examples: Examples, found: Predicted, labels: Sequence[str], *, texts: bool = False
) -> list[dict[str, Any]]:
    """One for each example: guid, line (where there is one), answer, what probabilities there are, and the texts."""
    given = found.probabilities
    chances = [None] * len(examples) if given is None else given if isinstance(given, list) else given.tolist()
    told = zip(examples, found.answers, chances, strict=True)
    made = [_record(examples.task, example, answer, line, labels) for example, answer, line in told]
    if texts:
        for each, example in zip(made, examples, strict=True):
            each["texts"] = dict(zip(examples.fields, example.texts, strict=True))
    return made


def _record(task: str, example: Example, answer: Any, chances: Any, labels: Sequence[str]) -> dict[str, Any]:
    where = {"guid": example.guid, **({"line": example.line} if example.line else {})}
    if task == "tag":
        text = example.texts[0]
        spans = [
            {"kind": each.kind, "start": each.start, "stop": each.stop, "text": text[each.start : each.stop]}
            for each in answer
        ]
        for span, chance in zip(spans, chances or (), strict=chances is not None):
            span["probability"] = chance
        return {**where, "answer": spans}
    if task == "qa":
        sure = chances is not None and not math.isnan(chances)
        return {**where, "answer": answer, **({"probability": chances} if sure else {})}
    if task == "choice":
        number, several = int(answer), chances[: len(example.choices)]
        named = {str(at): chance for at, chance in enumerate(several)}
        text = example.choices[number]
        return {**where, "answer": answer, "text": text, "probability": chances[number], "probabilities": named}
    if chances is None:
        return {**where, "answer": answer}
    named = dict(zip(labels, chances, strict=True))
    if task == "multilabel":
        chosen = [name for name in labels if name in answer]
        return {**where, "answer": chosen, "probabilities": named}
    return {**where, "answer": answer, "probability": named[answer], "probabilities": named}


def tsv(found: Sequence[dict[str, Any]]) -> str:
    fields = list(found[0].get("texts", ())) if found else []
    heads = (*HEADER, *(f"{name}_text" if name in HEADER else _cell(name) for name in fields))
    return "".join(f"{line}\n" for line in ("\t".join(heads), *map(_line, found)))


def json_lines(found: Iterable[dict[str, Any]], *, ascii_only: bool = False) -> str:
    return "".join(json.dumps(each, ensure_ascii=ascii_only, allow_nan=False) + "\n" for each in found)


def _line(record: dict[str, Any]) -> str:
    answer, chance = record["answer"], record.get("probability")
    chances = [] if chance is None else [chance]
    if isinstance(answer, list) and "probabilities" in record:
        chances = [record["probabilities"][name] for name in answer]
        answer = ",".join(answer)
    elif isinstance(answer, list):
        chances = [each["probability"] for each in answer if "probability" in each]
        answer = "; ".join(f"{each['kind']} {each['start']}-{each['stop']} {each['text']}" for each in answer)
    elif isinstance(answer, float):
        answer = f"{answer:.6g}"
    texts = map(_cell, record.get("texts", {}).values())
    return "\t".join([_cell(record["guid"]), _cell(answer), ",".join(f"{each:.4f}" for each in chances), *texts])


def _cell(text: str) -> str:
    """Signs that would end a cell or a line as they are written in programs."""
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
