"""Question 1, what is one training row? The `[rows]` table of a recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, model_validator

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
PAIRS: Registry[Any] = Registry("pair label", {"next": "maskery.rows.pairs:NEXT", "none": "maskery.rows.pairs:NONE"})

ONE_SEGMENT = frozenset({"full_sentences", "doc_sentences"})
"""Kinds whose rows are never pairs."""


class RowsConfig(Config):
    kind: Annotated[str, AfterValidator(KINDS.validator())] = "segment_pair"
    pair: Annotated[str, AfterValidator(PAIRS.validator())] = "next"
    """What the second segment is: next (half of the rows take it from another document) or none (one segment).

    Where it is not given: next, but none for the kinds that make no pairs."""
    short: float = Field(0.1, ge=0, le=1)
    """segment_pair: chance that a document is walked with a random shorter length, as in BERT."""
    copies: int = Field(1, ge=1, le=1000)
    """Passes over the corpus laid end to end in one plan, each with its own cuts and pairs."""

    @model_validator(mode="before")
    @classmethod
    def _default_pair(cls, values: Any) -> Any:
        if isinstance(values, dict) and isinstance(values.get("kind"), str) and values["kind"] in ONE_SEGMENT:
            return {"pair": "none"} | values
        return values

    @model_validator(mode="after")
    def _no_pair_in_one_segment(self) -> RowsConfig:
        if self.kind in ONE_SEGMENT and self.pair != "none":
            raise ValueError(
                f"kind {self.kind!r} makes rows of one segment, pair {self.pair!r} needs two; set rows.pair=none"
            )
        return self
