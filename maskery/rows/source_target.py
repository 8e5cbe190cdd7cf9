"""Rows of a source and its target, for a model that writes the second: the pairs of a corpus of pairs, or, of running
text, every other sentence and the one behind it. A sentence that has none behind it is left out and counted.

With a decoder each side has a row to itself, and may be as long as one. Without, both stand in one row, and the longer
side is cut first where they do not fit. What is cut is counted.
"""

from __future__ import annotations

from random import Random

from maskery.rows.config import RowsConfig
from maskery.rows.plan import Draft, Outline


def plan(config: RowsConfig, outline: Outline, length: int, turn: int, draw: Random, draft: Draft) -> None:
    sentence = outline.sentence
    for first, end in zip(outline.first, outline.end, strict=True):
        for here in range(first, end - 1, 2):
            source, target, stop = sentence[here], sentence[here + 1], sentence[here + 2]
            whole = stop - source
            left, right = _cut(target - source, stop - target, length, alone=config.decoder == "target")
            draft.pair(source, source + left, target, target + right, -1)
            if left + right < whole:
                draft.count("cut_tokens", whole - left - right)
                draft.count("cut_rows")
        if (end - first) % 2:
            draft.count("left_out_sentences")


def _cut(left: int, right: int, length: int, *, alone: bool) -> tuple[int, int]:
    """How many tokens of each side fit: `alone`, each beside its own [CLS] and [SEP], else both beside [CLS] and two
    [SEP]."""
    if alone:
        return min(left, length - 2), min(right, length - 2)
    room = length - 3
    over = left + right - room
    if over <= 0:
        return left, right
    gap = left - right
    more = min(over, abs(gap))
    left, right = (left - more, right) if gap > 0 else (left, right - more)
    rest = over - more
    return left - (rest + 1) // 2, right - rest // 2
