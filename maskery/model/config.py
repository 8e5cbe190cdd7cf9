"""Questions 3 and 4, who may see whom and what is the network? The `[visibility]` and `[model]` tables of a recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from maskery.config import Config
from maskery.registry import Registry

if TYPE_CHECKING:
    from maskery.model.positions import PositionScheme
    from maskery.model.visibility import Visibility

POSITIONS: Registry[type[PositionScheme]] = Registry(
    "position scheme",
    {
        "learned": "maskery.model.positions:Learned",
        "sinusoidal": "maskery.model.positions:Sinusoidal",
        "none": "maskery.model.positions:NoPositions",
    },
)
VISIBILITIES: Registry[type[Visibility]] = Registry(
    "visibility",
    {
        "full": "maskery.model.visibility:Full",
        "causal": "maskery.model.visibility:Causal",
        "packed": "maskery.model.visibility:Packed",
        "packed_causal": "maskery.model.visibility:PackedCausal",
    },
)

SIZES: dict[str, dict[str, int]] = {
    "tiny": {"layers": 2, "width": 128, "heads": 2},
    "mini": {"layers": 4, "width": 256, "heads": 4},
    "small": {"layers": 4, "width": 512, "heads": 8},
    "medium": {"layers": 8, "width": 512, "heads": 8},
    "base": {"layers": 12, "width": 768, "heads": 12},
    "large": {"layers": 24, "width": 1024, "heads": 16},
}


class VisibilityConfig(Config):
    kind: Annotated[str, AfterValidator(VISIBILITIES.validator())] = "full"


class ModelConfig(Config):
    layers: int = Field(12, ge=1)
    width: int = Field(768, ge=1)
    heads: int = Field(12, ge=1)
    feedforward: int = Field(0, ge=0)
    """Width of the feed-forward layer; 0 = four times the width."""
    embedding: int = Field(0, ge=0)
    """Width of the embeddings; 0 = the width of the layers."""
    positions: Annotated[str, AfterValidator(POSITIONS.validator())] = "learned"
    max_length: int = Field(512, ge=1)
    position_offset: int = Field(0, ge=0)
    """The number of the first position (Hugging Face's RoBERTa counts from 2)."""
    segments: int = Field(2, ge=0)
    norm: Literal["post", "pre"] = "post"
    activation: Literal["gelu", "gelu_tanh", "relu"] = "gelu"
    eps: float = Field(1e-12, gt=0)
    init_std: float = Field(0.02, gt=0)
    dropout: float = Field(0.1, ge=0, lt=1)
    attention_dropout: float = Field(0.1, ge=0, lt=1)

    @model_validator(mode="after")
    def _heads(self) -> ModelConfig:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        return self

    def shape(self, vocabulary: int, visibility: str = "full") -> Shape:
        """The same answers with every automatic number worked out, the vocabulary's size and who sees whom."""
        plain = self.plain()
        plain["feedforward"] = self.feedforward or 4 * self.width
        plain["embedding"] = self.embedding or self.width
        return Shape(vocabulary=vocabulary, visibility=visibility, **plain)


class Shape(ModelConfig):
    """Everything that fixes the tensors of a network and what it computes."""

    vocabulary: int = Field(ge=1)
    visibility: str = "full"
