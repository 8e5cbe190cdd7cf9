"""Pairs of single sentences (one of RoBERTa's layouts): A is a sentence, B the next one or one from elsewhere.

A document is walked like BERT's chunks: a pair of neighbours uses both, otherwise the second stays for the next row, so
in one pass every sentence is read once as part of its own document. What the last sentence, which has no neighbour
left, makes is the pair builder's choice. `short` has no meaning here. With pair = "none" every sentence is a row.
"""

from __future__ import annotations

from random import Random

from maskery.rows.config import PAIRS, RowsConfig
from maskery.rows.pairs import Pair, add_pair, cut, need_documents
from maskery.rows.plan import Draft, Outline


def plan(config: RowsConfig, outline: Outline, length: int, turn: int, draw: Random, draft: Draft) -> None:
    pair: Pair = PAIRS.get(config.pair)
    if pair.make is None:
        _single(outline, length - 2, draw, draft)
        return
    need_documents(outline, config)
    for document, end in enumerate(outline.end):
        here = outline.first[document]
        while here < end:
            if here + 1 == end:
                draft.count("one_sentence_chunks")
            # A target of no tokens: a sentence from elsewhere is always exactly one.
            made = pair.make(outline, document, here, here + 1, min(here + 2, end), 0, draw)
            here = add_pair(made, length - 3, pair.outward, draw, draft)


def _single(outline: Outline, limit: int, draw: Random, draft: Draft) -> None:
    sentence = outline.sentence
    for first, end in zip(outline.first, outline.end, strict=True):
        for number in range(first, end):
            draft.counts["cut_rows"] += sentence[number + 1] - sentence[number] > limit
            draft.stretch(*cut(sentence[number], sentence[number + 1], limit, draw, draft))
            draft.close()
