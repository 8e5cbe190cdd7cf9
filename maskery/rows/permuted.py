"""ERNIE 2.0's rows: a stretch of one document cut into up to three segments, put in random order.

The label says how many segments there are and which permutation was drawn: 1! + 2! + 3! = 9 classes. The number of
segments is drawn evenly from what the stretch's sentences allow, then every order is as likely as another.

The last sentence of a stretch may overshoot. Tokens then leave the longest segment, one at a time, in front or behind:
if they left the end of the stretch only, the shortest segment would mostly be the last one.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise, permutations
from random import Random

from maskery.rows.config import RowsConfig
from maskery.rows.pairs import Pair, cut, kept
from maskery.rows.plan import Draft, Outline

MOST = 3
_ORDERS = [order for many in range(1, MOST + 1) for order in permutations(range(many))]
_LABEL = {order: label for label, order in enumerate(_ORDERS)}

PERMUTED = Pair(
    tuple("".join(str(place + 1) for place in order) for order in _ORDERS), None, other_documents=False, even=False
)


def plan(config: RowsConfig, outline: Outline, length: int, turn: int, draw: Random, draft: Draft) -> None:
    limit = length - 1 - MOST
    for document, end in enumerate(outline.end):
        here = outline.first[document]
        while here < end:
            stop = bisect_left(outline.sentence, outline.sentence[here] + limit, here + 1, end)
            _row(outline, here, stop, limit, draw, draft)
            here = stop


def _row(outline: Outline, first: int, stop: int, limit: int, draw: Random, draft: Draft) -> None:
    many = 1 + int(draw.random() * min(MOST, stop - first))
    inner = sorted(draw.sample(range(first + 1, stop), many - 1))
    bounds = [outline.sentence[place] for place in (first, *inner, stop)]
    segments = list(pairwise(bounds))
    if bounds[-1] - bounds[0] > limit:
        keep = kept([end - start for start, end in segments], limit)
        segments = [cut(*segment, left, draw, draft) for segment, left in zip(segments, keep, strict=True)]
        draft.counts["cut_rows"] += 1
    order = tuple(draw.sample(range(many), many))
    for place in order:
        draft.stretch(*segments[place])
    draft.close(_LABEL[order])
