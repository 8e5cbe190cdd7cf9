"""Units of a development set that stand in the training data as well.

Units of two texts are compared as pairs, whichever text comes first; of triplets the first two texts count. Where
training data is single lines, the texts of the development set are looked for among them.
"""

from __future__ import annotations

from collections.abc import Hashable

from maskery.tasks.copies import Labelled, copies_of, sentence, within, within_sentence
from maskery.text.near import normal
from maskery.vectors.learn.data import TextSet


def copies_in(train: TextSet, dev: TextSet | None) -> list[str]:
    """What is to be said of copies of training data in dev, and within the training data."""
    found = [within_sentence(within(_rows(train, 2)))]
    if dev is not None:
        single = train.units.shape[1] == 1
        rows, known = (_rows(each, 1 if single else 2) for each in (dev, train))
        told = sentence("dev", copies_of(rows, known), "remove them from dev")
        found.append(told.replace(" rows ", " distinct texts ", 1) if single else told)
    return [note for note in found if note]


def _rows(texts: TextSet, most: int) -> Labelled:
    """Units of up to `most` texts; of single texts every distinct one, without a label."""
    plain = [normal(text) for text in texts.texts]
    if min(most, texts.units.shape[1]) == 1:
        distinct = list(dict.fromkeys(plain))
        return Labelled(rows=[(text,) for text in distinct], labels=[None] * len(distinct))
    rows = [tuple(sorted((plain[one], plain[other]))) for one, other in texts.units[:, :2].tolist()]
    return Labelled(rows=rows, labels=_labels(texts))


def _labels(texts: TextSet) -> list[Hashable | None]:
    if texts.kind == "scored":
        return list(texts.label.tolist())
    if texts.kind == "labelled":
        return [texts.labels[int(number)] for number in texts.label]
    return [None] * len(texts)
