"""A table to examples: classify, pair, regress, multilabel, rank and seq2seq."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from maskery.errors import Unfit
from maskery.tasks.examples import Example, Examples, Label
from maskery.tasks.read import values
from maskery.tasks.read.columns import HOW_TO_SAY, Roles, Seen, choose
from maskery.tasks.read.labels import names_of
from maskery.tasks.read.looks import is_lost, is_missing, is_number
from maskery.tasks.read.names import FIELDS, SCORES, SEQUENCES, plain
from maskery.tasks.read.table import ABSENT, Row, Table
from maskery.tasks.settings import ColumnsConfig

_SHOWN_CLASSES = 12


def of_table(
    table: Table, task: str | None, split: str, columns: ColumnsConfig, labelled: bool | None, seen: Seen
) -> Examples:
    """The examples of a table; without a task, it is found by the columns and told."""
    given = task
    if task is None and {frozenset(pair) for pair in SEQUENCES} & {frozenset(map(plain, table.names))}:
        task = "seq2seq"
    roles = choose(table, task, columns, labelled, seen)
    task = task or _task_of(table, roles)
    notes = [*table.notes, *roles.reasons, *_left(table, roles)]
    if given is None:
        notes.insert(0, f"task = {task} (by the columns; --task says another)")
    if roles.label is None:
        notes.append("labels are not read" if labelled is False else "there is no label")
    else:
        _check_label(table, roles.label, task, asked=bool(columns.label))
    return _Rows(table, task, split, roles, labelled is True, seen, notes).examples()


def _task_of(table: Table, roles: Roles) -> str:
    if roles.label is None:
        return "pair" if roles.pair else "classify"
    look, name = table.look(roles.label), plain(table.names[roles.label])
    if look.lists:
        return "multilabel"
    if look.numbers == 1 and (not look.whole or (name in SCORES and look.distinct > 2)):
        return "regress"
    fields = all(plain(table.names[at]) in FIELDS for at in roles.texts)
    return "pair" if len(roles.texts) == 2 and not fields else "classify"


def guid_place(table: Table) -> int | None:
    """The column that tells what each example is called."""
    return table.names.index("guid") if table.header and "guid" in table.names else None


def _left(table: Table, roles: Roles) -> list[str]:
    used = {*roles.texts, *roles.meta, roles.label, guid_place(table), *(at for each in table.by for at in each)}
    left = [table.called(at) for at in range(len(table.names)) if at not in used]
    shown = ", ".join(left[:8]) + (f" and {len(left) - 8} more" if len(left) > 8 else "")
    return [f"not read: {shown}"] if left else []


def _check_label(table: Table, at: int, task: str, *, asked: bool) -> None:
    look = table.look(at)
    if task in ("classify", "pair") and look.numbers == 1 and not look.whole and not asked:
        cause = f"the label {table.called(at)} has numbers with fractions: scores, and no classes"
        raise table.wrong(cause, f"--task regress; or --label {table.names[at]}, if they are classes", table.rows[0])
    if task in ("classify", "pair") and look.really_text:
        cause = f"the label {table.called(at)} has {look.distinct:,} values in {look.filled:,} rows: it is no label but"
        row = next(row for row in table.rows if not is_missing(row.cells[at]))
        what = f" text, as {str(row.cells[at])[:40]!r}"
        raise table.wrong(cause + what, f"--label COLUMN of the classes; {HOW_TO_SAY}", row)


@dataclass
class _Rows:
    table: Table
    task: str
    split: str
    roles: Roles
    required: bool
    seen: Seen
    notes: list[str]
    counts: Counter[str] = field(default_factory=Counter)
    numeric: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        self.numeric = frozenset(at for at in self.roles.meta if self._numeric(at))

    def examples(self) -> Examples:
        read = self._reader()
        unsure = self._unsure()
        items = []
        for row in self.table.rows:
            if unsure and str(row.cells[self.roles.label or 0]).strip() == "-":
                self.counts["rows whose label is '-' (nobody agreed on one): left out"] += 1
                continue
            items.append(self._example(row, read))
        if self.counts["empty"] == len(items) * len(self.roles.texts):
            raise self.table.wrong("all texts are empty", f"--text COLUMN of the texts; {HOW_TO_SAY}")
        return Examples(
            task=self.task,
            fields=self._fields(),
            items=tuple(items),
            meta=tuple(self.table.names[at] for at in self.roles.meta),
            labels=self._ordered(items),
            notes=(*self.notes, *self._told(items)),
        )

    def _ordered(self, items: list[Example]) -> tuple[str, ...]:
        """The classes in the order of the data that are learned from, where they say one."""
        if self.roles.label is None or self.split != "train" or self.task not in ("classify", "pair", "multilabel"):
            return ()
        found = self.table.classes.get(self.table.names[self.roles.label], ())
        if found:
            self.notes.append(f"labels in the order of the data: {', '.join(found[:_SHOWN_CLASSES])}")
        shown = {name for item in items for name in names_of(item)}
        if unseen := [name for name in found if name not in shown]:
            self.notes.append(f"no example has the label {' or '.join(unseen[:_SHOWN_CLASSES])}: it is not learned")
        return found

    def _fields(self) -> tuple[str, ...]:
        if self.table.header:
            return tuple(self.table.names[at] for at in self.roles.texts)
        if len(self.seen.fields) == len(self.roles.texts):
            return self.seen.fields
        if len(self.roles.texts) == 1:
            return ("source",) if self.task == "seq2seq" else ("text",)
        return tuple(f"text_{'abcdefgh'[number]}" for number in range(len(self.roles.texts)))

    def _reader(self) -> Callable[[Any], Label]:
        if self.roles.label is None:
            return values.class_name
        if self.task in ("classify", "pair"):
            return values.class_number if self.table.look(self.roles.label).numbers == 1 else values.class_name
        if self.task in ("regress", "rank"):
            return values.score
        if self.task == "seq2seq":
            return lambda cell: cell if isinstance(cell, str) else values.class_name(cell)
        try:
            separator = values.separator_of(self.table.column(self.roles.label))
        except Unfit as error:
            raise self.table.wrong(error.cause, error.repair) from None
        if separator:
            self.notes.append(f"{separator!r} parts the labels of an example")
        return lambda cell: values.names(cell, separator)

    def _unsure(self) -> bool:
        """Sets of entailment mark pairs on which the readers did not agree with a dash."""
        if self.roles.label is None or self.task not in ("classify", "pair"):
            return False
        return {"-", "entailment"} <= {cell for cell in self.table.column(self.roles.label) if isinstance(cell, str)}

    def _example(self, row: Row, read: Callable[[Any], Label]) -> Example:
        named = guid_place(self.table)
        return Example(
            guid=f"{self.split}-{row.number}" if named is None else str(row.cells[named]),
            texts=tuple(self._text(row, at) for at in self.roles.texts),
            label=self._label(row, read),
            meta=tuple(self._beside(row, at) for at in self.roles.meta),
            by=self.table.groups_of(row),
            file=self.table.source.name,
            line=row.line,
        )

    def _text(self, row: Row, at: int) -> str:
        cell = row.cells[at]
        if cell is ABSENT:
            cause, fix = f"the record has no field {self.table.names[at]!r}", "give it one, or --text NAME of another"
            raise self.table.wrong(cause, fix, row)
        if isinstance(cell, list | dict | bytes):
            kind = "an object" if isinstance(cell, dict) else "bytes" if isinstance(cell, bytes) else "a list"
            raise self.table.wrong(f"{self.table.called(at)} holds {kind}, not text", "--text NAME of a text", row)
        if cell is None or (isinstance(cell, float) and is_lost(cell)):
            cell = ""
        text = cell if isinstance(cell, str) else values.class_name(cell)
        self.counts["empty"] += not text.strip()
        return text

    def _label(self, row: Row, read: Callable[[Any], Label]) -> Label | None:
        if self.roles.label is None:
            return None
        cell = row.cells[self.roles.label]
        if is_missing(cell):
            if self.task == "multilabel" and cell is not ABSENT:
                return frozenset()
            if self.required:
                fix = "give the example a label, or leave it out"
                raise self.table.wrong(f"there is no label in {self.table.called(self.roles.label)}", fix, row)
            self.counts["examples without a label"] += 1
            return None
        try:
            return read(cell)
        except Unfit as error:
            raise self.table.wrong(error.cause, error.repair, row) from None

    def _numeric(self, at: int) -> bool:
        """Whether a column beside the text is numbers, told."""
        if self.seen.numbers is None:
            numeric = all(is_number(row.cells[at]) for row in self.table.rows)
        else:
            numeric = self.table.names[at] in self.seen.numbers
        self.notes.append(f"beside the text: {self.table.called(at)} ({'numbers' if numeric else 'names'})")
        return numeric

    def _beside(self, row: Row, at: int) -> str | float:
        cell = row.cells[at]
        try:
            if at in self.numeric:
                return values.score(cell)
            return "" if is_missing(cell) else values.class_name(cell)
        except Unfit as error:
            kind = "number" if at in self.numeric else "name"
            cause = f"{self.table.called(at)}, a column beside the text, holds {str(cell)[:40]!r}, which is no {kind}"
            raise self.table.wrong(cause, f"put a {kind} there, or leave the column out of --meta", row) from error

    def _told(self, items: list[Example]) -> list[str]:
        """What the rows turned out to be."""
        empty = self.counts.pop("empty", 0)
        told = [values.counted(count, what) for what, count in self.counts.items()]
        if empty:
            told.append(f"{values.counted(empty, 'empty texts')}, kept")
        if self.roles.label is None or self.task == "seq2seq":
            return told
        scores = [item.label for item in items if isinstance(item.label, float)]
        if scores:
            return [*told, f"scores from {min(scores):g} to {max(scores):g}"]
        classes: Counter[str] = Counter()
        for item in items:
            classes.update(names_of(item))
        shown = ", ".join(f"{name} x {count:,}" for name, count in classes.most_common(_SHOWN_CLASSES))
        return [
            *told,
            f"{values.counted(len(classes), 'labels')}: {shown}{' ...' if len(classes) > _SHOWN_CLASSES else ''}",
        ]
