"""Search: for every query all documents are put in the order of their cosine, and the places of the relevant ones tell.

`ndcg@10`    grades divided by log2(1 + place), against the best order there could be
`recall@k`   share of the relevant documents among the first k
`mrr@10`     1 / place of the first relevant one, 0 beyond 10
`map@100`    mean over the relevant documents of the precision at their place, 0 beyond 100

The order itself is never made: a place is the number of documents that score as high or higher, counted while documents
are encoded in blocks, so memory does not grow with them. Documents of equal score share the last of their places (for
ndcg the mean over their orders), so that vectors which are all alike find nothing. Where there are no ties the figures
are those of trec_eval.

Shapes: Q queries, P relevant pairs, T distinct texts of documents, D dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskery.errors import InputError
from maskery.tasks.judge.tally import Values, mean
from maskery.vectors.judge.encodes import BLOCK, Encodes, Numbers, Told, blocks_of, encoding, vectors_of
from maskery.vectors.judge.examples import Searches
from maskery.vectors.judge.similarity import units, zeros_note

RECALLS = (1, 5, 10, 100)
FIRST, PRECISE, GAIN = 10, 100, 10
EQUAL = 1e-7
"""Cosines nearer than this are equal: float32 tells no more."""
_AT_ONCE = 1 << 21
"""Scores that are compared at once."""

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Places:
    """Of every relevant pair: how many documents score higher, and how many the same, itself among them."""

    above: Counts
    tied: Counts

    @property
    def last(self) -> Counts:
        return np.asarray(self.above + self.tied)


@dataclass(frozen=True)
class RetrievalTally:
    each: dict[str, Numbers]
    """(Q,) of each metric."""
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return len(next(iter(self.each.values())))

    def values(self, weights: Numbers) -> Values:
        return {name: mean(weights, each) for name, each in self.each.items()}


def retrieval_tally(encoder: Encodes, examples: Searches, told: Told | None = None) -> RetrievalTally:
    if not len(examples.query):
        raise InputError("none of the relevant documents is there", where=examples.place, repair="check the ids")
    queries = vectors_of(encoder, examples.queries, told, "query")
    count = _Count(encoder, examples, units(queries), told)
    places = count.places()
    both = encoding(encoder, "query") != encoding(encoder, "document")
    tied = len(np.unique(examples.query[places.tied > 1]))
    notes = (
        f"{len(examples.documents):,} documents are searched for every query, by cosine",
        *(("queries and documents are encoded each in their own way",) if both else ()),
        *zeros_note(queries, *count.empty),
        *((f"{tied:,} queries have ties: documents of equal cosine share the last of their places",) if tied else ()),
    )
    return RetrievalTally(metrics(examples, places), notes)


class _Count:
    """Counting places while documents pass by; relevant ones are encoded first and kept."""

    def __init__(self, encoder: Encodes, examples: Searches, queries: Numbers, told: Told | None) -> None:
        self.encoder, self.examples, self.queries, self.told = encoder, examples, queries, told
        number: dict[str, int] = {}
        wanted = [examples.documents[at] for at in (*examples.document.tolist(), *examples.own.values())]
        self.text_of = np.array(
            [number.setdefault(text, len(number)) for text in (*wanted, *examples.documents)][len(wanted) :]
        )
        self.texts = list(number)
        self.kept = len(dict.fromkeys(wanted))
        self.many = np.bincount(self.text_of, minlength=len(number)).astype(np.int64)
        self.pair_text = self.text_of[examples.document]
        self.empty: list[NDArray[np.float32]] = []
        """Vectors of documents that are all zeros."""

    def places(self) -> Places:
        query = self.examples.query
        above, tied = np.zeros(len(query), dtype=np.int64), self.many[self.pair_text]
        kept = self._units(vectors_of(self.encoder, self.texts[: self.kept], self.told, "document"))
        self.score = np.einsum("pd,pd->p", self.queries[query], kept[self.pair_text])
        self._leave_out_own(kept, above, tied)
        for begin, block in self._blocks(kept):
            self._compare(begin, block, above, tied)
        return Places(above, tied)

    def _blocks(self, kept: Numbers) -> Iterator[tuple[int, Numbers]]:
        """(Number of the first text, unit vectors) of all texts."""
        for begin in range(0, len(kept), BLOCK):
            yield begin, kept[begin : begin + BLOCK]
        begin = len(kept)
        for part in blocks_of(self.encoder, self.texts[self.kept :], self.told, "document"):
            yield begin, self._units(part)
            begin += len(part)

    def _units(self, part: NDArray[np.float32]) -> Numbers:
        self.empty.append(part[~part.any(axis=1)])
        return units(part)

    def _leave_out_own(self, kept: Numbers, above: Counts, tied: Counts) -> None:
        """A document that is the query itself is taken out of the counts before they are made."""
        for number, document in self.examples.own.items():
            pairs = np.flatnonzero(self.examples.query == number)
            score = float(self.queries[number] @ kept[self.text_of[document]])
            same_text = self.pair_text[pairs] == self.text_of[document]
            above[pairs] -= (score > self.score[pairs] + EQUAL) & ~same_text
            tied[pairs] -= (np.abs(score - self.score[pairs]) <= EQUAL) | same_text

    def _compare(self, begin: int, block: Numbers, above: Counts, tied: Counts) -> None:
        many = self.many[begin : begin + len(block)].astype(np.float64)
        size = max(1, _AT_ONCE // len(block))
        query = self.examples.query
        for first in range(0, len(query), size):
            pairs = slice(first, first + size)
            asked, row = np.unique(query[pairs], return_inverse=True)
            scores = (self.queries[asked] @ block.T)[row] - self.score[pairs][:, None]
            own = self.pair_text[pairs] - begin
            here = np.flatnonzero((own >= 0) & (own < len(block)))
            scores[here, own[here]] = -np.inf  # counted already, whatever rounding makes of it
            above[pairs] += ((scores > EQUAL) @ many).astype(np.int64)
            tied[pairs] += ((np.abs(scores) <= EQUAL) @ many).astype(np.int64)


def metrics(examples: Searches, places: Places) -> dict[str, Numbers]:
    """(Q,) each. A relevant document that is not among the documents has no place, but counts as one to be found."""
    many = len(examples)
    query, last = examples.query, places.last
    lost = np.array([len(examples.lost.get(number, ())) for number in range(many)])
    relevant = np.bincount(query, minlength=many) + lost
    gained = np.bincount(query, examples.grade * _worth(places), minlength=many) / _ideal(examples)
    found = {f"ndcg@{GAIN}": gained}
    found |= {f"recall@{k}": np.bincount(query, last <= k, minlength=many) / relevant for k in RECALLS}
    best = np.full(many, np.inf)
    np.minimum.at(best, query, last)
    found[f"mrr@{FIRST}"] = np.where(best <= FIRST, 1 / best, 0.0)
    precision = np.where(last <= PRECISE, _not_later(query, last) / last, 0.0)
    found[f"map@{PRECISE}"] = np.bincount(query, precision, minlength=many) / relevant
    return found


def _not_later(query: Counts, last: Counts) -> Numbers:
    """(P,) how many relevant documents of the same query stand at the same place or before."""
    order = np.lexsort((last, query))
    key = np.stack([query, last])[:, order]
    ends = np.flatnonzero(np.append((key[:, 1:] != key[:, :-1]).any(axis=0), True))
    upto = ends[np.searchsorted(ends, np.arange(len(order)))] + 1
    found = np.empty(len(order))
    found[order] = upto - np.searchsorted(key[0], key[0], side="left")
    return found


def _worth(places: Places) -> Numbers:
    """(P,) 1 / log2(1 + place), 0 beyond the depth: the mean over the places that equal scores share."""
    sums = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, GAIN + 2)))])
    upto, before = (sums[np.minimum(each, GAIN)] for each in (places.last, places.above))
    return np.asarray((upto - before) / places.tied)


def _ideal(examples: Searches) -> Numbers:
    """(Q,) the gain of the best order."""
    lost = [(number, grade) for number, grades in examples.lost.items() for grade in grades]
    query = np.concatenate([examples.query, np.array([each[0] for each in lost], dtype=np.int64)])
    grade = np.concatenate([examples.grade, np.array([each[1] for each in lost], dtype=np.float64)])
    order = np.lexsort((-grade, query))
    query, grade = query[order], grade[order]
    place = np.arange(len(query)) - np.searchsorted(query, query, side="left")
    worth = np.where(place < GAIN, 1 / np.log2(place + 2), 0.0)
    return np.asarray(np.bincount(query, grade * worth, minlength=len(examples)), dtype=np.float64)
