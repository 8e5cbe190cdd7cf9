"""Runs of words of a corpus as text that the tokenizer reads back as the same tokens.

WordPiece does not keep where spaces were: there a sign that joins names is written without (卡尔·马克思).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from maskery.knowledge.spelling import spellings
from maskery.words.runs import Numbers
from maskery.words.vocabulary import word_places

if TYPE_CHECKING:
    from maskery.corpus.store import Corpus

_JOINED = re.compile(r" ?([·・•‐–\-'’]) ?")


def run_texts(corpus: Corpus, place: Numbers, length: Numbers, split: str = "train") -> list[str]:
    """The text of the `length` words from each `place` (an occurrence, as `Words` counts them); empty for a run that
    cannot be written so that a list of words would find it again."""
    if not len(place):
        return []
    begin, tokens, _ = word_places(corpus, split)
    first, last = begin[place], place + length - 1
    many = begin[last] + tokens[last] - first
    edge = np.concatenate(([0], np.cumsum(many)))
    ids = np.asarray(corpus.tokens)[np.arange(edge[-1]) - np.repeat(edge[:-1] - first, many)].astype(np.int64)
    pieces = np.split(ids, edge[1:-1])
    texts = [" ".join(corpus.tokenizer.decode(each).split()) for each in pieces]
    if corpus.tokenizer.kind == "WordPiece":
        texts = [_JOINED.sub(r"\1", text) for text in texts]
    found = np.zeros(len(texts), dtype=bool)
    for way in spellings(corpus.tokenizer, texts):
        same = way.length == many
        there = way.ids[np.repeat(same, way.length)]
        here = ids[np.repeat(same, many)]
        owner = np.repeat(np.flatnonzero(same), many[same])
        found[same] |= np.bincount(owner, there != here, minlength=len(texts))[same] == 0
    return [text if whole else "" for text, whole in zip(texts, found.tolist(), strict=True)]
