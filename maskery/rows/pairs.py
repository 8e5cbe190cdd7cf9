"""Pair builders: what the second segment of a row is, and which label says so.

A builder is given a chunk of one document, already cut in two by sentences, and answers with both segments, the label
and the sentence at which the walk goes on. `NEXT` is BERT's next sentence; `NONE` means rows of one segment. A
builder that swaps or looks backwards fits the same signature.

Departure from BERT: the other document is drawn from all others at once. The original redraws up to ten times and may
then label a stretch of the same document as random.
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


NEXT = Pair(("next", "other"), _next)
NONE = Pair((), None)


def need_documents(outline: Outline) -> None:
    if len(outline) < 2:
        raise RefusedError(
            f"the {outline.split} part of the corpus is one document, and half of the second segments have to come "
            "from another one",
            where="rows.pair",
            repair="put a blank line between documents and build the corpus again, or leave pairs out: "
            "--set rows.pair=none --set objectives.next_sentence=false",
        )


def add_pair(made: Made, limit: int, draw: Random, draft: Draft) -> int:
    """Write the pair, cut to `limit` tokens: one by one from the longer segment, in front or behind by a fair coin.

    Returns where the next chunk begins.
    """
    a0, a1, b0, b1, label, resume = made
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
