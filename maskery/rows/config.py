"""Question 1, what is one training row? The `[rows]` table of a recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from maskery.config import Config
from maskery.registry import Registry

if TYPE_CHECKING:
    from maskery.rows.plan import Planner

KINDS: Registry[Planner] = Registry(
    "row kind",
    {
        "segment_pair": "maskery.rows.segment_pair:plan",
        "sentence_pair": "maskery.rows.sentence_pair:plan",
        "full_sentences": "maskery.rows.sentences:plan_full",
        "doc_sentences": "maskery.rows.sentences:plan_document",
    },
)
PAIRS: Registry[Any] = Registry(
    "pair label", {"next": "maskery.rows.pairs:NEXT", "none": "maskery.rows.pairs:NONE"}
)


class RowsConfig(Config):
    kind: Annotated[str, AfterValidator(KINDS.validator())] = "segment_pair"
    pair: Annotated[str, AfterValidator(PAIRS.validator())] = "next"
    """What the second segment is: next (half of the rows take it from another document) or none (one segment)."""
    short: float = Field(0.1, ge=0, le=1)
    """Share of rows that aim at a random shorter length."""
    copies: int = Field(1, ge=1, le=1000)
    """Passes over the corpus laid end to end in one plan, each with its own cuts and pairs."""
