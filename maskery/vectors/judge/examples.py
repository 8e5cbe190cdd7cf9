"""What vectors are judged on: scored pairs, queries with their documents, labelled texts, or texts alone.

Every set knows its notes (what was found by itself in a file) and its place, so that whatever is wrong can be found.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from maskery.errors import ArgumentError, InputError
from maskery.vectors.judge.encodes import Numbers, require_texts

KINDS = ("sts", "pairs", "retrieval", "clustering", "geometry")


@dataclass(frozen=True, kw_only=True)
class TextPairs:
    """sts: scores on any scale. pairs: 0 or 1."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    score: Numbers
    notes: tuple[str, ...] = ()
    place: str = "examples"

    def __post_init__(self) -> None:
        _require_filled(self.first, "pair of texts", self.place)
        _require_as_many({"first texts": self.first, "second texts": self.second, "scores": self.score}, self.place)
        require_texts([*self.first, *self.second])
        if not np.isfinite(self.score).all():
            at = int(np.flatnonzero(~np.isfinite(self.score))[0])
            raise InputError(f"the score of pair {at} is not a number", where=self.place, repair="leave the pair out")

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True, kw_only=True)
class LabelledTexts:
    texts: tuple[str, ...]
    labels: tuple[Hashable, ...]
    notes: tuple[str, ...] = ()
    place: str = "examples"

    def __post_init__(self) -> None:
        _require_filled(self.texts, "text", self.place)
        _require_as_many({"texts": self.texts, "labels": self.labels}, self.place)
        require_texts(self.texts)

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, kw_only=True)
class PlainTexts:
    """geometry: texts alone."""

    texts: tuple[str, ...]
    notes: tuple[str, ...] = ()
    place: str = "examples"

    def __post_init__(self) -> None:
        _require_filled(self.texts, "text", self.place)
        require_texts(self.texts)

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, kw_only=True)
class Searches:
    """Queries, all documents, and which of them are relevant to which query. Q queries, P relevant pairs."""

    queries: tuple[str, ...]
    documents: tuple[str, ...]
    query: NDArray[np.int64]
    """(P,) ascending."""
    document: NDArray[np.int64]
    """(P,)"""
    grade: Numbers
    """(P,) above 0; more is more relevant."""
    lost: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    """Query -> grades of relevant documents that are not among the documents: they can never be found."""
    own: Mapping[int, int] = field(default_factory=dict)
    """Query -> the document that is the query itself: it is not searched."""
    notes: tuple[str, ...] = ()
    place: str = "examples"

    def __post_init__(self) -> None:
        _require_filled(self.queries, "query with a relevant document", self.place)
        _require_filled(self.documents, "document", self.place)
        require_texts(self.queries)
        require_texts(self.documents)

    def __len__(self) -> int:
        return len(self.queries)


VectorExamples = TextPairs | Searches | LabelledTexts | PlainTexts


def searches(
    queries: Mapping[str, str],
    documents: Mapping[str, str],
    relevance: Mapping[str, Mapping[str, float]],
    *,
    same_ids: bool = True,
    notes: Sequence[str] = (),
    place: str = "examples",
) -> Searches:
    """Of texts by their ids, and the grades of documents for queries: those above 0 are relevant.

    `same_ids`: a document with the id of a query is the query itself, and is not searched unless it is relevant.
    """
    at = {name: number for number, name in enumerate(documents)}
    asked = [name for name in queries if any(grade > 0 for grade in relevance.get(name, {}).values())]
    rows: list[tuple[int, int, float]] = []
    lost: dict[int, tuple[float, ...]] = {}
    own: dict[int, int] = {}
    for number, name in enumerate(asked):
        grades = {other: float(grade) for other, grade in relevance[name].items() if grade > 0}
        rows += [(number, at[other], grade) for other, grade in grades.items() if other in at]
        if missing := tuple(grade for other, grade in grades.items() if other not in at):
            lost[number] = missing
        if same_ids and name in at and name not in grades:
            own[number] = at[name]
    left = len(queries) - len(asked)
    told = [
        f"left out: {left:,} of {len(queries):,} queries, to which no document is relevant" if left else "",
        f"{sum(map(len, lost.values())):,} relevant documents are not among the documents: never found" if lost else "",
        f"{len(own):,} queries are documents themselves, by their id: not searched for themselves" if own else "",
    ]
    return Searches(
        queries=tuple(queries[name] for name in asked),
        documents=tuple(documents.values()),
        query=np.array([row[0] for row in rows], dtype=np.int64),
        document=np.array([row[1] for row in rows], dtype=np.int64),
        grade=np.array([row[2] for row in rows], dtype=np.float64),
        lost=lost,
        own=own,
        notes=(*notes, *filter(None, told)),
        place=place,
    )


def searches_of_pairs(
    rows: Sequence[tuple[str, str, float]], notes: Sequence[str] = (), place: str = "examples"
) -> Searches:
    """Of (query, document, grade): every document that stands anywhere is searched for every query."""
    relevance: dict[str, dict[str, float]] = {}
    for query, document, grade in rows:
        before = relevance.setdefault(query, {}).get(document, grade)
        relevance[query][document] = max(before, grade)
    queries, documents = {row[0]: row[0] for row in rows}, {row[1]: row[1] for row in rows}
    return searches(queries, documents, relevance, same_ids=False, notes=notes, place=place)


def _require_filled(held: Sequence[object], what: str, place: str) -> None:
    if not len(held):
        raise InputError(f"there is no {what}: nothing to judge", where=place, repair="give examples")


def _require_as_many(held: Mapping[str, Sequence[object] | Numbers], place: str) -> None:
    if len({len(each) for each in held.values()}) > 1:
        shown = ", ".join(f"{len(each):,} {name}" for name, each in held.items())
        raise ArgumentError(f"{shown}: they do not go together", where=place, repair="one of each for every example")
