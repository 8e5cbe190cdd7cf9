"""How an encoder is trained: the loss by its name, what belongs to it, the training. Every loss has usual values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError

from maskery.config import Config
from maskery.errors import ArgumentError
from maskery.registry import Registry
from maskery.tasks.settings import ColumnsConfig
from maskery.train.config import TrainingConfig
from maskery.vectors.settings import Pooled

if TYPE_CHECKING:
    from maskery.vectors.learn.losses import VectorLoss

LOSSES: Registry[type[VectorLoss]] = Registry(
    "loss of sentence vectors",
    {
        "softmax": "maskery.vectors.learn.losses:Softmax",
        "cosine": "maskery.vectors.learn.losses:CosineRegression",
        "triplet": "maskery.vectors.learn.losses:Triplet",
        "multiple_negatives": "maskery.vectors.learn.contrast:InBatch",
        "cosent": "maskery.vectors.learn.contrast:CoSENT",
        "simcse": "maskery.vectors.learn.contrast:InBatch",
        "simcse_supervised": "maskery.vectors.learn.contrast:InBatch",
        "simbert": "maskery.vectors.learn.contrast:InBatch",
    },
)
Join = Literal[
    "uv", "difference", "product", "difference_product", "uv_difference", "uv_product", "uv_difference_product"
]
JOINS: tuple[Join, ...] = (
    "uv", "difference", "product", "difference_product", "uv_difference", "uv_product", "uv_difference_product",
)  # fmt: skip


class LearnConfig(Config):
    loss: Annotated[str, AfterValidator(LOSSES.validator())]
    join: Join = "uv_difference"
    """softmax: what of the two vectors the classes are told from."""
    scale: float = Field(20.0, gt=0)
    """What cosines are multiplied by before the softmax: 1 / temperature."""
    symmetric: bool = False
    """In-batch negatives: the second texts look for their first, too."""
    rivals: Literal["across", "all"] = "across"
    """In-batch negatives: the first texts are compared with the others, or every text with every one but itself."""
    margin: float = Field(1.0, ge=0)
    """triplet: by how much the wrong text has to be farther away."""
    distance: Literal["euclidean", "cosine"] = "euclidean"
    """triplet."""
    projection: Literal["none", "training", "kept"] = "none"
    """A layer with tanh on the vector: thrown away after training (SimCSE), or part of the encoder (supervised)."""
    generate: float = Field(0.0, ge=0)
    """The weight of writing the second text from the first, beside the comparison (SimBERT: 1)."""
    positive: float | None = None
    """Where pairs with scores are read as pairs that belong together: the lowest score that does."""
    labels: tuple[str, ...] = ()
    """softmax: the classes in their order; empty: those of the training data, and told."""
    highest: float = Field(0.0, ge=0)
    """cosine: the score that stands for the cosine 1; 0: the highest of the training data if above 1, and told."""
    pool: tuple[Pooled, ...] = ()
    """What is pooled; empty: as the encoder's folder says, or as the loss has it."""
    length: int = Field(0, ge=0)
    """Slots of a text at most in training; 0: as many as the encoder reads."""
    epochs: float = Field(1.0, gt=0)
    patience: int = Field(0, ge=0)
    """Evaluations without a better one after which training ends; 0: all epochs."""
    eval_every: int = Field(0, ge=0)
    """Updates between two evaluations; 0: at the end of every epoch."""
    columns: ColumnsConfig = ColumnsConfig()
    training: TrainingConfig = TrainingConfig(lr=2e-5, batch=32, warmup=0.1, eps=1e-8)


def _usual(lr: float, batch: int, warmup: float = 0.1, **more: Any) -> dict[str, Any]:
    return {**more, "training": {"lr": lr, "batch": batch, "warmup": warmup, "eps": 1e-8}}


USUAL: Mapping[str, Mapping[str, Any]] = {
    "softmax": _usual(2e-5, 16),
    "cosine": _usual(2e-5, 16, epochs=4.0),
    "triplet": _usual(2e-5, 16),
    "multiple_negatives": _usual(2e-5, 64),
    "cosent": _usual(2e-5, 32, epochs=5.0),
    "simcse": _usual(3e-5, 64, 0.0, projection="training", eval_every=125, length=32),
    "simcse_supervised": _usual(5e-5, 512, 0.0, projection="kept", epochs=3.0, eval_every=125, length=32),
    "simbert": _usual(2e-6, 64, scale=30.0, rivals="all", generate=1.0, length=32),
}
"""As the papers or their code have them."""
POOL: Mapping[str, str] = {"simcse": "first", "simcse_supervised": "first"}
"""What is pooled of a model whose folder does not say it; of all others the mean."""


def learn_config(loss: str, given: Mapping[str, Any] | None = None) -> LearnConfig:
    """The usual settings of a loss with what is given in their place; `training` and `columns` are tables in it."""
    LOSSES.check(loss)
    usual, own = USUAL[loss], dict(given or {})
    tables = {key: {**usual.get(key, {}), **own.pop(key, {})} for key in ("training", "columns")}
    try:
        return LearnConfig(**{**usual, **own, **tables, "loss": loss})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ArgumentError(f"{place}: {first['msg']}", where=place, repair=f"see LearnConfig.{place}") from None
