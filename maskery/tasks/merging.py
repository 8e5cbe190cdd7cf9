"""Classes of a model that are taken for one: a model of three labels on a set of two, as an NLI model on HANS.

The probabilities of merged classes are added, and the most probable class of the new ones is the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from maskery.errors import InputError, UnknownName
from maskery.tasks.examples import Examples
from maskery.tasks.questions import SURE, Predicted
from maskery.tasks.read.mapping import require_names
from maskery.tasks.settings import TaskConfig
from maskery.tasks.tags import Tags


def known_labels(config: TaskConfig) -> tuple[str, ...]:
    """The names that a label map may have as sources: classes, or kinds of spans."""
    return Tags.of_names(config.labels).kinds if config.task == "tag" else config.labels


@dataclass(frozen=True)
class Merging:
    """What a map makes of the answers of a model; a source that is no label of the model changes nothing."""

    task: str
    before: tuple[str, ...]
    to: Mapping[str, str]

    @classmethod
    def of(cls, config: TaskConfig, given: Mapping[str, str]) -> Merging:
        require_names(config.task, given)
        known = known_labels(config)
        found = cls(config.task, known, {source: target for source, target in given.items() if source in known})
        if found.to and config.task in ("classify", "pair") and len(found.labels) < 2:
            only = found.labels[0]
            raise InputError(
                f"--map makes every class {only!r}: nothing is left to tell apart", repair="map fewer labels"
            )
        return found

    @classmethod
    def of_predictions(cls, config: TaskConfig, given: Mapping[str, str]) -> Merging:
        """Where no labels are read, a source that is no label of the model would do nothing."""
        for source in given:
            if source not in known_labels(config):
                raise UnknownName("label of the model", source, known_labels(config))
        return cls.of(config, given)

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes after the map, in the order in which the model has them."""
        return tuple(dict.fromkeys(self.to.get(name, name) for name in self.before))

    @property
    def _place(self) -> NDArray[np.int64]:
        """(C,) the number of the class that each class of the model becomes."""
        after = self.labels
        return np.array([after.index(self.to.get(name, name)) for name in self.before], dtype=np.int64)

    def applied(self, found: Predicted) -> Predicted:
        if not self.to:
            return found
        if self.task == "tag":
            return self._spans(found)
        assert found.probabilities is not None
        place, chances = self._place, np.asarray(found.probabilities, dtype=np.float64)
        made = np.zeros((len(chances), len(self.labels)))
        for at, new in enumerate(place.tolist()):  # labels of one text are no alternatives: the surest stands for all
            either = np.maximum if self.task == "multilabel" else np.add
            made[:, new] = either(made[:, new], chances[:, at])
        if self.task == "multilabel":
            sets = [frozenset(self.labels[at] for at in np.flatnonzero(line >= SURE)) for line in made]
            return replace(found, answers=sets, probabilities=made, notes=(*found.notes, *self._notes()))
        best = made.argmax(axis=1)
        moved = int((best != place[chances.argmax(axis=1)]).sum())
        notes = (*found.notes, *self._notes(), *_moved(moved, len(best)))
        return replace(found, answers=[self.labels[at] for at in best], probabilities=made, notes=notes)

    def _spans(self, found: Predicted) -> Predicted:
        answers = [
            tuple(replace(span, kind=self.to.get(span.kind, span.kind)) for span in each) for each in found.answers
        ]
        return replace(found, answers=answers, notes=(*found.notes, *self._notes()))

    def _notes(self) -> list[str]:
        told = ", ".join(f"{source} -> {target}" for source, target in self.to.items())
        return [f"classes of the model are merged: {told}; it now answers {', '.join(self.labels)}"]


def _moved(moved: int, every: int) -> list[str]:
    """Adding probabilities and naming the most probable class of the model may differ: how often is reported."""
    if not moved:
        return []
    return [
        f"{moved:,} of {every:,} answers differ from the new name of the model's most probable class: probabilities of "
        "merged classes are added"
    ]


def without_labels(examples: Examples) -> Examples:
    """The examples as a model is given them: labels of its merged classes would be unknown to it."""
    return replace(examples, items=tuple(replace(each, label=None, spans=None) for each in examples))
