"""What an encoder is judged by in the course of training, by the kind of the development set.

scored       spearman of the cosine; of scores that are 0 or 1, average_precision
labelled     accuracy of the classes that the loss tells (softmax)
triplets     accuracy: the share in which the positive is nearer than every negative, by the cosine
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from maskery.errors import InputError
from maskery.vectors.encoder import Encoder
from maskery.vectors.judge.examples import TextPairs
from maskery.vectors.judge.pairs import pair_tally
from maskery.vectors.judge.sts import MAIN, similarity_tally
from maskery.vectors.learn.data import TextSet, fitted
from maskery.vectors.learn.losses import Softmax
from maskery.vectors.learn.read import texts_given
from maskery.vectors.learn.settings import LearnConfig
from maskery.vectors.learn.system import VectorSystem


def _quiet(text: str) -> None:
    """Of texts that were cut the development set is told once, not at every evaluation."""


@dataclass(frozen=True)
class DevSet:
    texts: TextSet

    @property
    def headline(self) -> str:
        if self.texts.kind != "scored":
            return "accuracy"
        return "average_precision" if self._same else "spearman"

    @cached_property
    def _same(self) -> bool:
        return set(np.unique(self.texts.label)) <= {0.0, 1.0}

    @cached_property
    def _pairs(self) -> TextPairs:
        first, second = (tuple(self.texts.column(at)) for at in (0, 1))
        return TextPairs(first=first, second=second, score=self.texts.label, place=self.texts.place)

    def judge(self, system: VectorSystem) -> dict[str, float]:
        """Figures by name, the headline first."""
        encoder = Encoder(system.made, device=system.made.device, say=_quiet)
        if self.texts.kind == "labelled":
            return {"accuracy": self._of_classes(system, encoder)}
        if self.texts.kind == "triplets":
            return {"accuracy": self._of_triplets(encoder)}
        tally = (pair_tally if self._same else similarity_tally)(encoder, self._pairs, names=(MAIN,))
        found = {name: float(value[0]) for name, value in tally.values(np.ones((1, tally.size))).items()}
        return {self.headline: found.pop(self.headline), **found}

    def _vectors(self, encoder: Encoder) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        """(U,k,D)"""
        used, place = np.unique(self.texts.units, return_inverse=True)
        vectors = encoder.encode([self.texts.texts[number] for number in used])
        found: np.ndarray[tuple[int, ...], np.dtype[np.float32]] = vectors[place.reshape(self.texts.units.shape)]
        return found

    @torch.inference_mode()
    def _of_classes(self, system: VectorSystem, encoder: Encoder) -> float:
        assert isinstance(system.loss, Softmax)
        vectors = torch.from_numpy(self._vectors(encoder)).to(system.made.device)
        if system.projection is not None:
            vectors = system.projection(vectors)
        told = system.loss.scores(vectors).argmax(1).cpu().numpy()
        return float((told == self.texts.label).mean())

    def _of_triplets(self, encoder: Encoder) -> float:
        vectors = self._vectors(encoder).astype(np.float64)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
        cosine = np.einsum("ud,ukd->uk", vectors[:, 0], vectors[:, 1:])
        return float((cosine[:, 0] > cosine[:, 1:].max(1)).mean())


def dev_set(dev: object, config: LearnConfig) -> DevSet:
    """Read and fitted: classes as the training data numbers them."""
    found = texts_given("dev", dev, "dev", config.columns)
    if config.loss == "softmax" and _has_classes(found, config.labels):
        found = _with_classes(fitted(found, "softmax", labels=config.labels), config)
    elif found.kind == "labelled":
        found = fitted(found, "triplet")
    if found.kind not in ("scored", "triplets", "labelled"):
        raise InputError(
            f"{found.kind} tell nothing about an encoder",
            where=found.place,
            repair="a development set has scored pairs (text, text, score), or triplets",
        )
    return DevSet(found)


def _has_classes(found: TextSet, labels: tuple[str, ...]) -> bool:
    """Whether it is asked for classes, and not for points on a scale."""
    numbers = {f"{value:g}" for value in np.unique(found.label)}
    return found.kind == "labelled" or (found.kind == "scored" and numbers <= set(labels))


def _with_classes(found: TextSet, config: LearnConfig) -> TextSet:
    """Numbered as in training."""
    unknown = sorted(set(found.labels) - set(config.labels))
    if unknown:
        raise InputError(
            f"the class {unknown[0]!r} is none of {', '.join(config.labels)}",
            where=found.place,
            repair="a development set with the classes of the training data",
        )
    number = np.array([config.labels.index(name) for name in found.labels], dtype=np.float64)
    label = number[found.label.astype(np.int64)]
    return TextSet(
        kind="labelled", texts=found.texts, units=found.units, label=label, labels=config.labels, notes=found.notes,
        place=found.place,
    )  # fmt: skip
