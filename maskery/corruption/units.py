"""Units: the smallest things that corruption takes whole. A unit is a run of slots of one row.

A builder reads the rows and answers with all units in order; slots that no unit covers are never chosen. `token` makes
one of every slot that is not [CLS] or [SEP]. Words, phrases and entities are other builders, over the rows' flags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from maskery.rows.ragged import Rows


@dataclass(frozen=True, kw_only=True)
class Units:
    """U units, ascending, not overlapping."""

    start: NDArray[np.int64]
    """(U,) flat slot."""
    length: NDArray[np.int64]
    """(U,) slots."""
    row: NDArray[np.int64]
    """(U,)"""


class Unit(Protocol):
    def __call__(self, rows: Rows) -> Units: ...


def token(rows: Rows) -> Units:
    start = np.flatnonzero(~rows.special)
    return Units(start=start, length=np.ones_like(start), row=rows.row[start])
