"""What makes a text's vector of what a network says: which slots are pooled, how long a text may be, its prompts."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from maskery.config import Config

Pooled = Literal[
    "first", "pooler", "mean", "sqrt_mean", "weighted", "max", "last", "first_last", "last_two", "attention"
]
POOLINGS: tuple[Pooled, ...] = (
    "first", "pooler", "mean", "sqrt_mean", "weighted", "max", "last", "first_last", "last_two", "attention",
)  # fmt: skip
Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
SIMILARITIES: tuple[Similarity, ...] = ("cosine", "dot", "euclidean", "manhattan")


class VectorsConfig(Config):
    pool: tuple[Pooled, ...] = Field(("mean",), min_length=1)
    """What is pooled; several are laid side by side."""
    length: int = Field(256, ge=2)
    """Slots of a text at most, marks counted: what is longer is cut, and counted."""
    prompts: dict[str, str] = Field(default_factory=dict)
    """Texts by name that stand in front of every text of a kind: query, document."""
    prompt: str | None = None
    """The name of the prompt that is used where none is asked for."""
    pool_prompt: bool = True
    """Whether the prompt's slots are pooled with those of the text."""
    similarity: Similarity = "cosine"
    """How two vectors are compared."""
