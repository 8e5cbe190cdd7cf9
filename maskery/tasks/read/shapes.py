"""Published sets whose records have a shape of their own, made into plain ones: text, label, question, choices.

shape            recognised by                                    becomes
RACE             article, questions, options, answers             choice: context, question, choices
ARCT             warrant0, warrant1, reason, claim                choice: context, question, choices
ChID             content with #idiom...#, candidates              choice: question (the gap is ____), choices
CSL              abst, keyword (a list)                           pair: keyword, abst
WSC              text, target with span1_text and span2_text      classify: text with _span1_ and [span2]

A shape is taken only where neither --text nor --label names columns and the task, if given, is the shape's. What it
does is logged. Columns that a shape does not take stay, so that they can group an evaluation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maskery.corpus.sources import Source
from maskery.errors import TextError, Unfit
from maskery.tasks.read.choices import Place
from maskery.tasks.read.table import ABSENT, Row, Table
from maskery.tasks.settings import ColumnsConfig

Record = dict[str, Any]
GAP, OTHER_GAP = "____", "……"
_IDIOM = re.compile(r"#idiom\d*#")


@dataclass(frozen=True)
class Shape:
    name: str
    task: str
    needs: frozenset[str]
    """Columns that every file of this shape has."""
    takes: frozenset[str]
    """Further columns that the shape reads where they are there."""
    fits: Callable[[Record], bool]
    """Whether the values of a record are of this shape, too."""
    maker: Callable[[Source], Callable[[Record], Iterable[Record]]]
    """Of a file: the function from a record to plain ones."""
    said: str


def in_plain_form(table: Table, task: str | None, columns: ColumnsConfig) -> tuple[Table, str | None]:
    """The table as a reader takes it, and its task where a shape says it."""
    shape = None if columns.text or columns.label or not table.header else _shape_of(table, task)
    if shape is None:
        return table, task
    make, taken = shape.maker(table.source), shape.needs | shape.takes
    kept = [(name, place) for place, name in enumerate(table.names) if name not in taken]
    made: list[tuple[Row, Record]] = []
    for row in table.rows:
        record = {name: cell for name, cell in zip(table.names, row.cells, strict=True) if cell is not ABSENT}
        beside = {name: row.cells[place] for name, place in kept}
        try:
            made += [(row, beside | plain) for plain in make(record)]
        except (Unfit, KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            cause = error.cause if isinstance(error, Unfit) else f"{type(error).__name__}: {error}"
            fix = error.repair if isinstance(error, Unfit) else f"a record with {', '.join(sorted(shape.needs))}"
            raise table.wrong(f"the record is not as in {shape.name} ({cause})", fix, row) from None
    if not made:
        raise table.wrong(f"no question of {shape.name} is in the file", "put examples in it")
    names = tuple(dict.fromkeys(name for _, record in made for name in record))
    rows = tuple(
        Row(number, row.line, tuple(record.get(name, ABSENT) for name in names))
        for number, (row, record) in enumerate(made)
    )
    notes = [*table.notes, f"read as {shape.name}: {shape.said}", *_left(shape, [name for name, _ in kept], columns)]
    return Table(table.source, names, True, rows, notes), shape.task


def _shape_of(table: Table, task: str | None) -> Shape | None:
    first = dict(zip(table.names, table.rows[0].cells, strict=True))
    return next(
        (
            shape
            for shape in SHAPES
            if shape.needs <= set(table.names) and task in (None, shape.task) and shape.fits(first)
        ),
        None,
    )


def _left(shape: Shape, kept: list[str], columns: ColumnsConfig) -> list[str]:
    """Columns that nobody reads; readers of tables of texts report it themselves."""
    grouping = {name.strip() for each in columns.by for name in each.split(",")}
    left = [repr(name) for name in kept if name not in grouping]
    return [f"not read: {', '.join(left)}"] if left and shape.task == "choice" else []


def _race(_: Source) -> Callable[[Record], Iterable[Record]]:
    def made(record: Record) -> Iterator[Record]:
        asked = list(zip(record["questions"], record["options"], strict=True))
        answers = record.get("answers") or [None] * len(asked)
        for number, ((question, options), answer) in enumerate(zip(asked, answers, strict=True)):
            guid = {"guid": f"{record['id']}-{number}"} if "id" in record else {}
            told = {} if answer is None else {"answer": answer}
            yield {**guid, "context": record["article"], "question": question, "choices": options, **told}

    return made


def _arct(_: Source) -> Callable[[Record], Iterable[Record]]:
    def made(record: Record) -> Iterator[Record]:
        right = str(record.get("correctLabelW0orW1", "")).strip()
        if right not in ("", "0", "1"):
            raise Unfit(f"correctLabelW0orW1 is {right!r}", "0 or 1: the number of the right warrant")
        guid = {"guid": record["#id"]} if "#id" in record else {}
        choices = [record["warrant0"], record["warrant1"]]
        told = {"answer": Place(right)} if right else {}
        yield {**guid, "context": record["reason"], "question": record["claim"], "choices": choices, **told}

    return made


def _csl(_: Source) -> Callable[[Record], Iterable[Record]]:
    def made(record: Record) -> Iterator[Record]:
        label = {"label": record["label"]} if "label" in record else {}
        yield {"keyword": "；".join(record["keyword"]), "abst": record["abst"], **label}

    return made


def _wsc(_: Source) -> Callable[[Record], Iterable[Record]]:
    def made(record: Record) -> Iterator[Record]:
        text, target = record["text"], record["target"]
        places = [
            (*_stands(text, target[f"{span}_text"], target[f"{span}_index"]), signs)
            for span, signs in (("span1", ("_", "_")), ("span2", ("[", "]")))
        ]
        for start, stop, (before, after) in sorted(places, reverse=True):
            text = f"{text[:start]}{before}{text[start:stop]}{after}{text[stop:]}"
        yield {"text": text, **({"label": record["label"]} if "label" in record else {})}

    return made


def _stands(text: str, span: str, index: int) -> tuple[int, int]:
    """Where a span stands: CLUE counts characters, SuperGLUE words."""
    if text.startswith(span, index):
        return index, index + len(span)
    words = [match.start() for match in re.finditer(r"\S+", text)]
    if 0 <= index < len(words) and text.startswith(span, words[index]):
        return words[index], words[index] + len(span)
    raise Unfit(f"{span!r} does not stand at {index}", "an index in characters (CLUE) or in words (SuperGLUE)")


def _chid(source: Source) -> Callable[[Record], Iterable[Record]]:
    """CLUE keeps the answers in a file beside (train_answer.json); the original record has them (groundTruth)."""
    answers = _answers_beside(source.path)

    def made(record: Record) -> Iterator[Record]:
        texts, truth = record["content"], record.get("groundTruth")
        texts, number = [texts] if isinstance(texts, str) else texts, 0
        for text in texts:
            for gap in _IDIOM.finditer(text):
                choices = record["candidates"]
                choices = choices[number] if isinstance(choices[0], list) else choices
                passage = _IDIOM.sub(OTHER_GAP, text[: gap.start()]) + GAP + _IDIOM.sub(OTHER_GAP, text[gap.end() :])
                right = truth[number] if truth else answers.get(gap[0])
                guid = {} if gap[0] == "#idiom#" else {"guid": gap[0].strip("#")}
                told = {} if right is None else {"answer": right if isinstance(right, str) else Place(right)}
                yield {**guid, "question": passage, "choices": choices, **told}
                number += 1

    return made


def _answers_beside(path: Path) -> Mapping[str, Any]:
    beside = path.with_name(f"{path.stem}_answer{path.suffix}")
    if not beside.is_file():
        return {}
    try:
        found = json.loads(beside.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TextError(f"the file is not JSON: {error}", file=beside, repair="fetch the file anew") from None
    if not isinstance(found, dict):
        raise TextError("the answers are no object", file=beside, repair='the form is {"#idiom000001#": 3}')
    return found


def _listed(*names: str) -> Callable[[Record], bool]:
    return lambda record: all(isinstance(record.get(name), list) for name in names)


def _is_chid(record: Record) -> bool:
    content = record["content"]
    first = content[0] if isinstance(content, list) and content else content
    return isinstance(first, str) and isinstance(record["candidates"], list) and bool(_IDIOM.search(first))


def _is_wsc(record: Record) -> bool:
    target = record["target"]
    return isinstance(target, dict) and {"span1_text", "span1_index", "span2_text", "span2_index"} <= set(target)


SHAPES = (
    Shape(
        "RACE", "choice", frozenset({"article", "questions", "options"}), frozenset({"answers", "id"}),
        _listed("questions", "options"), _race,
        "every question of an article is an example (context = article, choices = options, answer A, B, C, D)",
    ),
    Shape(
        "ARCT", "choice", frozenset({"warrant0", "warrant1", "reason", "claim"}),
        frozenset({"correctLabelW0orW1", "#id"}), lambda record: True, _arct,
        "a choice of two warrants (context = reason, question = claim)",
    ),
    Shape(
        "ChID", "choice", frozenset({"content", "candidates"}), frozenset({"groundTruth", "realCount"}),
        _is_chid, _chid,
        f"every gap is an example (question = the passage with {GAP} in place of the idiom, other gaps {OTHER_GAP})",
    ),
    Shape(
        "CSL", "pair", frozenset({"abst", "keyword"}), frozenset({"label"}), _listed("keyword"), _csl,
        "text a = the keywords, joined by ；, text b = abst",
    ),
    Shape(
        "WSC", "classify", frozenset({"text", "target"}), frozenset({"label"}), _is_wsc, _wsc,
        "the text has _ _ around span1_text and [ ] around span2_text",
    ),
)  # fmt: skip
