"""Pair builders: what the second segment of a row is, and which label says so.

A builder is given a chunk of one document, already cut in two by sentences, and answers with both segments, the label
and the sentence at which the walk goes on. All builders read the same chunks.

    NEXT      BERT: B follows A, or is from another document (always, where the chunk is one sentence)
    ORDER     ALBERT: the two halves of the chunk, as they are or exchanged; no other document ever
    THREE     StructBERT: B follows A, comes before A, or is from another document, a third each
    DISTANCE  ERNIE 2.0: B touches A, is from elsewhere in the same document, or from another document, a third each
    NONE      rows of one segment

Departures: the other document is drawn from all others at once (BERT's code redraws up to ten times and may then label
a stretch of the same document as random). Where a chunk is one sentence, ORDER cuts it at a random token: ALBERT's code
takes another document there and calls it exchanged, which makes the question one about topic. THREE and DISTANCE ask
nothing there.

A label must not be told by anything but reading. So NEXT alone, which is BERT's, knows chunks for which one label is
certain; the others draw the label evenly, and what is cut away, and where, does not depend on it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from maskery.errors import RefusedError
from maskery.objectives.config import PAIR_OF
from maskery.rows.config import PAIRS, RowsConfig
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
    even: bool = True
    """Whether every label is as likely as another, wherever all are possible."""
    outward: bool = False
    """Whether a row too long loses the beginning of A and the end of B only, so that what touched still does."""


UNPAIRED = -1
"""The label of a chunk too short to make a pair of every kind: it becomes a row of one segment, of which the question
is not asked. Leaving out only the kinds it cannot make would let a model guess from the length of the text."""


def elsewhere(outline: Outline, document: int, tokens: int, draw: Random) -> tuple[int, int]:
    """Sentences of another document, from a random one on, until they hold `tokens` tokens; at least one sentence."""
    other = int(draw.random() * (len(outline.first) - 1))
    other += other >= document
    first, end = outline.first[other], outline.end[other]
    return _from(outline, first + int(draw.random() * (end - first)), end, tokens)


def _from(outline: Outline, start: int, end: int, tokens: int) -> tuple[int, int]:
    """Sentences from `start` on, until they hold `tokens` tokens or `end` is reached; at least one."""
    begin = outline.sentence[start]
    return begin, outline.sentence[bisect_left(outline.sentence, begin + tokens, start + 1, end)]


def _next(outline: Outline, document: int, first: int, split: int, end: int, target: int, draw: Random) -> Made:
    begin, middle = outline.sentence[first], outline.sentence[split]
    if split == end or draw.random() < 0.5:
        start, stop = elsewhere(outline, document, target - (middle - begin), draw)
        return begin, middle, start, stop, 1, split
    return begin, middle, middle, outline.sentence[end], 0, end


def _order(outline: Outline, document: int, first: int, split: int, end: int, target: int, draw: Random) -> Made:
    begin, middle, stop = outline.sentence[first], outline.sentence[split], outline.sentence[end]
    if split == end:
        if stop - begin < 2:
            return begin, stop, stop, stop, UNPAIRED, end
        middle = begin + 1 + int(draw.random() * (stop - begin - 1))
    if draw.random() < 0.5:
        return middle, stop, begin, middle, 1, end
    return begin, middle, middle, stop, 0, end


def _three(outline: Outline, document: int, first: int, split: int, end: int, target: int, draw: Random) -> Made:
    begin, middle, stop = outline.sentence[first], outline.sentence[split], outline.sentence[end]
    if split == end:
        return begin, stop, stop, stop, UNPAIRED, end
    label = int(3 * draw.random())
    if label == 0:
        return begin, middle, middle, stop, 0, end
    if label == 1:
        return middle, stop, begin, middle, 1, end
    other = elsewhere(outline, document, _second(begin, middle, stop, target), draw)
    # The first half of a chunk is A in one of the other kinds and B in the second, so it is either here.
    if draw.random() < 0.5:
        return *other, begin, middle, 2, split
    return begin, middle, *other, 2, split


def _distance(outline: Outline, document: int, first: int, split: int, end: int, target: int, draw: Random) -> Made:
    begin, middle, stop = outline.sentence[first], outline.sentence[split], outline.sentence[end]
    before, after = max(0, first - 1 - outline.first[document]), max(0, outline.end[document] - split - 1)
    if split == end or before + after == 0:
        return begin, stop, stop, stop, UNPAIRED, end
    label = int(3 * draw.random())
    if label == 0:
        return begin, middle, middle, stop, 0, end
    tokens = _second(begin, middle, stop, target)
    if label == 2:
        return begin, middle, *elsewhere(outline, document, tokens, draw), 2, split
    place = int(draw.random() * (before + after))
    start = outline.first[document] + place if place < before else split + 1 + place - before
    last = first - 1 if place < before else outline.end[document]
    return begin, middle, *_from(outline, start, last, tokens), 1, split


def _second(begin: int, middle: int, stop: int, target: int) -> int:
    """The tokens that B would hold if it followed A: fewer than the target leaves room for, where the document ends."""
    return min(target - (middle - begin), stop - middle)


NEXT = Pair(("next", "other"), _next)
ORDER = Pair(("order", "swapped"), _order, other_documents=False)
THREE = Pair(("next", "previous", "other"), _three)
DISTANCE = Pair(("adjacent", "same_document", "other"), _distance, outward=True)
NONE = Pair((), None, other_documents=False)


def need_documents(outline: Outline, config: RowsConfig) -> None:
    if len(outline) > 1 or not PAIRS.get(config.pair).other_documents:
        return
    question = next(name for name, pair in PAIR_OF.items() if pair == config.pair)
    more = "put a blank line between documents and build the corpus again"
    if outline.split != "train":
        more = "build the corpus again with more documents set aside (corpus build --heldout)"
    raise RefusedError(
        f"the {outline.split} part of the corpus is one document, and {question} takes some second segments from "
        "another one",
        where=f'rows.pair = "{config.pair}"',
        repair=f"{more}; or ask about the order within one document: --set rows.pair=order "
        f"--set objectives.sentence_order.weight=1 --set objectives.{question}=false; "
        f"or nothing about pairs: --set rows.pair=none --set objectives.{question}=false",
    )


def add_pair(made: Made, limit: int, outward: bool, draw: Random, draft: Draft) -> int:
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
    surplus = a1 - a0 + b1 - b0 - limit
    if surplus > 0:
        keep_a, keep_b = kept((a1 - a0, b1 - b0), limit)
        draft.counts["cut_rows"] += 1
        if outward:
            draft.counts["cut_tokens"] += surplus
            a0, b1 = a1 - keep_a, b0 + keep_b
        else:
            a0, a1 = cut(a0, a1, keep_a, draw, draft)
            b0, b1 = cut(b0, b1, keep_b, draw, draft)
    draft.pair(a0, a1, b0, b1, label)
    return resume


def kept(sizes: Sequence[int], limit: int) -> list[int]:
    """Sizes left when tokens leave the longest segment (the last of equals) one at a time until `limit` are left."""
    room, many, left = limit, len(sizes), list(sizes)
    for size in sorted(sizes):
        if size * many > room:
            break
        room, many = room - size, many - 1
    if many == 0:
        return left
    level, more = divmod(room, many)
    for place, size in enumerate(sizes):
        if size > level:
            left[place] = level + (more > 0)
            more -= 1
    return left


def cut(start: int, end: int, keep: int, draw: Random, draft: Draft) -> tuple[int, int]:
    """The range without its surplus; as many tokens fall in front as fair coins show heads."""
    surplus = end - start - keep
    if surplus <= 0:
        return start, end
    draft.counts["cut_tokens"] += surplus
    front = draw.getrandbits(surplus).bit_count()
    return start + front, end - (surplus - front)
