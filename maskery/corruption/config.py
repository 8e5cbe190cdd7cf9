"""Question 2, how is a row corrupted? The `[corruption]` table of a recipe."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from maskery.config import Config
from maskery.registry import Registry

UNITS: Registry[Any] = Registry("corruption unit", {"token": "maskery.corruption.units:token"})
LAWS: Registry[Any] = Registry(
    "span law",
    {
        "single": "maskery.corruption.spans:single",
    },
)
SOURCES: Registry[Any] = Registry(
    "source of random tokens",
    {
        "vocabulary": "maskery.corruption.replace:from_vocabulary",
        "ordinary": "maskery.corruption.replace:from_ordinary",
    },
)


class SpanConfig(Config):
    law: Annotated[str, AfterValidator(LAWS.validator())] = "single"


class ReplaceConfig(Config):
    """Shares of the chosen positions by what happens to them; they sum to one."""

    mask: float = Field(0.8, ge=0, le=1)
    random: float = Field(0.1, ge=0, le=1)
    keep: float = Field(0.1, ge=0, le=1)

    @model_validator(mode="after")
    def _sum(self) -> ReplaceConfig:
        total = self.mask + self.random + self.keep
        if abs(total - 1) > 1e-6:
            raise ValueError(f"shares sum to {total:g}, not to 1")
        return self


class CorruptionConfig(Config):
    rate: float = Field(0.15, ge=0, lt=1)
    of: Literal["tokens"] = "tokens"
    """What the rate counts."""
    unit: Annotated[str, AfterValidator(UNITS.validator())] = "token"
    when: Literal["static", "dynamic"] = "dynamic"
    """static: a row of the plan has one corruption for ever; dynamic: a new one in every epoch."""
    decide: Literal["token"] = "token"
    """What one draw of mask / random / keep covers."""
    random_from: Annotated[str, AfterValidator(SOURCES.validator())] = "vocabulary"
    span: SpanConfig = SpanConfig()
    replace: ReplaceConfig = ReplaceConfig()
