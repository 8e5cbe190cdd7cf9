"""Questions whose answers stand in a text: SQuAD's JSON (1.1, 2.0, cmrc2018, DRCD), and its records one on each line.

An answer is where the file says. If other characters stand there, the nearest place where its words do stand is taken
and counted. A question whose answer stands nowhere cannot be learned: it is left out and told.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from maskery.corpus.lines import Tally, whole_text
from maskery.corpus.sources import Source
from maskery.errors import TextError
from maskery.tasks.examples import Answer, Example, Examples
from maskery.tasks.read.table import ABSENT, Table
from maskery.tasks.read.values import counted

FIELDS = ("context", "question")
_FORM = '{"data": [{"paragraphs": [{"context": "...", "qas": [{"id": "...", "question": "...", "answers": [...]}]}]}]}'
_SHOWN = 5


@dataclass(frozen=True)
class _Asked:
    guid: str
    line: int
    context: str
    question: str
    answers: Any
    """As the file has them; ABSENT: nobody said."""
    impossible: bool
    by: tuple[str, ...] = ()


def of_squad(value: Any, source: Source, split: str, labelled: bool | None) -> Examples:
    return _Reader(source, labelled).examples(_asked(value, source.name, split))


def is_cmrc(value: Any) -> bool:
    """CMRC's own form: passages with context_text, and answers without a place."""
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and {"context_text", "qas"} <= set(first)


def of_cmrc(value: Any, source: Source, split: str, labelled: bool | None) -> Examples:
    """An answer is where its words first stand."""
    try:
        paragraphs = [
            {
                "context": each["context_text"],
                "qas": [_squad_form(asked, each["context_text"]) for asked in each["qas"]],
            }
            for each in value
        ]
    except (KeyError, TypeError, AttributeError) as error:
        cause = f"a passage is not as in CMRC 2018 ({type(error).__name__}: {error})"
        fix = '[{"context_text": "...", "qas": [{"query_id": "...", "query_text": "...", "answers": ["..."]}]}]'
        raise TextError(cause, file=source.name, repair=f"the form is {fix}") from None
    found = of_squad({"data": [{"paragraphs": paragraphs}]}, source, split, labelled)
    return replace(found, notes=("CMRC's form without places: answers are where they first stand", *found.notes))


def _squad_form(asked: dict[str, Any], context: str) -> dict[str, Any]:
    said = asked.get("answers")
    told = {} if said is None else {"answers": [{"text": text, "answer_start": context.find(text)} for text in said]}
    return {"id": asked["query_id"], "question": asked["query_text"], **told}


def of_table(table: Table, split: str, labelled: bool | None) -> Examples:
    """Records with context, question and answers, as the JSON of one question."""
    return _Reader(table.source, labelled).examples(_rows(table, split))


def _asked(value: Any, file: str, split: str) -> Iterator[_Asked]:
    number = 0
    try:
        for article in value["data"]:
            for paragraph in article["paragraphs"]:
                for asked in paragraph["qas"]:
                    guid, answers = str(asked.get("id", f"{split}-{number}")), asked.get("answers", ABSENT)
                    context, question = paragraph["context"], asked["question"]
                    yield _Asked(guid, 0, context, question, answers, bool(asked.get("is_impossible", False)))
                    number += 1
    except (KeyError, TypeError, AttributeError) as error:
        cause = f"question {number + 1} is not as in SQuAD ({type(error).__name__}: {error})"
        raise TextError(cause, file=file, repair=f"the form is {_FORM}") from None


def _rows(table: Table, split: str) -> Iterator[_Asked]:
    at = {name: place for place, name in enumerate(table.names)}
    for row in table.rows:
        cells = {name: row.cells[place] for name, place in at.items()}
        for name in FIELDS:
            if not isinstance(cells.get(name), str):
                raise table.wrong(f"there is no text in {name!r}", "records with context, question, answers", row)
        found = cells.get("answers", ABSENT)
        if isinstance(found, dict):
            pairs = zip(found.get("text", ()), found.get("answer_start", ()), strict=False)
            found = [{"text": text, "answer_start": start} for text, start in pairs]
        guid = str(cells.get("id") or f"{split}-{row.number}")
        yield _Asked(
            guid, row.line, cells["context"], cells["question"], found, cells.get("is_impossible", False) is True,
            table.groups_of(row),
        )  # fmt: skip


@dataclass
class _Reader:
    source: Source
    labelled: bool | None
    moved: int = 0
    answers: int = 0
    empty: int = 0
    lost: list[_Asked] = field(default_factory=list)
    """Questions whose answers stand nowhere."""
    lost_answers: int = 0

    @property
    def file(self) -> str:
        return self.source.name

    def _line(self, asked: _Asked) -> int:
        """Where the question stands; in JSON that is one value, where its id is written. 0: it has none."""
        if asked.line:
            return asked.line
        before, found, _ = whole_text(self.source, "replace", Tally()).partition(json.dumps(asked.guid))
        return before.count("\n") + 1 if found else 0

    def examples(self, asked: Iterator[_Asked]) -> Examples:
        items = [item for each in asked if (item := self._example(each)) is not None]
        if not items and not self.lost:
            raise TextError("there is no question in the file", file=self.file, repair=f"the form is {_FORM}")
        if len(self.lost) > len(items):
            cause = f"the answers of {len(self.lost):,} of {len(items) + len(self.lost):,} questions do not stand in"
            fix = "answers are parts of their context, letter by letter: check that the texts were not changed"
            first = self._line(self.lost[0])
            cause = f"{cause} their contexts (first: {self.lost[0].guid})"
            raise TextError(cause, file=self.file, line=first or None, repair=fix)
        return Examples(task="qa", fields=FIELDS, items=tuple(items), notes=tuple(self._notes(items)))

    def _example(self, asked: _Asked) -> Example | None:
        if not isinstance(asked.context, str) or not isinstance(asked.question, str):
            raise TextError(
                f"{asked.guid}: context or question is no text", file=self.file, repair=f"the form is {_FORM}"
            )
        found = self._answers(asked)
        if found is None and self.labelled is True and asked.answers in (ABSENT, None):
            cause, fix = f"question {asked.guid} has no answers", "give it its answers, or leave it out"
            raise TextError(cause, file=self.file, line=asked.line or None, repair=fix)
        if asked.answers not in (ABSENT, None, []) and not asked.impossible and found == ():
            self.lost.append(asked)
            return None
        self.empty += not asked.context.strip() or not asked.question.strip()
        texts = (asked.context, asked.question)
        return Example(guid=asked.guid, texts=texts, answers=found, by=asked.by, file=self.file, line=asked.line)

    def _answers(self, asked: _Asked) -> tuple[Answer, ...] | None:
        if self.labelled is False or asked.answers in (ABSENT, None):
            return () if asked.impossible and self.labelled is not False else None
        if asked.impossible:
            return ()
        try:
            said = [(str(answer["text"]), int(answer["answer_start"])) for answer in asked.answers]
        except (KeyError, TypeError, ValueError):
            cause, fix = (
                f"the answers of {asked.guid} cannot be read",
                'the form is [{"text": "...", "answer_start": 0}]',
            )
            raise TextError(cause, file=self.file, line=asked.line or None, repair=fix) from None
        if self.labelled is None and all(start < 0 and text not in asked.context for text, start in said) and said:
            return None  # CMRC's test set: FAKE_ANSWER_1 at -1 keeps the place of an answer that is not published
        placed = [self._placed(asked.context, text, start) for text, start in said]
        return tuple(answer for answer in placed if answer is not None)

    def _placed(self, context: str, text: str, start: int) -> Answer | None:
        self.answers += 1
        if text and start >= 0 and context.startswith(text, start):
            return Answer(start, text)
        for written in (text, text.strip()):
            places = _places(context, written)
            if places:
                self.moved += 1
                return Answer(min(places, key=lambda place: (abs(place - start), place)), written)
        self.lost_answers += 1
        return None

    def _notes(self, items: list[Example]) -> Iterator[str]:
        without = sum(item.answers == () for item in items)
        if without:
            yield counted(without, "questions without an answer in their context")
        unsaid = sum(item.answers is None for item in items)
        if unsaid:
            yield counted(unsaid, "questions whose answers nobody said")
        if self.moved:
            yield f"{self.moved:,} of {self.answers:,} answers stood elsewhere than said: moved to the nearest place"
        if self.lost_answers:
            yield f"{self.lost_answers:,} of {self.answers:,} answers stand nowhere in their context: left out"
        if self.lost:
            more = " ..." if len(self.lost) > _SHOWN else ""
            shown = ", ".join(f"{each.guid} in line {self._line(each)}" for each in self.lost[:_SHOWN]) + more
            yield f"{counted(len(self.lost), 'questions')} left out, their answers stand nowhere: {shown}"
        if self.empty:
            yield counted(self.empty, "questions with an empty text, kept")


def _places(context: str, text: str) -> list[int]:
    places: list[int] = []
    at = context.find(text) if text else -1
    while at >= 0:
        places.append(at)
        at = context.find(text, at + 1)
    return places
