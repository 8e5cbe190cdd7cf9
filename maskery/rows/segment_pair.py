"""BERT's rows: sentences of a document are gathered up to a target length, and the chunk is cut into A and B.

As in the original: with probability `short` a document is walked with a target drawn uniformly from 2 up to the full
length (one draw for the whole document); A is the first 1 .. n-1 of the chunk's n sentences; what a chunk does not
use is put back; the last sentence of a chunk may overshoot and is cut. With pair = "none" the chunk is the row.
"""

from __future__ import annotations

from bisect import bisect_left
from random import Random

from maskery.rows.config import PAIRS, RowsConfig
from maskery.rows.pairs import Pair, add_pair, cut, need_documents
from maskery.rows.plan import Draft, Outline


def plan(config: RowsConfig, outline: Outline, length: int, turn: int, draw: Random, draft: Draft) -> None:
    pair: Pair = PAIRS.get(config.pair)
    limit = length - 2
    if pair.make is not None:
        need_documents(outline, config)
        limit = length - 3
    for document in range(len(outline)):
        target = limit
        if draw.random() < config.short:
            target = 2 + int(draw.random() * (limit - 1))
            draft.count("short_documents")
        if pair.make is None:
            _one_segment(outline, document, target, limit, draw, draft)
        else:
            _two_segments(pair, outline, document, target, limit, draw, draft)


def _two_segments(
    pair: Pair, outline: Outline, document: int, target: int, limit: int, draw: Random, draft: Draft
) -> None:
    assert pair.make is not None
    sentence, here, end = outline.sentence, outline.first[document], outline.end[document]
    while here < end:
        stop = bisect_left(sentence, sentence[here] + target, here + 1, end)
        split = here + 1
        if stop - here > 1:
            split += int(draw.random() * (stop - here - 1))
        else:
            draft.count("one_sentence_chunks")
        made = pair.make(outline, document, here, split, stop, target, draw)
        here = add_pair(made, limit, pair.outward, draw, draft)


def _one_segment(outline: Outline, document: int, target: int, limit: int, draw: Random, draft: Draft) -> None:
    sentence, here, end = outline.sentence, outline.first[document], outline.end[document]
    while here < end:
        stop = bisect_left(sentence, sentence[here] + target, here + 1, end)
        before = draft.counts["cut_tokens"]
        draft.stretch(*cut(sentence[here], sentence[stop], limit, draw, draft))
        draft.counts["cut_rows"] += draft.counts["cut_tokens"] > before
        draft.close()
        here = stop
