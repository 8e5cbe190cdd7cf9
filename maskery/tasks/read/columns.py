"""Which column of a table is what: by what the user says, else by the usual names, else by how the values look.

Whatever was found by itself is told. Where two columns would do, nothing is taken: the refusal names them, and
`--text A,B --label C` settles it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from maskery.errors import TextError
from maskery.tasks.read.names import FIELDS, HALVES, IDS, LABELS, PAIRS, SEQUENCES, TEXTS, label_rank, plain
from maskery.tasks.read.table import Table
from maskery.tasks.settings import ColumnsConfig

HOW_TO_SAY = "columns go by name, or by number from 1"
TEXTS_OF = {"pair": 2, "rank": 2, "seq2seq": 1, "tag": 1}
"""Tasks that read a certain number of texts; the others read any."""
_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the text that a model learned from looked like, for files that are read after it."""

    fields: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    numbers: tuple[str, ...] | None = None
    """Columns beside the text that are numbers; None: whatever has only numbers."""
    places: tuple[str, ...] = ()
    """Numbers of the columns of the texts, where they were asked for by number."""


@dataclass(frozen=True)
class Roles:
    texts: tuple[int, ...]
    label: int | None
    meta: tuple[int, ...] = ()
    pair: bool = False
    """The texts are set against each other."""
    reasons: tuple[str, ...] = ()


def choose(table: Table, task: str | None, columns: ColumnsConfig, labelled: bool | None, seen: Seen) -> Roles:
    """`labelled`: True, there has to be a label; None, there may be one; False, it is not read."""
    found = _Choice(table, task, columns, seen).made(labelled is True)
    if labelled is False and found.label is not None:
        told = tuple(reason for reason in found.reasons if not reason.startswith(("label", "target")))
        return replace(found, label=None, reasons=told)
    return found


def column_of(table: Table, asked: str, option: str) -> int:
    """The column that a user means: a name before a number."""
    if table.header and asked in table.names:
        return table.names.index(asked)
    if asked.isdecimal() and 1 <= int(asked) <= len(table.names):
        return int(asked) - 1
    cause = f"{option} {asked}: there is no such column; the columns are {', '.join(table.names[:12])}"
    if table.header:
        raise table.wrong(cause, f"{option} NAME or {option} NUMBER: {HOW_TO_SAY}")
    numbers = "1" if len(table.names) == 1 else f"1 to {len(table.names)}"
    cause = f"{option} {asked}: there is no such column; there is no header, so columns go by number, {numbers}"
    raise table.wrong(cause, f"{option} NUMBER, or --header yes if the first line names them")


class _Choice:
    def __init__(self, table: Table, task: str | None, columns: ColumnsConfig, seen: Seen) -> None:
        self.table, self.task, self.columns, self.seen = table, task, columns, seen
        self.names = [plain(name) if table.header else "" for name in table.names]
        self.look = table.look
        self.asked = self._asked_texts()
        self.meta = tuple(column_of(table, name, "--meta") for name in columns.meta)
        self.reasons: list[str] = []

    def _asked_texts(self) -> tuple[int, ...]:
        asked = self.columns.text or (() if self.table.header else self.seen.places)
        if not self.columns.text and any(int(place) > len(self.names) for place in asked):
            return ()  # fewer columns than in the training data: their numbers mean nothing
        if self.seen.fields and not self.table.header and len(asked) == len(self.names):
            return tuple(range(len(asked)))  # the columns of a file that has texts and nothing else
        return tuple(column_of(self.table, name, "--text") for name in asked)

    def made(self, required: bool) -> Roles:
        if self.task == "seq2seq":
            return self._sequence(required)
        label = self._label(required)
        if label is not None and label in (*self.asked, *self.meta):
            raise self._doubt(f"{self.table.called(label)} cannot be the label and read as well", "--text A --label B")
        free = [at for at in range(len(self.names)) if at not in (*self.meta, label) and not self._is_id(at)]
        texts, pair = self._texts(free, label)
        wanted = TEXTS_OF.get(self.task or "", len(self.seen.fields) or len(texts))
        if len(texts) != wanted:
            # Not the task's name: others than tasks read through here, and their users never said it.
            cause = (
                f"{wanted} {'text is' if wanted == 1 else 'texts are'} read of every line, here {self._listed(texts)}"
            )
            raise self._doubt(cause, f"--text {','.join(['A', 'B', 'C', 'D'][:wanted])}")
        return Roles(texts, label, self.meta, pair, tuple(self.reasons))

    def _is_id(self, at: int) -> bool:
        return self.table.header and self.names[at] in IDS

    # The label

    def _label(self, required: bool) -> int | None:
        if self.columns.label:
            return self._asked_label(required)
        taken = (*self.asked, *self.meta)
        free = [at for at in range(len(self.names)) if at not in taken and not self._is_id(at)]
        for rank in range(len(LABELS) + 1):
            named = [at for at in free if self.table.header and label_rank(self.table.names[at]) == rank]
            fitting = [at for at in named if self._fits(at, named=True)]
            if len(fitting) == 1:
                self.reasons.append(f"label = {self.table.called(fitting[0])} (by its name)")
                return fitting[0]
            if len(fitting) > 1:
                raise self._which("label", fitting)
            if named and self.task is not None and required:
                return self._unfit_name(named, free)
            if len(named) == 1 and not required:
                return named[0]
        return self._label_by_values(free, required)

    def _unfit_name(self, named: Sequence[int], free: Sequence[int]) -> int:
        """A column is called a label and cannot be one of this task: others are not taken in its place unasked."""
        others = [at for at in free if at not in named and self.names[at] not in TEXTS and self._fits(at)]
        if len(named) == 1 and not others:
            return named[0]  # its rows are refused one by one, with their lines
        cause = f"{self._listed(named)} cannot be the label of {self.task} ({self._values(named[0])})"
        if not others:
            raise self._doubt(cause, "--label A, or another --task")
        choices = " or ".join(f"--label {self._short(at)}" for at in others)
        shown = ", ".join(f"{self.table.called(at)} ({self._values(at)})" for at in others)
        raise self._doubt(f"{cause}; these could: {shown}", f"{choices}, or another --task")

    def _asked_label(self, required: bool) -> int | None:
        header = self.table.header
        if not required and not self.columns.label.isdecimal() and self.columns.label not in self.table.names:
            return None
        if not required and self.columns.label.isdecimal() and not header and len(self.names) == 1:
            return None
        return column_of(self.table, self.columns.label, "--label")

    def _label_by_values(self, free: Sequence[int], required: bool) -> int | None:
        """Without a name that tells: one column that looks like a label and that is not the only one."""
        fitting = [at for at in free if self._fits(at) and not (self.table.header and self.names[at] in TEXTS)]
        if self.seen.labels:
            known = [at for at in free if self._holds_seen(at)]
            fitting = known if known else [] if not required else fitting
        if not required and self.table.header and not self.seen.labels:
            fitting = []  # in a file that needs no labels, only a name tells one
        if len(self.asked) + len(free) < 2 or (len(fitting) == len(free) == 1 and not self.asked):
            fitting = []
        if len(fitting) > 1:
            fitting = self._best(fitting)
        if len(fitting) == 1:
            self.reasons.append(f"label = {self.table.called(fitting[0])} (by its values)")
            return fitting[0]
        if fitting:
            raise self._which("label", fitting)
        if required:
            raise self._none()
        return None

    def _holds_seen(self, at: int) -> bool:
        """Whether most values are labels that are known: the others are refused later, with their lines."""
        cells = [str(cell).strip() for cell in self.table.column(at)]
        return 2 * sum(cell in self.seen.labels for cell in cells) >= len(cells)

    def _best(self, fitting: list[int]) -> list[int]:
        """Those whose values return. In a file of a few rows there may be none: then the only one of numbers, or one
        whose values are far shorter."""
        returning = [at for at in fitting if self._returns(at)]
        numbered = [at for at in returning if self._numbers_classes(at)]
        if len(numbered) == 1 and not self.table.header:
            return numbered  # CoLA: a source and a mark stand beside 0 and 1
        numbers = [at for at in fitting if self.look(at).numbers == 1]
        if returning or len(numbers) == 1:
            return returning or numbers
        by_width = sorted(fitting, key=lambda at: self.look(at).width)
        return by_width[:1] if 2 * self.look(by_width[0]).width < self.look(by_width[1]).width else fitting

    def _numbers_classes(self, at: int) -> bool:
        """Whether the values are 0, 1 ... up to the number of classes."""
        values = {str(cell).strip() for cell in self.table.column(at)}
        return len(values) > 1 and values == set(map(str, range(len(values))))

    def _returns(self, at: int) -> bool:
        return self.look(at).distinct <= self.look(at).filled / 2

    def _fits(self, at: int, named: bool = False) -> bool:
        """Whether the column could be the task's label."""
        look = self.look(at)
        if self.task in ("regress", "rank"):
            return look.scores or (named and look.numbers >= 0.5)
        if self.task == "multilabel":
            return look.lists or (look.classes and look.strings) or (named and look.filled > 0)
        if named and self.seen.labels and self._holds_seen(at):
            return True  # IFLYTEK: more classes than its development set shows by itself
        if self.task in ("classify", "pair"):
            return look.classes or (named and 0 < look.distinct <= look.many and not look.lists and look.whole)
        return look.classes or look.scores or look.lists or (named and look.distinct <= look.many)

    # The texts

    def _texts(self, free: Sequence[int], label: int | None) -> tuple[tuple[int, ...], bool]:
        if self.asked:
            if not self.columns.text:
                self.reasons.append(f"text = {self._listed(self.asked)} (as in the training data)")
            return self.asked, len(self.asked) == 2
        if self.seen.fields and set(self.seen.fields) <= set(self.table.names) and self.table.header:
            self.reasons.append("texts as in the training data")
            return tuple(self.table.names.index(name) for name in self.seen.fields), False
        texts, pair = self._texts_by_name(free)
        if texts:
            self.reasons.append(f"text = {self._listed(texts)} (by {'its name' if len(texts) == 1 else 'their names'})")
            return texts, pair
        found = [at for at in free if self.look(at).texts] or (list(free) if len(free) == 1 else [])
        if not found:
            raise self._doubt("no column looks like a text", f"--text A{'' if label is None else ' --label B'}")
        many = TEXTS_OF.get(self.task or "", len(self.seen.fields) or (1 if self.task else min(2, len(found))))
        if len(found) != many:
            raise self._which("text", found)
        self.reasons.append(f"text = {self._listed(found)} (by {'its' if len(found) == 1 else 'their'} values)")
        return tuple(found), len(found) == 2

    def _texts_by_name(self, free: Sequence[int]) -> tuple[tuple[int, ...], bool]:
        at = {self.names[each]: each for each in free if self.names[each]}
        wanted = TEXTS_OF.get(self.task or "", len(self.seen.fields))
        for first, second in PAIRS if wanted != 1 else ():
            if first in at and second in at:
                return (at[first], at[second]), True
        named = [each for each in free if self.names[each] in TEXTS]
        if "sentence" in at and "keywords" in at:  # TNEWS: keywords are made of the sentence
            named.remove(at["keywords"])
        if len(named) == 1 and self.names[named[0]] in HALVES:
            named = [each for each in free if each in named or self.look(each).texts]
        if len(named) > 1 and not (all(self.names[each] in FIELDS for each in named) and wanted in (0, len(named))):
            raise self._which("text", named)
        return tuple(named), False

    def _sequence(self, required: bool) -> Roles:
        """A text and its target, which is a text too."""
        free = [at for at in range(len(self.names)) if at not in self.meta and not self._is_id(at)]
        at = {self.names[each]: each for each in free if self.names[each]}
        source = self.asked[0] if self.asked else None
        target = column_of(self.table, self.columns.label, "--label") if self.columns.label else None
        for first, second in SEQUENCES:
            if source is None and target is None and first in at and second in at:
                source, target = at[first], at[second]
        rest = [each for each in free if each not in (source, target)]
        if len(rest) == 1 and (source is None) != (target is None):
            source, target = (rest[0], target) if source is None else (source, rest[0])
        if source is None and target is None and len(free) == 2 and not self.table.header:
            source, target = free
        if source is None and len(free) == 1 and not required:
            source = free[0]
        if len(self.asked) > 1 or source is None or (target is None and required):
            raise self._doubt(
                f"which column is the source, which the target? {self._listed(free)}", "--text A --label B"
            )
        self.reasons.append(f"source = {self.table.called(source)}")
        if target is not None:
            self.reasons.append(f"target = {self.table.called(target)}")
        return Roles((source,), target, self.meta, False, tuple(self.reasons))

    # Refusals

    def _listed(self, found: Sequence[int]) -> str:
        return ", ".join(self.table.called(at) for at in found) or "none"

    def _which(self, what: str, found: Sequence[int]) -> TextError:
        shown = ", ".join(f"{self.table.called(at)} ({self._values(at)})" for at in found)
        choices = " or ".join(f"--{what} {self._short(at)}" for at in found)
        both = f" or --text {','.join(self._short(at) for at in found)}" if what == "text" else ""
        return self._doubt(f"which column is the {what}? It could be {shown}", choices + both)

    def _none(self) -> TextError:
        shown = ", ".join(f"{self.table.called(at)} ({self._values(at)})" for at in range(len(self.names)))
        what = "numbers" if self.task in ("regress", "rank") else "few short values"
        cause = f"no column looks like a label ({what}); there are {shown}"
        # A model that has learned is asked for answers, where nobody knows the right ones.
        return self._doubt(cause, "--text A --label B" + ("; or maskery predict RUN FILE" if self.seen.fields else ""))

    def _short(self, at: int) -> str:
        return self.table.names[at] if self.table.header else str(at + 1)

    def _values(self, at: int) -> str:
        values = list(dict.fromkeys(str(cell)[:20] for cell in self.table.column(at)[:1000]))
        return ", ".join(values[:_SHOWN]) + (" ..." if len(values) > _SHOWN else "")

    def _doubt(self, cause: str, repair: str) -> TextError:
        return self.table.wrong(cause, f"{repair}; {HOW_TO_SAY}")
