"""Question 5, what is asked? The `[objectives.NAME]` tables of a recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from maskery.config import Config
from maskery.registry import Registry

if TYPE_CHECKING:
    from maskery.objectives.protocol import Objective

OBJECTIVES: Registry[type[Objective]] = Registry(
    "objective",
    {
        "masked_token": "maskery.objectives.masked_token:MaskedToken",
        "next_token": "maskery.objectives.next_token:NextToken",
        "next_sentence": "maskery.objectives.next_sentence:NextSentence",
    },
)


class ObjectiveConfig(Config):
    weight: float = Field(1.0, ge=0)
