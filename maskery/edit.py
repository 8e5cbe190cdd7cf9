"""What corruption did to a slot: one code, shared by rows on the CPU and by the batch that the network reads."""

from __future__ import annotations

from enum import IntEnum


class Edit(IntEnum):
    NONE = 0
    MASK = 1
    RANDOM = 2
    KEEP = 3
    SIMILAR = 4
    SHUFFLED = 5
