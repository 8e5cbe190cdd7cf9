"""Which classes are taken for which: a table of counts, lines by the right class, columns by the predicted one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskery.tasks.judge.classes import class_tally


@dataclass(frozen=True)
class Confusion:
    labels: tuple[str, ...]
    counts: NDArray[np.int64]
    """(C,C) [right, predicted]"""

    def largest(self, most: int = 10) -> list[tuple[str, str, int]]:
        """Right and predicted class and how often, the commonest confusions first."""
        wrong = self.counts - np.diag(np.diag(self.counts))
        order = np.argsort(-wrong, axis=None, kind="stable")[:most]
        lines, columns = np.unravel_index(order, wrong.shape)
        pairs = zip(lines.tolist(), columns.tolist(), strict=True)
        return [(self.labels[i], self.labels[j], int(wrong[i, j])) for i, j in pairs if wrong[i, j]]

    def gathered(self, most: int, rest: str) -> Confusion:
        """The commonest classes, and all others as one."""
        if len(self.labels) <= most:
            return self
        order = np.argsort(-(self.counts.sum(0) + self.counts.sum(1)), kind="stable")
        kept = np.sort(order[: most - 1])
        place = np.full(len(self.labels), most - 1)
        place[kept] = np.arange(most - 1)
        counts = np.zeros((most, most), dtype=np.int64)
        np.add.at(counts, (place[:, None], place[None, :]), self.counts)
        return Confusion((*(self.labels[each] for each in kept), rest), counts)

    def by_class(self) -> list[tuple[str, int, float, float, float]]:
        """Each class: how often it occurs, precision, recall, F1."""
        hits, gold, predicted = np.diag(self.counts), self.counts.sum(1), self.counts.sum(0)
        return [
            (label, int(g), _share(h, p), _share(h, g), _share(2 * h, g + p))
            for label, h, g, p in zip(self.labels, hits.tolist(), gold.tolist(), predicted.tolist(), strict=True)
        ]

    def plain(self) -> dict[str, Any]:
        return {"labels": list(self.labels), "counts": self.counts.tolist()}


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def confusion(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str] = ()) -> Confusion:
    tally = class_tally(gold, predicted, labels)
    many = len(tally.labels)
    counts = np.bincount(tally.gold * many + tally.predicted, minlength=many * many).reshape(many, many)
    return Confusion(tally.labels, counts.astype(np.int64))
