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
        "permuted_token": "maskery.objectives.permuted_token:PermutedToken",
        "span_boundary": "maskery.objectives.span_boundary:SpanBoundary",
        "word_order": "maskery.objectives.word_order:WordOrder",
        "replaced_token": "maskery.objectives.replaced_token:ReplacedToken",
        "contrast": "maskery.objectives.contrast:Contrast",
        "next_sentence": "maskery.objectives.sentences:NextSentence",
        "sentence_order": "maskery.objectives.sentences:SentenceOrder",
        "three_way": "maskery.objectives.sentences:ThreeWay",
        "sentence_distance": "maskery.objectives.sentences:SentenceDistance",
        "segment_order": "maskery.objectives.sentences:SegmentOrder",
    },
)

PAIR_OF = {
    "next_sentence": "next",
    "sentence_order": "order",
    "three_way": "three",
    "sentence_distance": "distance",
    "segment_order": "permuted",
}
"""The questions about segments, and the `rows.pair` that makes their labels."""

ASKED_OF_GENERATOR = "masked_token"
"""The question that the generator answers, where a recipe has one; the others are asked of the model."""

ASKED_OF_DECODER = ("next_token",)
"""The questions about what a decoder writes, where the model has one."""
ASKED_OF_SECOND_STREAM = ("permuted_token",)
"""The questions that a second stream answers, where the model has one."""


SMOOTHED = ("next_token",)
"""The questions whose answers may be smoothed."""


class ObjectiveConfig(Config):
    weight: float = Field(1.0, ge=0)
    smoothing: float = Field(0.0, ge=0, lt=1)
    """next_token: the share of every answer that all tokens of the vocabulary have alike (Szegedy et al. 2016). The
    loss in training has it, what is measured has not."""
