"""What a decoder reads and is asked to write, beside the rows that the encoder reads.

A decoder's slot reads the token before the one that it is asked for, so its row is what is to be written, shifted by
one; the first slot reads a start token. `Rows.next` holds what each slot is asked for.

    text      the whole row before corruption                          [CLS] a b c        asked: a b c [SEP]
              the same with `decoder_start = "end"`              [SEP] [CLS] a b c  asked: [CLS] a b c [SEP]
    chosen    the tokens that corruption chose, each slot at the position of the token that it reads
    target    the second segment; the encoder reads the first alone
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from maskery.edit import ASKED, Edit
from maskery.rows.config import RowsConfig
from maskery.rows.plan import Specials
from maskery.rows.ragged import Rows, taken


def source(rows: Rows, config: RowsConfig) -> Rows:
    """What the encoder reads of the rows of the plan: all, or the first segment where the second is to be written."""
    return taken(rows, np.flatnonzero(rows.document == 0)) if config.decoder == "target" else rows


def ended_by(rows: Rows, end: int) -> Rows:
    """The rows with another end of the second segment, whose vocabulary may be its own."""
    theirs = rows.special & (rows.document > 0)
    ids = np.where(theirs, end, rows.ids).astype(np.int32)
    return replace(rows, ids=ids, original=ids)


def written(clean: Rows, corrupted: Rows, config: RowsConfig, specials: Specials) -> Rows:
    """The decoder's rows: `clean` are the rows of the plan before anything was done to them."""
    start = specials.cls if config.decoder_start == "begin" else specials.sep
    if config.decoder == "chosen":
        slot = np.flatnonzero(np.isin(corrupted.edit, ASKED))
        made = _asked_for(corrupted, slot, corrupted.slot[slot] == 0, start)
        return replace(made, position=np.maximum(corrupted.slot[slot] - 1, 0))
    wanted = clean.document > 0 if config.decoder == "target" else np.ones(len(clean.ids), dtype=bool)
    if config.decoder_start == "begin":
        wanted &= ~(clean.special & (clean.slot == 0) & (clean.ids == specials.cls))
    slot = np.flatnonzero(wanted)
    return _asked_for(clean, slot, np.diff(clean.row[slot], prepend=-1) != 0, start)


def _asked_for(rows: Rows, slot: NDArray[np.int64], first: NDArray[np.bool_], start: int) -> Rows:
    """Rows that are asked for the tokens that stood in the given slots, ascending; each reads the token before it, the
    `first` of a row the start. Nothing has corrupted them, and they are read in the decoder's own way."""
    here = taken(rows, slot)
    ids = np.where(first, start, rows.original[slot - 1]).astype(np.int32)
    return replace(
        here,
        ids=ids,
        original=ids,
        next=here.original,
        flags=np.where(first, 0, rows.flags[slot - 1]).astype(np.uint8),
        special=first | rows.special[slot - 1],
        edit=np.full(len(ids), Edit.NONE, dtype=np.uint8),
        segment=np.zeros_like(here.segment),
        mode=None,
        order=None,
        asked=None,
    )
