"""How each row is read, where rows differ in it (UniLM): a keyed draw for every row, and segment ids that tell it.

The ids are those of the authors' code for fine-tuning (microsoft/unilm, unilm-v1: `new_segment_ids`, six types): a pair
that is read in full keeps 0 and 1, a source and its target are 4 and 5, and a row that is read from one side is 2 or 3
throughout.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from maskery.model.config import Mode, VisibilityConfig
from maskery.randomness import Keys, uniform
from maskery.rows.ragged import Rows

FIRST_SEGMENT = {Mode.FULL: 0, Mode.PREFIX: 4, Mode.CAUSAL: 2, Mode.REVERSE: 3}
BEGINS_AS = (0, 1, 0, 0, 0, 1)
"""Which of the two ids of a pair each of the six is like: a model of pairs that learns modes begins with these."""
_TWO = (Mode.FULL, Mode.PREFIX)
"""Modes in which the second segment has the next id."""


def modes(config: VisibilityConfig, row_keys: Keys) -> NDArray[np.uint8] | None:
    """(B,) a `Mode` for each row; None where all rows are read as the network reads, which needs no word: in full, or
    by a visibility that is no mode."""
    codes = _codes(config)
    if codes is None:
        return None
    edges = np.cumsum(list(config.shares.values()))
    # Divided by the last edge, so that rounding leaves no gap above it.
    return codes[np.searchsorted(edges / edges[-1], uniform(row_keys, "mode"), side="right")]


def _codes(config: VisibilityConfig) -> NDArray[np.uint8] | None:
    """The modes that have a share of the rows."""
    kinds = {mode.kind: mode for mode in Mode}
    if not config.mixed and (config.kind == "full" or config.kind not in kinds):
        return None
    return np.array([kinds[kind] for kind in config.shares], dtype=np.uint8)


def with_every_mode(config: VisibilityConfig, drawn: NDArray[np.uint8] | None) -> NDArray[np.uint8] | None:
    """The draws of some rows, with every mode that has a share: one that is missing, however small its share, takes
    the last place of one that is there twice."""
    codes = _codes(config)
    if codes is None or drawn is None:
        return None
    changed = drawn.copy()
    for code in codes[~np.isin(codes, drawn)]:
        twice = np.flatnonzero(np.bincount(changed)[changed] > 1)
        changed[twice[-1]] = code
    return changed


def in_full(rows: Rows) -> NDArray[np.bool_]:
    """(B,) rows in which everybody sees everybody, as far as a row's mode tells."""
    return np.ones(len(rows), dtype=bool) if rows.mode is None else rows.mode == Mode.FULL


def with_segments_by_mode(rows: Rows) -> Rows:
    """The rows with segment ids that tell their mode."""
    mode = np.full(len(rows), Mode.FULL, dtype=np.uint8) if rows.mode is None else rows.mode
    first = np.zeros(len(Mode), dtype=np.uint8)
    for each, number in FIRST_SEGMENT.items():
        first[each] = number
    mine = mode[rows.row]
    second = np.where(np.isin(mine, _TWO), np.minimum(rows.segment, 1), 0)
    return replace(rows, segment=first[mine] + second.astype(np.uint8))
