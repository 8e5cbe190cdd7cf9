"""Pair builders: what the second segment of a row is, and which label says so.

A builder is given a chunk of one document, already cut in two by sentences, and answers with both segments, the label
and the sentence at which the walk goes on. All builders read the same chunks.

    NEXT      BERT: B follows A, or is from another document (always, where the chunk is one sentence)
    ORDER     ALBERT: the two halves of the chunk, as they are or exchanged; no other document ever
    THREE     StructBERT: B follows A, comes before A, or is from another document, a third each
    DISTANCE  ERNIE 2.0: B follows A, is from elsewhere in the same document (touching A nowhere), or from another
              document, a third each
    NONE      rows of one segment

Departures: the other document is drawn from all others at once (BERT's code redraws up to ten times and may then label
a stretch of the same document as random). Where a chunk is one sentence, ORDER and THREE cut it at a random token:
ALBERT's code takes another document there and calls it exchanged, which makes the question one about topic.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from random import Random
from typing import Protocol

from maskery.errors import RefusedError
from maskery.rows.plan import Draft, Outline

Made = tuple[int, int, int, int, int, int]
"""Token ranges in the store of A (start, end) and B (start, end); the label; the sentence at which the next chunk
begins, because what B does not use is put back. A plain tuple: one is made for every row of a plan."""


class Make(Protocol):
    """Sentences first .. split of the document (its number within the split) are offered as A, split .. end as B;
    split == end if there is one sentence. A and B aim at `target` tokens together."""

    def __call__(
        self, outline: Outline, document: int, first: int, split: int, end: int, target: int, draw: Random
    ) -> Made: ...


@dataclass(frozen=True)
class Pair:
    labels: tuple[str, ...]
    """What label 0, 1, ... mean; none for rows of one segment."""
    make: Make | None
    other_documents: bool = True
    """Whether second segments come from other documents, of which there must then be some."""


UNPAIRED = -1
"""The label of a chunk too short to make a pair of every kind: it becomes a row of one segment, of which the question
is not asked. Leaving out only the kinds it cannot make would let a model guess from the length of the text."""


def elsewhere(outline: Outline, document: int, tokens: int, draw: Random) -> tuple[int, int]:
    """Sentences of another document, from a random one on, until they hold `tokens` tokens; at least one sentence."""
    other = int(draw.random() * (len(outline.first) - 1))
    other += other >= document
    first, end = outline.first[other], outline.end[other]
    start = first + int(draw.random() * (end - first))
    begin = outline.sentence[start]
    return begin, outline.sentence[bisect_left(outline.sentence, begin + tokens, start + 1, end)]


def _next(outline: Outline, document: int, first: int, split: int, end: int, target: int, draw: Random) -> Made:
    begin, middle = outline.sentence[first], outline.sentence[split]
    if split == end or draw.random() < 0.5:
        start, stop = elsewhere(outline, document, target - (middle - begin), draw)
        return begin, middle, start, stop, 1, split
    return begin, middle, middle, outline.sentence[end], 0, end


def _halves(outline: Outline, first: int, split: int, end: int, draw: Random) -> tuple[int, int, int]:
    """Where A begins, where B does, and where it ends; one sentence is cut at a random token, if it has two."""
    begin, middle, stop = outline.sentence[first], outline.sentence[split], outline.sentence[end]
    if split == end and stop - begin > 1:
        middle = begin + 1 + int(draw.random() * (stop - begin - 1))
    return begin, middle, stop


def _order(outline: Outline, document: int, first: int, split: int, end: int, target: int, draw: Random) -> Made:
    begin, middle, stop = _halves(outline, first, split, end, draw)
    if middle == stop:
        return begin, stop, stop, stop, UNPAIRED, end
    if draw.random() < 0.5:
        return middle, stop, begin, middle, 1, end
    return begin, middle, middle, stop, 0, end


def _three(outline: Outline, document: int, first: int, split: int, end: int, target: int, draw: Random) -> Made:
    label = int(3 * draw.random())
    if label == 2:
        begin, middle = outline.sentence[first], outline.sentence[split]
        start, stop = elsewhere(outline, document, target - (middle - begin), draw)
        return begin, middle, start, stop, label, split
    begin, middle, stop = _halves(outline, first, split, end, draw)
    if middle == stop:
        return begin, stop, stop, stop, UNPAIRED, end
    return (middle, stop, begin, middle, 1, end) if label else (begin, middle, middle, stop, 0, end)


def _distance(outline: Outline, document: int, first: int, split: int, end: int, target: int, draw: Random) -> Made:
    begin, middle, stop = outline.sentence[first], outline.sentence[split], outline.sentence[end]
    before, after = max(0, first - 1 - outline.first[document]), max(0, outline.end[document] - split - 1)
    if split == end or before + after == 0:
        return begin, stop, stop, stop, UNPAIRED, end
    label = int(3 * draw.random())
    if label == 0:
        return begin, middle, middle, stop, 0, end
    if label == 2:
        return begin, middle, *elsewhere(outline, document, target - (middle - begin), draw), 2, split
    place = int(draw.random() * (before + after))
    start = outline.first[document] + place if place < before else split + 1 + place - before
    limit = first - 1 if place < before else outline.end[document]
    other = outline.sentence[start]
    reach = bisect_left(outline.sentence, other + target - (middle - begin), start + 1, limit)
    return begin, middle, other, outline.sentence[reach], 1, split


NEXT = Pair(("next", "other"), _next)
ORDER = Pair(("order", "swapped"), _order, other_documents=False)
THREE = Pair(("next", "previous", "other"), _three)
DISTANCE = Pair(("adjacent", "same_document", "other"), _distance)
NONE = Pair((), None, other_documents=False)


def need_documents(outline: Outline, pair: Pair) -> None:
    if pair.other_documents and len(outline) < 2:
        raise RefusedError(
            f"the {outline.split} part of the corpus is one document, and some second segments have to come "
            "from another one",
            where="rows.pair",
            repair="put a blank line between documents and build the corpus again, or leave pairs out: "
            "--set rows.pair=none and no question about pairs (--set objectives.next_sentence=false)",
        )


def add_pair(made: Made, limit: int, draw: Random, draft: Draft) -> int:
    """Write the pair, cut to `limit` tokens: one by one from the longer segment, in front or behind by a fair coin.

    Returns where the next chunk begins.
    """
    a0, a1, b0, b1, label, resume = made
    if label == UNPAIRED:
        draft.count("rows_without_pair")
        draft.counts["cut_rows"] += a1 - a0 > limit + 1
        draft.stretch(*cut(a0, a1, limit + 1, draw, draft))
        draft.close()
        return resume
    if a1 - a0 + b1 - b0 > limit:
        keep_a, keep_b = kept(a1 - a0, b1 - b0, limit)
        a0, a1 = cut(a0, a1, keep_a, draw, draft)
        b0, b1 = cut(b0, b1, keep_b, draw, draft)
        draft.counts["cut_rows"] += 1
    draft.pair(a0, a1, b0, b1, label)
    return resume


def kept(a: int, b: int, limit: int) -> tuple[int, int]:
    """Lengths left when tokens leave the longer of two segments (b if equal) one at a time until `limit` are left."""
    if a + b <= limit:
        return a, b
    if 2 * min(a, b) > limit:
        return limit - limit // 2, limit // 2
    return (limit - b, b) if a > b else (a, limit - a)


def cut(start: int, end: int, keep: int, draw: Random, draft: Draft) -> tuple[int, int]:
    """The range without its surplus; as many tokens fall in front as fair coins show heads."""
    surplus = end - start - keep
    if surplus <= 0:
        return start, end
    draft.counts["cut_tokens"] += surplus
    front = draw.getrandbits(surplus).bit_count()
    return start + front, end - (surplus - front)
