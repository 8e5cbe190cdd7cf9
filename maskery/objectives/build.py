"""Names -> objectives: the one place where a recipe's questions come to life, for the feed, the system and a folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from maskery.objectives.config import OBJECTIVES, ObjectiveConfig
from maskery.objectives.protocol import Objective
from maskery.objectives.tokens import TokenObjective


def objectives_of(asked: Mapping[str, ObjectiveConfig] | Iterable[str]) -> dict[str, Objective]:
    """By a recipe's tables, or by names alone."""
    found: dict[str, Objective] = {name: OBJECTIVES.get(name)() for name in asked}
    if isinstance(asked, Mapping):
        for name, each in found.items():
            if isinstance(each, TokenObjective):
                each.smoothing = asked[name].smoothing
    return found
