"""One run of neighbouring words of each row, hidden whole: what the contrast is about (InfoWord, Kong et al. 2019).

The run lies in one segment and has at most half of the row's words, so that something is left to tell it by. Every
length that the row has room for is as likely, and then every place. A row without room for the shortest has no run.

It is drawn before any token is chosen. Its slots are as closed as [CLS] and [SEP] to what is chosen afterwards, and the
rate counts the slots that are left: of 100 tokens with a run of 10, 15 % are 13.5.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from maskery.corruption.choose import ramp
from maskery.corruption.config import NgramConfig
from maskery.corruption.replace import Facts, mask_id
from maskery.corruption.spans import units_left
from maskery.corruption.units import word
from maskery.edit import Edit
from maskery.randomness import Keys, below
from maskery.rows.ragged import Rows


def hide_ngrams(rows: Rows, config: NgramConfig, row_keys: Keys, facts: Facts) -> Rows:
    """The rows with a mask at every slot of their run."""
    slot = ngram_slots(rows, config, row_keys)
    ids, edit = rows.ids.copy(), rows.edit.copy()
    if len(slot):
        without = "--set corruption.ngram.longest=0 --set objectives.contrast=false"
        ids[slot], edit[slot] = mask_id(facts, "corruption.ngram", without), Edit.NGRAM
    return replace(rows, ids=ids, edit=edit)


def ngram_slots(rows: Rows, config: NgramConfig, row_keys: Keys) -> NDArray[np.int64]:
    """The flat slots of all runs, ascending."""
    words = word(rows)
    left = units_left(words)
    room = np.bincount(words.row, minlength=len(rows)) // 2
    stretch = np.zeros(len(rows), dtype=np.int64)
    np.maximum.at(stretch, words.row, left)
    longest = np.minimum(np.minimum(room, stretch), config.longest)
    row = np.flatnonzero(longest >= config.shortest)
    count = np.zeros(len(rows), dtype=np.int64)
    count[row] = config.shortest + below(row_keys[row], "ngram length", longest[row] - config.shortest + 1)

    fitting = np.flatnonzero((left >= count[words.row]) & (count[words.row] > 0))
    many = np.bincount(words.row[fitting], minlength=len(rows))
    begin = np.searchsorted(words.row[fitting], row)
    first = fitting[begin + below(row_keys[row], "ngram place", many[row])]
    last = first + count[row] - 1
    size = words.start[last] + words.length[last] - words.start[first]
    return np.repeat(words.start[first], size) + ramp(size)
