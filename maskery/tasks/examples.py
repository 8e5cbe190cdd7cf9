"""Labelled text as a task reads it: one `Example` a question, whatever file it came from.

    classify, regress, multilabel, rank      texts of the fields, and a label
    pair                                     the same with two fields
    tag                                      one text, and spans of characters in it
    qa                                       context and question, and answers that stand in the context
    choice                                   context and question, choices, and the name of the right one's number
    seq2seq                                  source, and the target as the label

Places are told as file and line, so that whatever is wrong with an example can be found again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import overload

from maskery.errors import TextError

TASKS = ("classify", "pair", "regress", "multilabel", "tag", "qa", "choice", "rank", "seq2seq")

Label = str | float | frozenset[str]
"""The name of a class, a score, or the names of all classes that apply."""


@dataclass(frozen=True)
class Span:
    """Characters start..stop-1 of the first text are a `kind`."""

    start: int
    stop: int
    kind: str


@dataclass(frozen=True)
class Answer:
    """An answer, and where it begins in the context (the first text)."""

    start: int
    text: str

    @property
    def stop(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, kw_only=True)
class Example:
    guid: str
    """split-number, as in train-0; of a file with ids of its own, those."""
    texts: tuple[str, ...]
    """In the order of `Examples.fields`."""
    label: Label | None = None
    """None: nobody said."""
    meta: tuple[str | float, ...] = ()
    """In the order of `Examples.meta`."""
    by: tuple[str, ...] = ()
    """Its groups in an evaluation, in the order of `Examples.by`."""
    choices: tuple[str, ...] = ()
    spans: tuple[Span, ...] | None = None
    """Ascending and apart; None: nobody said."""
    answers: tuple[Answer, ...] | None = None
    """Empty: the context has no answer. None: nobody said."""
    words: tuple[tuple[int, int], ...] = ()
    """tag: where the file's own words stand in the text, if it is parted into words."""
    file: str = ""
    line: int = 0
    """From 1; 0: a file without lines, or no file."""

    @property
    def text_a(self) -> str:
        return self.texts[0]

    @property
    def text_b(self) -> str | None:
        return self.texts[1] if len(self.texts) > 1 else None

    def wrong(self, cause: str, repair: str) -> TextError:
        """An error at the example's place."""
        if self.line:
            return TextError(cause, file=self.file, line=self.line, repair=repair)
        return TextError(cause, file=f"{self.file} ({self.guid})" if self.file else self.guid, repair=repair)


@dataclass(frozen=True, kw_only=True)
class Examples(Sequence[Example]):
    """The examples of one file or of one split."""

    task: str
    fields: tuple[str, ...]
    """Names of the texts."""
    items: tuple[Example, ...]
    meta: tuple[str, ...] = ()
    """Names of the columns beside the text."""
    by: tuple[str, ...] = ()
    """Names of the columns that group the examples in an evaluation."""
    labels: tuple[str, ...] = ()
    """In an order that somebody gave them; empty: nobody did."""
    notes: tuple[str, ...] = field(default=())
    """What was found by itself and what was left out: shown before anything is trained."""

    @overload
    def __getitem__(self, at: int) -> Example: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Example, ...]: ...
    def __getitem__(self, at: int | slice) -> Example | tuple[Example, ...]:
        return self.items[at]

    def __len__(self) -> int:
        return len(self.items)
