"""Names -> objectives: the one place where a recipe's questions come to life, for the feed, the system and a folder."""

from __future__ import annotations

from collections.abc import Iterable

from maskery.objectives.config import OBJECTIVES
from maskery.objectives.protocol import Objective


def objectives_of(names: Iterable[str]) -> dict[str, Objective]:
    return {name: OBJECTIVES.get(name)() for name in names}
