"""Questions with choices: C3's JSON, and records with `question`, `choices` and `answer`, one on each line.

The label is the number of the right choice from 0, as a name. The answer is told by its words, or by its letter (A is
the first choice); which of its places is meant by a number cannot be known (from 0, or from 1?), so a number is taken
only where it is one of the choices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from maskery.errors import TextError
from maskery.tasks.examples import Example, Examples
from maskery.tasks.read.table import ABSENT, Table
from maskery.tasks.read.values import counted

FIELDS = ("context", "question")
CHOICES = ("choices", "choice", "options")
CONTEXTS = ("context", "article", "passage")
_FORM = '[[["line of the context", ...], [{"question": "...", "choice": ["...", ...], "answer": "..."}], "id"], ...]'


class Place(int):
    """An answer that is known to be the number of the right choice, from 0."""


def is_c3(value: Any) -> bool:
    if not isinstance(value, list) or not value or not isinstance(value[0], list) or len(value[0]) < 2:
        return False
    return isinstance(value[0][0], list) and isinstance(value[0][1], list)


def of_c3(value: Any, file: str, split: str, labelled: bool | None) -> Examples:
    counts: Counter[str] = Counter()
    items: list[Example] = []
    for number, passage in enumerate(value):
        try:
            lines, questions = passage[0], passage[1]
            name = str(passage[2]) if len(passage) > 2 else f"{split}-{number}"
            context = "\n".join(lines)
            asked = [(each["question"], each["choice"], each.get("answer", ABSENT)) for each in questions]
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            cause = f"passage {number + 1} is not as in C3 ({type(error).__name__}: {error})"
            raise TextError(cause, file=file, repair=f"the form is {_FORM}") from None
        for place, (question, choices, answer) in enumerate(asked):
            guid = f"{name}-{place}"
            items.append(_example(guid, (context, question), choices, answer, file, 0, labelled, counts))
    if not items:
        raise TextError("there is no question in the file", file=file, repair=f"the form is {_FORM}")
    return Examples(task="choice", fields=FIELDS, items=tuple(items), notes=tuple(_notes(items, counts)))


def of_table(table: Table, split: str, labelled: bool | None) -> Examples:
    at = {name: place for place, name in enumerate(table.names)}
    choices, context = (next((at[name] for name in names if name in at), None) for names in (CHOICES, CONTEXTS))
    if choices is None or "question" not in at:
        cause = f"choice reads question, choices and answer; there are {', '.join(table.names)}"
        raise table.wrong(
            cause, 'records like {"context": "...", "question": "...", "choices": [...], "answer": "..."}'
        )
    counts: Counter[str] = Counter()
    items = []
    for row in table.rows:
        answer = row.cells[at["answer"]] if "answer" in at else ABSENT
        texts = ("" if context is None else _context(row.cells[context]), row.cells[at["question"]])
        guid = str(row.cells[at["guid"]]) if "guid" in at else f"{split}-{row.number}"
        made = _example(guid, texts, row.cells[choices], answer, table.source.name, row.line, labelled, counts)
        items.append(replace(made, by=table.groups_of(row)))
    notes = (*table.notes, *_notes(items, counts))
    return Examples(task="choice", fields=FIELDS, items=tuple(items), notes=notes)


def _context(cell: Any) -> Any:
    """Lines of a dialogue are one text."""
    if isinstance(cell, list) and all(isinstance(line, str) for line in cell):
        return "\n".join(cell)
    return "" if cell is ABSENT or cell is None else cell


def _example(
    guid: str, texts: tuple[Any, Any], choices: Any, answer: Any, file: str, line: int, labelled: bool | None,
    counts: Counter[str],
) -> Example:  # fmt: skip
    if not isinstance(choices, list) or len(choices) < 2 or not all(isinstance(each, str) for each in choices):
        raise _wrong(guid, f"the choices are {str(choices)[:60]}", "a list of two texts or more", file, line)
    if not all(isinstance(text, str) for text in texts):
        raise _wrong(guid, "context or question is no text", f"the form is {_FORM}", file, line)
    counts["empty texts, kept"] += sum(not text.strip() for text in (texts[1], *choices))
    label = None
    if labelled is not False and answer not in (ABSENT, None, ""):
        label = _right(guid, [each.strip() for each in choices], answer, file, line, counts)
    elif labelled is True:
        raise _wrong(guid, "there is no answer", "give the question its answer, or leave it out", file, line)
    return Example(guid=guid, texts=texts, label=label, choices=tuple(choices), file=file, line=line)


def _right(guid: str, choices: list[str], said: Any, file: str, line: int, counts: Counter[str]) -> str:
    answer = str(said).strip()
    place = said if isinstance(said, Place) else _letter(answer, choices)
    if place is not None and 0 <= place < len(choices):
        counts["answers that are letters: A is the first choice"] += not isinstance(said, Place)
        return str(int(place))
    if answer not in choices:
        shown = ", ".join(repr(each) for each in choices)
        cause = f"the answer {answer!r} is none of the choices {shown}"
        raise _wrong(guid, cause, "write the answer as its choice is written", file, line)
    counts["questions with the right choice twice: the first one is taken"] += choices.count(answer) > 1
    return str(choices.index(answer))


def _letter(answer: str, choices: list[str]) -> int | None:
    """The place that A, B, C ... name, unless letters themselves are to be chosen from."""
    letter = len(answer) == 1 and "A" <= answer <= "Z" and not any(len(each) == 1 for each in choices)
    return ord(answer) - ord("A") if letter else None


def _wrong(guid: str, cause: str, repair: str, file: str, line: int) -> TextError:
    return TextError(f"question {guid}: {cause}", file=file, line=line or None, repair=repair)


def _notes(items: list[Example], counts: Counter[str]) -> Iterator[str]:
    sizes = sorted({len(item.choices) for item in items})
    many = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    yield f"{counted(len(items), 'questions')} with {many} choices"
    yield from (counted(count, what) for what, count in counts.items() if count)
    unsaid = sum(item.label is None for item in items)
    if unsaid:
        yield counted(unsaid, "questions whose answer nobody said")
