"""What a task asks of its rows: the targets of a batch before the network reads it, the answers from its scores after.

    OfRows      classify, pair, regress, multilabel: one vector a row; windows of a text answer together
    OfGroups    choice, rank: candidates of a question are compared, so they are read together
    OfPieces    tag: one tag a piece of text
    OfSpans     qa: where the answer begins and ends

Scores come as rows were framed: (R,C) of all rows, or (N,C) of all their slots. Nothing here knows of networks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maskery.batches import Targets
from maskery.tasks.batches import flat_slots
from maskery.tasks.examples import Example, Examples
from maskery.tasks.framing.rows import Rows
from maskery.tasks.spans import Window, aims_of, find_answer, window_of
from maskery.tasks.tags import Pieces, Tags, pieces_of, places_in

Floats = NDArray[np.float32] | NDArray[np.float64]
SIZES = "sizes"
"""Key in `Targets.extra`: how many candidates, pieces or slots each question has."""


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """What is said of each example."""

    answers: list[Any]
    """Names of classes, scores, sets of names, spans, texts, numbers of choices: as `judge` takes them."""
    probabilities: Floats | None = None
    """(E,C), where classes have them."""
    groups: list[Hashable] | None = None
    """rank: the question of each example."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question(ABC):
    examples: Examples
    labels: tuple[str, ...]

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
        return np.arange(len(rows))

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


def _over_windows(rows: Rows, values: NDArray[np.float64], examples: int) -> NDArray[np.float64]:
    """(R,C) -> (E,C) the mean over the windows of an example."""
    many = np.bincount(rows.example, minlength=examples)
    summed = np.zeros((examples, values.shape[1]))
    np.add.at(summed, rows.example, values)
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

    def targets(self, rows: Rows) -> Targets:
        said = np.array([self.examples[int(number)].label is not None for number in rows.example], dtype=bool)
        asked = np.flatnonzero(said)
        return Targets(index=torch.from_numpy(asked), label=torch.from_numpy(self._label[rows.example[asked]]))

    def predicted(self, rows: Rows, scores: Floats) -> Predicted:
        many, plain = len(self.examples), np.asarray(scores, dtype=np.float64)
        if self.examples.task == "regress":
            return Predicted(answers=_over_windows(rows, plain, many)[:, 0].tolist())
        if self.examples.task == "multilabel":
            chances = _over_windows(rows, _sigmoid(plain), many)
            sets = [frozenset(self.labels[at] for at in np.flatnonzero(line >= 0.5)) for line in chances]
            return Predicted(answers=sets, probabilities=chances)
        chances = _over_windows(rows, softmax(plain), many)
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

    def units(self, rows: Rows) -> NDArray[np.int64]:
        return self._group[rows.example]

    def targets(self, rows: Rows) -> Targets:
        unit, first, sizes = np.unique(self.units(rows), return_index=True, return_counts=True)
        order = np.argsort(first)
        extra = {SIZES: torch.from_numpy(sizes[order])}
        if self.examples.task == "choice":
            right = [self.examples[int(each)].label for each in unit[order]]
            label = np.array([int(str(each)) for each in right], dtype=np.int64)
        else:
            label = np.array([float(self.examples[int(at)].label or 0.0) for at in rows.example], dtype=np.float32)  # type: ignore[arg-type]
        return Targets(index=torch.arange(len(rows)), label=torch.from_numpy(label), extra=extra)

    def predicted(self, rows: Rows, scores: Floats) -> Predicted:
        single = np.asarray(scores, dtype=np.float64)[:, 0]
        if self.examples.task == "rank":
            pooled = _over_windows(rows, single[:, None], len(self.examples))[:, 0]
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
    best: Callable[[Floats, NDArray[np.int64]], NDArray[np.int64]] | None = None
    """Scores (n,C) and the sizes of rows -> the best tags, where neighbours are scored together."""

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

    def targets(self, rows: Rows) -> Targets:
        slots, labels, sizes = [], [], []
        for number in range(len(rows)):
            example = self.examples[int(rows.example[number])]
            if example.spans is None:
                continue
            pieces = self._pieces(rows, number)
            slots.append(rows.start[number] + pieces.slot)
            labels.append(self.tags.encode(example.spans, pieces).tags)
            sizes.append(len(pieces))
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
        changed = 0
        for number in range(len(whole)):
            pieces = self._pieces(whole, number)
            of_piece = scores[used[whole.start[number] + pieces.slot]]
            if self.best is not None:
                path = self.best(of_piece, np.array([len(pieces)]))
            else:
                path, mended = self.tags.repair(of_piece.argmax(axis=1))
                changed += mended
            answers[int(whole.example[number])] = self.tags.decode(path, pieces)
        notes = (f"{changed:,} tags did not fit their neighbours and were mended",) if changed else ()
        return Predicted(answers=answers, notes=notes)

    @property
    def gold(self) -> list[Any]:
        return [each.spans or () for each in self.examples]


def joined_windows(rows: Rows) -> tuple[Rows, NDArray[np.int64]]:
    """One row for each example, of the slots of its text that answer for their tokens; and the slots they come from."""
    chosen = np.flatnonzero(rows.best_seen & (rows.field == 0))
    order = np.lexsort((rows.token[chosen], rows.example[rows.row[chosen]]))
    slots = chosen[order]
    example, sizes = np.unique(rows.example[rows.row[slots]], return_counts=True)
    made = replace(
        rows,
        start=np.concatenate(([0], np.cumsum(sizes))),
        example=example,
        part=np.zeros_like(example),
        **{name: getattr(rows, name)[slots] for name in ("ids", "segments", "field", "token", "offsets")},
    )
    return made, slots


@dataclass(frozen=True)
class OfSpans(Question):
    threshold: float | None = None
    """By how much "no answer" has to be better; None: there is always an answer."""
    longest: int = 30
    _windows: dict[tuple[int, int], Window] = field(default_factory=dict, compare=False)

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

    def targets(self, rows: Rows) -> Targets:
        asked = [at for at in range(len(rows)) if self.examples[int(rows.example[at])].answers is not None]
        label = np.zeros((len(asked), 2), dtype=np.int64)
        for place, number in enumerate(asked):
            example = self.examples[int(rows.example[number])]
            aims = aims_of(example.texts[0], example.answers or (), [self._window(rows, number)])
            label[place] = aims.start[0], aims.end[0]
        slots = np.flatnonzero(np.isin(rows.row, asked))
        return Targets(
            index=flat_slots(rows, slots),
            label=torch.from_numpy(label),
            extra={SIZES: torch.from_numpy(rows.length[asked])},
        )

    def predicted(self, rows: Rows, scores: Floats) -> Predicted:
        by_example: list[list[int]] = [[] for _ in self.examples]
        for number, example in enumerate(rows.example.tolist()):
            by_example[example].append(number)
        found = [self._found(rows, scores, which, at) for at, which in enumerate(by_example)]
        return Predicted(answers=["" if each is None else each for each in found])

    def _found(self, rows: Rows, scores: Floats, which: Sequence[int], example: int) -> str | None:
        windows = [self._window(rows, number) for number in which]
        parts = [scores[rows.start[number] : rows.start[number + 1]] for number in which]
        context = self.examples[example].texts[0]
        starts, ends = [part[:, 0] for part in parts], [part[:, 1] for part in parts]
        best = find_answer(context, windows, starts, ends, longest=self.longest, threshold=self.threshold).best
        return None if best is None else best.text

    @property
    def gold(self) -> list[Any]:
        return [[answer.text for answer in each.answers or ()] for each in self.examples]


def question_of(examples: Examples, labels: tuple[str, ...]) -> Question:
    kind: dict[str, type[Question]] = {"choice": OfGroups, "rank": OfGroups, "tag": OfPieces, "qa": OfSpans}
    return kind.get(examples.task, OfRows)(examples, labels)
