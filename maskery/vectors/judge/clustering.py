"""Texts put into groups by their vectors alone, against their labels: V-measure (Rosenberg and Hirschberg 2007).

As many clusters as there are labels, by mini-batch k-means, `RUNS` times from other beginnings; a figure is the mean
over them. `homogeneity`: a cluster has texts of one label only; `completeness`: a label's texts are in one cluster
only; `v_measure` is their harmonic mean. The interval is over texts, with the clusters as they are.

Shapes: N texts, B sets, C labels, K clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maskery.errors import InputError
from maskery.tasks.judge.tally import Values, grouped, ratio
from maskery.vectors.judge.encodes import Encodes, Numbers, Told, vectors_of
from maskery.vectors.judge.examples import LabelledTexts
from maskery.vectors.judge.kmeans import clusters

RUNS = 5
NAMES = ("v_measure", "homogeneity", "completeness")


@dataclass(frozen=True)
class ClusterTally:
    labels: NDArray[np.int64]
    """(N,) numbers of labels."""
    runs: tuple[NDArray[np.int64], ...]
    """(N,) numbers of clusters, of each run."""
    many: int

    @property
    def size(self) -> int:
        return len(self.labels)

    def values(self, weights: Numbers) -> Values:
        each = np.stack([v_measures(self.labels, run, self.many, weights) for run in self.runs])
        return dict(zip(NAMES, each.mean(axis=0), strict=True))

    @cached_property
    def notes(self) -> tuple[str, ...]:
        ones = np.ones((1, self.size))
        each = [float(v_measures(self.labels, run, self.many, ones)[0, 0]) for run in self.runs]
        told = [f"{self.many:,} labels; k-means {len(self.runs)} times: v_measure {min(each):.4f} to {max(each):.4f}"]
        fewest = min(len(np.unique(run)) for run in self.runs)
        if fewest < self.many:
            told.append(f"k-means found {fewest:,} clusters instead of {self.many:,}: too many vectors are alike")
        return tuple(told)


def v_measures(labels: NDArray[np.int64], found: NDArray[np.int64], many: int, weights: Numbers) -> Numbers:
    """(3,B) V-measure, homogeneity and completeness of weighted texts."""
    cells, place = np.unique(labels * many + found, return_inverse=True)
    both = grouped(weights, place.astype(np.int64), len(cells))
    sides = [grouped(both, side, many) for side in (cells // many, cells % many)]
    joint = _entropy(both)
    of_labels, of_clusters = (_entropy(side) for side in sides)
    # What remains unsure about one when the other is known: the entropy of both less that of the other.
    homogeneity = np.clip(1 - ratio(joint - of_clusters, of_labels), 0.0, 1.0)
    completeness = np.clip(1 - ratio(joint - of_labels, of_clusters), 0.0, 1.0)
    return np.stack([ratio(2 * homogeneity * completeness, homogeneity + completeness), homogeneity, completeness])


def _entropy(counts: Numbers) -> Numbers:
    """(B,cells) -> (B,)"""
    shares = counts / counts.sum(axis=1, keepdims=True)
    return -np.asarray((shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1))


def cluster_tally(encoder: Encodes, examples: LabelledTexts, told: Told | None = None) -> ClusterTally:
    names = {label: number for number, label in enumerate(dict.fromkeys(examples.labels))}
    if len(names) < 2:
        cause = f"all {len(examples):,} texts have the label {examples.labels[0]!r}: there is nothing to part"
        raise InputError(cause, where=examples.place, repair="give texts of several labels")
    if len(names) == len(examples):
        cause = f"every one of the {len(examples):,} texts has a label of its own: there are no groups"
        raise InputError(cause, where=examples.place, repair="--label COLUMN of labels that return")
    vectors = vectors_of(encoder, examples.texts, told)
    labels = np.array([names[label] for label in examples.labels], dtype=np.int64)
    runs = tuple(clusters(vectors, len(names), seed) for seed in range(RUNS))
    return ClusterTally(labels, runs, len(names))
