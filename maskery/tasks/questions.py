"""What a task asks of its rows: the targets of a batch before the network reads it, the answers from its scores after.

    OfRows      classify, pair, regress, multilabel: one vector a row; windows of a text answer together
    OfGroups    choice, rank: candidates of a question are compared, so they are read together
    OfPieces    tag: one tag a piece of text
    OfSpans     qa: where the answer begins and ends

Scores come as rows were framed: (R,C) of all rows, (E,C) of all examples where several rows of each are joined
(`sides`), or (N,C) of all slots. Nothing here knows of networks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maskery.batches import Targets
from maskery.tasks.batches import flat_slots
from maskery.tasks.examples import Example, Examples
from maskery.tasks.framing.rows import Rows, joined_windows
from maskery.tasks.spans import Found, Window, aims_of, find_answer, window_of
from maskery.tasks.tags import Encoded, Pieces, Tags, pieces_of, places_in

Floats = NDArray[np.float32] | NDArray[np.float64]
SIZES = "sizes"
"""Key in `Targets.extra`: how many candidates, pieces or slots each question has."""
SURE = 0.5
"""multilabel: the probability from which on a label is said."""


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """What is said of each example."""

    answers: list[Any]
    """Names of classes, scores, sets of names, spans, texts, numbers of choices: as `judge` takes them."""
    probabilities: Floats | list[tuple[float, ...]] | None = None
    """(E,C) of classes or choices. qa: (E,) of the answer among the best ones, and "no answer" where that is one; NaN:
    nothing was read. tag: of each span of an example, the mean over its pieces of the tag's (with a CRF, marginal)."""
    groups: list[Hashable] | None = None
    """rank: the question of each example."""
    notes: tuple[str, ...] = ()

    @property
    def of_classes(self) -> Floats | None:
        """The probabilities of classes or choices; None where answers are none of these."""
        found = self.probabilities
        return found if isinstance(found, np.ndarray) and found.ndim == 2 else None


@dataclass(frozen=True)
class Question(ABC):
    examples: Examples
    labels: tuple[str, ...]
    sides: int = field(default=1, kw_only=True)
    """Rows of one example, beside each other, that have their scores together: fields read apart, or both orders."""

    @property
    def by_slot(self) -> bool:
        """Whether slots are asked, and not rows."""
        return False

    @property
    @abstractmethod
    def classes(self) -> int:
        """Scores of a row or of a slot."""

    def units(self, rows: Rows) -> NDArray[np.int64]:
        """(R,) the unit of each row, ascending: rows of one unit are read in one batch."""
        return np.arange(len(rows)) // self.sides

    def prepare(self, rows: Rows) -> tuple[str, ...]:
        """Find the targets of all rows before they are asked again and again; what is to be said of them."""
        return ()

    @abstractmethod
    def targets(self, rows: Rows) -> Targets:
        """What is asked of the rows of a batch; rows whose example has no label are not asked."""

    @abstractmethod
    def predicted(self, rows: Rows, scores: Floats) -> Predicted:
        """The answers of all examples."""

    @property
    @abstractmethod
    def gold(self) -> list[Any]:
        """The right answers of all examples, in the form of `Predicted.answers`."""


def softmax(scores: Floats) -> NDArray[np.float64]:
    raised = np.exp(np.asarray(scores, dtype=np.float64) - scores.max(axis=1, keepdims=True))
    shares: NDArray[np.float64] = raised / raised.sum(axis=1, keepdims=True)
    return shares


def _sigmoid(scores: Floats) -> NDArray[np.float64]:
    return 0.5 * (1 + np.tanh(0.5 * np.asarray(scores, dtype=np.float64)))


def _over_windows(example: NDArray[np.int64], values: NDArray[np.float64], examples: int) -> NDArray[np.float64]:
    """(R,C) of the rows of an `example` (R,) each -> (E,C) the mean over its windows."""
    many = np.bincount(example, minlength=examples)
    summed = np.zeros((examples, values.shape[1]))
    np.add.at(summed, example, values)
    return summed / np.maximum(many, 1)[:, None]


@dataclass(frozen=True)
class OfRows(Question):
    @property
    def classes(self) -> int:
        return 1 if self.examples.task == "regress" else len(self.labels)

    @cached_property
    def _label(self) -> NDArray[Any]:
        """(E,) numbers of classes or scores, (E,C) 0 and 1; nothing is asked where there is no label."""
        number = {name: place for place, name in enumerate(self.labels)}
        if self.examples.task == "regress":
            return np.array([0.0 if each.label is None else each.label for each in self.examples], dtype=np.float32)
        if self.examples.task != "multilabel":
            return np.array([0 if each.label is None else number[str(each.label)] for each in self.examples])
        marks = np.zeros((len(self.examples), len(self.labels)), dtype=np.float32)
        for at, each in enumerate(self.examples):
            marks[at, [number[name] for name in _names(each)]] = 1.0
        return marks

    @cached_property
    def _said(self) -> NDArray[np.bool_]:
        """(E,) whether somebody said what is right."""
        return np.array([each.label is not None for each in self.examples], dtype=bool)

    def targets(self, rows: Rows) -> Targets:
        example = rows.example[:: self.sides]
        asked = np.flatnonzero(self._said[example])
        return Targets(index=torch.from_numpy(asked), label=torch.from_numpy(self._label[example[asked]]))

    def predicted(self, rows: Rows, scores: Floats) -> Predicted:
        many, plain = len(self.examples), np.asarray(scores, dtype=np.float64)
        example = rows.example[:: self.sides]
        if self.examples.task == "regress":
            return Predicted(answers=_over_windows(example, plain, many)[:, 0].tolist())
        if self.examples.task == "multilabel":
            chances = _over_windows(example, _sigmoid(plain), many)
            sets = [frozenset(self.labels[at] for at in np.flatnonzero(line >= SURE)) for line in chances]
            return Predicted(answers=sets, probabilities=chances)
        chances = _over_windows(example, softmax(plain), many)
        return Predicted(answers=[self.labels[at] for at in chances.argmax(axis=1)], probabilities=chances)

    @property
    def gold(self) -> list[Any]:
        if self.examples.task == "multilabel":
            return [_names(each) for each in self.examples]
        return [each.label for each in self.examples]


def _names(example: Example) -> frozenset[str]:
    return example.label if isinstance(example.label, frozenset) else frozenset()


@dataclass(frozen=True)
class OfGroups(Question):
    """Candidates that are compared: the choices of an example, or all examples with the same first text."""

    @property
    def classes(self) -> int:
        return 1

    @cached_property
    def _group(self) -> NDArray[np.int64]:
        """(E,) the question that an example is about, in the order of their first appearance."""
        if self.examples.task == "choice":
            return np.arange(len(self.examples))
        seen: dict[str, int] = {}
        return np.array([seen.setdefault(each.texts[0], len(seen)) for each in self.examples], dtype=np.int64)

    @cached_property
    def _first(self) -> NDArray[np.bool_]:
        """(E,) whether an example is the first of its question."""
        first = np.zeros(len(self.examples), dtype=bool)
        first[np.unique(self._group, return_index=True)[1]] = True
        return first

    @cached_property
    def _label(self) -> NDArray[np.float32]:
        """(E,) the number of the right choice, or the relevance; NaN: nobody said."""
        return np.array(
            [np.nan if each.label is None else float(str(each.label)) for each in self.examples], np.float32
        )

    def units(self, rows: Rows) -> NDArray[np.int64]:
        return self._group[rows.example]

    def targets(self, rows: Rows) -> Targets:
        asked = np.flatnonzero(~np.isnan(self._label[rows.example]))
        # Rows of a question stand together; one that a batch holds twice begins twice.
        group, example = self._group[rows.example], rows.example
        begins = (self._first[example] & (rows.part == 0)) | (np.diff(group, prepend=-1) != 0)
        of_question = np.cumsum(begins)[asked]
        _, first, sizes = np.unique(of_question, return_index=True, return_counts=True)
        label = self._label[example[asked]]
        if self.examples.task == "choice":
            label = label[first].astype(np.int64)
        extra = {SIZES: torch.from_numpy(sizes)}
        return Targets(index=torch.from_numpy(asked), label=torch.from_numpy(label), extra=extra)

    def predicted(self, rows: Rows, scores: Floats) -> Predicted:
        single = np.asarray(scores, dtype=np.float64)[:, 0]
        if self.examples.task == "rank":
            pooled = _over_windows(rows.example, single[:, None], len(self.examples))[:, 0]
            groups: list[Hashable] = self._group.tolist()
            return Predicted(answers=pooled.tolist(), groups=groups)
        widest = max((len(each.choices) for each in self.examples), default=1)
        grid = np.full((len(self.examples), widest), -np.inf)
        grid[rows.example, rows.part] = single
        chances = softmax(grid)
        return Predicted(answers=[str(at) for at in chances.argmax(axis=1)], probabilities=chances)

    @property
    def gold(self) -> list[Any]:
        return [each.label for each in self.examples]


@dataclass(frozen=True)
class OfPieces(Question):
    best: Callable[[Floats, NDArray[np.int64]], tuple[NDArray[np.int64], Floats]] | None = None
    """Scores (n,C) and the sizes of rows -> the best tags (n,) and the probabilities of all (n,C), where neighbours are
    scored together."""
    _aims: dict[tuple[int, int], tuple[NDArray[np.int64], Encoded]] = field(default_factory=dict, compare=False)
    """Of a row: the slots that are asked, and their tags."""

    @property
    def by_slot(self) -> bool:
        return True

    @cached_property
    def tags(self) -> Tags:
        return Tags.of_names(self.labels)

    @property
    def classes(self) -> int:
        return len(self.tags)

    def _pieces(self, rows: Rows, number: int) -> Pieces:
        row, example = rows[number], self.examples[int(rows.example[number])]
        return pieces_of(places_in(row.offsets, row.field, 0), example.texts[0], example.words)

    def _aim(self, rows: Rows, number: int) -> tuple[NDArray[np.int64], Encoded] | None:
        """Made once: offsets are looked at character by character. None: nobody said."""
        spans, key = self.examples[int(rows.example[number])].spans, (int(rows.example[number]), int(rows.part[number]))
        if spans is None:
            return None
        if key not in self._aims:
            pieces = self._pieces(rows, number)
            self._aims[key] = pieces.slot, self.tags.encode(spans, pieces)
        return self._aims[key]

    def prepare(self, rows: Rows) -> tuple[str, ...]:
        found = [aim[1] for number in range(len(rows)) if (aim := self._aim(rows, number)) is not None]
        changed = sum(each.changed for each in found)
        notes = [f"{changed:,} spans begin or end within a token, or are cut: they come back with other borders"]
        lost = 0 if rows.part.any() else sum(each.lost for each in found)
        return (*notes[: bool(changed)], *([f"{lost:,} spans stand in no row: they were cut off"] if lost else []))

    def targets(self, rows: Rows) -> Targets:
        slots, labels, sizes = [], [], []
        for number in range(len(rows)):
            aim = self._aim(rows, number)
            if aim is None:
                continue
            slots.append(rows.start[number] + aim[0])
            labels.append(aim[1].tags)
            sizes.append(len(aim[0]))
        every = np.concatenate([np.zeros(0, dtype=np.int64), *slots])
        return Targets(
            index=flat_slots(rows, every),
            label=torch.from_numpy(np.concatenate([np.zeros(0, dtype=np.int64), *labels])),
            extra={SIZES: torch.tensor(sizes, dtype=torch.long)},
        )

    def predicted(self, rows: Rows, scores: Floats) -> Predicted:
        """Where a token stands in several windows, the one that sees most around it answers."""
        whole, used = joined_windows(rows)
        answers: list[Any] = [()] * len(self.examples)
        chances: list[tuple[float, ...]] = [()] * len(self.examples)
        every = [self._pieces(whole, number) for number in range(len(whole))]
        ends = np.cumsum([0, *map(len, every)])
        asked = [used[whole.start[number] + pieces.slot] for number, pieces in enumerate(every)]
        of_piece = scores[np.concatenate([np.zeros(0, dtype=np.int64), *asked])]
        shares: Floats = softmax(of_piece)
        path = of_piece.argmax(axis=1)
        if self.best is not None:
            path, shares = self.best(of_piece, np.diff(ends))
        changed = 0
        for number, pieces in enumerate(every):
            at, here = int(whole.example[number]), slice(ends[number], ends[number + 1])
            tags, mended = (path[here], 0) if self.best is not None else self.tags.repair(path[here])
            changed += mended
            answers[at], chances[at] = self.tags.decode(tags, pieces), self.tags.certainty(tags, pieces, shares[here])
        notes = (f"{changed:,} tags did not fit their neighbours and were mended",) if changed else ()
        return Predicted(answers=answers, probabilities=chances, notes=notes)

    @property
    def gold(self) -> list[Any]:
        return [each.spans or () for each in self.examples]


@dataclass(frozen=True)
class OfSpans(Question):
    threshold: float | None = None
    """By how much "no answer" has to be better; None: there is always an answer."""
    longest: int = 30
    _windows: dict[tuple[int, int], Window] = field(default_factory=dict, compare=False)
    _aims: dict[tuple[int, int], tuple[int, int, bool]] = field(default_factory=dict, compare=False)
    """Of a row: first and last slot of the answer, and whether it holds one."""

    @property
    def by_slot(self) -> bool:
        return True

    @property
    def classes(self) -> int:
        return 2

    def _window(self, rows: Rows, number: int) -> Window:
        """Made once: offsets are looked at character by character."""
        key = int(rows.example[number]), int(rows.part[number])
        if key not in self._windows:
            row = rows[number]
            context = self.examples[row.example].texts[0]
            self._windows[key] = window_of(places_in(row.offsets, row.field, 0), context)
        return self._windows[key]

    def _aim(self, rows: Rows, number: int) -> tuple[int, int, bool]:
        key = int(rows.example[number]), int(rows.part[number])
        if key not in self._aims:
            example = self.examples[key[0]]
            aims = aims_of(example.texts[0], example.answers or (), [self._window(rows, number)])
            self._aims[key] = int(aims.start[0]), int(aims.end[0]), aims.held > 0
        return self._aims[key]

    def prepare(self, rows: Rows) -> tuple[str, ...]:
        answered = {at for at, each in enumerate(self.examples) if each.answers}
        held = {at for row, at in enumerate(rows.example.tolist()) if at in answered and self._aim(rows, row)[2]}
        lost = len(answered - held)
        return (f"{lost:,} answers stand whole in no window: there the answer is none",) if lost else ()

    def targets(self, rows: Rows) -> Targets:
        asked = [at for at in range(len(rows)) if self.examples[int(rows.example[at])].answers is not None]
        label = np.array([self._aim(rows, number)[:2] for number in asked], dtype=np.int64).reshape(-1, 2)
        slots = np.flatnonzero(np.isin(rows.row, asked))
        return Targets(
            index=flat_slots(rows, slots),
            label=torch.from_numpy(label),
            extra={SIZES: torch.from_numpy(rows.length[asked])},
        )

    def predicted(self, rows: Rows, scores: Floats) -> Predicted:
        every = self.found(rows, scores)
        answers = ["" if each.best is None else each.best.text for each in every]
        return Predicted(answers=answers, probabilities=np.array([each.probability for each in every]))

    def found(self, rows: Rows, scores: Floats) -> list[Found]:
        """Of each example what the scores of its windows say."""
        by_example: list[list[int]] = [[] for _ in self.examples]
        for number, example in enumerate(rows.example.tolist()):
            by_example[example].append(number)
        return [self._found(rows, scores, which, at) for at, which in enumerate(by_example)]

    def _found(self, rows: Rows, scores: Floats, which: Sequence[int], example: int) -> Found:
        windows = [self._window(rows, number) for number in which]
        parts = [scores[rows.start[number] : rows.start[number + 1]] for number in which]
        context = self.examples[example].texts[0]
        starts, ends = [part[:, 0] for part in parts], [part[:, 1] for part in parts]
        return find_answer(context, windows, starts, ends, longest=self.longest, threshold=self.threshold)

    @property
    def gold(self) -> list[Any]:
        return [[answer.text for answer in each.answers or ()] for each in self.examples]


def question_of(examples: Examples, labels: tuple[str, ...], sides: int = 1) -> Question:
    kind: dict[str, type[Question]] = {"choice": OfGroups, "rank": OfGroups, "tag": OfPieces, "qa": OfSpans}
    return kind.get(examples.task, OfRows)(examples, labels, sides=sides)
