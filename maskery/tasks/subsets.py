"""Parts of the training data for a learning curve: each holds the smaller ones, and the classes as all examples do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from maskery import randomness
from maskery.tasks.examples import Example, Examples
from maskery.tasks.judge.repeats import sizes_of

LEAST = 16
"""Examples of the smallest part: of fewer nothing can be learned."""
_BANDS = 10
"""Of scores, so that every part has high ones and low ones."""


def parts_of(train: Examples, seed: int) -> list[Examples]:
    """Ascending, the last one is all. Candidates of one question (rank) stay together."""
    order = nested_order(train, seed)
    whole = _questions(train)[order] if train.task == "rank" else None
    found: dict[int, Examples] = {}
    for size in sizes_of(len(train), least=LEAST):
        if whole is not None:
            size += int(np.argmax(np.append(whole[size:] != whole[size - 1], True)))
        chosen = np.sort(order[:size])
        found[size] = replace(train, items=tuple(train.items[at] for at in chosen.tolist()), notes=())
    return list(found.values())


def nested_order(train: Examples, seed: int) -> NDArray[np.int64]:
    """The numbers of the examples such that every beginning is a fair part: the k-th of n examples of a class stands
    where k/n of all are, so the first of each class come first."""
    unit = _questions(train) if train.task == "rank" else np.arange(len(train))
    draw = randomness.uniform(randomness.keys(seed, "learning curve", unit), "order")
    _, stratum = np.unique(_strata(train), return_inverse=True)
    by_draw = np.lexsort((draw, stratum))
    sizes = np.bincount(stratum)
    rank = np.empty(len(train), dtype=np.int64)
    rank[by_draw] = np.arange(len(train)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    found: NDArray[np.int64] = np.lexsort((draw, rank / sizes[stratum]))
    return found if train.task != "rank" else np.lexsort((np.arange(len(train)), draw))


def _questions(train: Examples) -> NDArray[np.int64]:
    """(N,) the number of each candidate's question."""
    known: dict[str, int] = {}
    return np.array([known.setdefault(each.texts[0], len(known)) for each in train], dtype=np.int64)


def _strata(train: Examples) -> NDArray[np.str_]:
    if train.task == "regress":
        scores = np.array([float(each.label) for each in train if isinstance(each.label, int | float)])
        edges = np.quantile(scores, np.arange(1, _BANDS) / _BANDS)
        return np.searchsorted(edges, scores).astype(np.str_)
    return np.array([_stratum(train.task, each) for each in train])


def _stratum(task: str, example: Example) -> str:
    if task == "tag":
        return ",".join(sorted({span.kind for span in example.spans or ()}))
    if task == "qa":
        return "answer" if example.answers else "none"
    if isinstance(example.label, frozenset):
        return ",".join(sorted(example.label))
    return "" if task in ("choice", "seq2seq", "rank") else str(example.label)
