"""Where in a row corruption may choose: all of it or its second segment alone, with or without the [SEP] at its end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from maskery.corpus.encode import Flag
from maskery.corruption.config import CorruptionConfig
from maskery.edit import Edit
from maskery.rows.ragged import Rows


def within(rows: Rows, config: CorruptionConfig) -> NDArray[np.bool_]:
    """(N,) the slots of the part of the row that is corrupted."""
    return np.ones(len(rows.ids), dtype=bool) if config.segment == "all" else rows.document > 0


def opened(rows: Rows, config: CorruptionConfig) -> Rows:
    """The rows as what is chosen sees them. What is out of reach, or hidden for a contrast, is as closed as [CLS]; an
    end that may be chosen is a word of its own."""
    if config.segment == "all" and not config.end and not config.ngram.longest:
        return rows
    closed = (rows.edit == Edit.NGRAM) | ~within(rows, config)
    special, flags = rows.special | closed, rows.flags
    if config.end:
        last = rows.start[1:][rows.length > 0] - 1
        last = last[~closed[last]]
        special[last] = False
        flags = flags.copy()
        flags[last] |= np.uint8(Flag.WORD)
    return replace(rows, special=special, flags=flags)
