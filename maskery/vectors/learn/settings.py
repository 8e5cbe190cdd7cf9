"""How an encoder is trained: the loss by its name, what belongs to it, the training. Every loss has usual values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError

from maskery.config import Config
from maskery.errors import ArgumentError, UnknownName
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
POOL: Mapping[str, tuple[str, str]] = {
    "simcse": ("first", "SimCSE"),
    "simcse_supervised": ("first", "SimCSE"),
    "simbert": ("first", "SimBERT"),
}
"""What is pooled of a model whose folder does not say it, and after whom; of all others the mean."""


TABLES: Mapping[str, type[Config]] = {"training": TrainingConfig, "columns": ColumnsConfig}
_IN_BATCH = ("multiple_negatives", "simcse", "simcse_supervised", "simbert")
READ_BY: Mapping[str, tuple[str, ...]] = {
    "join": ("softmax",),
    "labels": ("softmax",),
    "highest": ("cosine",),
    "margin": ("triplet",),
    "distance": ("triplet",),
    "scale": (*_IN_BATCH, "cosent"),
    "symmetric": _IN_BATCH,
    "rivals": _IN_BATCH,
    "positive": ("multiple_negatives", "simcse_supervised", "simbert"),
    "generate": ("simbert",),
}
"""Settings that only some losses read."""
_BY_EPOCHS, _NEWEST = "epochs = N", "the newest state and the best encoder are kept"
SETTLED: Mapping[str, str] = {
    "training.steps": _BY_EPOCHS,
    "training.phases": f"{_BY_EPOCHS}, length = N: phases belong to pretraining",
    "training.length": "length = N",
    "training.eval_every": "eval_every = N",
    "training.eval_rows": "the whole development set is asked",
    "training.keep": _NEWEST,
    "columns.meta": "texts are all that an encoder reads",
    "columns.places": "columns.text = 2,3",
}
"""Keys that a training of vectors settles by itself, and what is to be said instead."""


def learn_config(loss: str, given: Mapping[str, Any] | None = None) -> LearnConfig:
    """The usual settings of a loss with what is given in their place; `training` and `columns` are tables in it. A key
    that is unknown, or that would change nothing, is refused."""
    LOSSES.check(loss)
    usual, own = USUAL[loss], dict(given or {})
    _require_effect(loss, own)
    tables = {key: {**usual.get(key, {}), **own.pop(key, {})} for key in TABLES}
    try:
        found = LearnConfig(**{**usual, **own, **tables, "loss": loss})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ArgumentError(first["msg"], where=place, repair=f"give {place} another value, or leave it out") from None
    if found.symmetric and found.rivals == "all":
        cause = "every text looks for its partner already where all are rivals"
        raise ArgumentError(cause, where="symmetric", repair="leave out symmetric, or rivals = across")
    return found


def _require_effect(loss: str, given: Mapping[str, Any]) -> None:
    known = LearnConfig.model_fields.keys() - TABLES.keys() - {"loss"}
    known |= {f"{table}.{key}" for table, kind in TABLES.items() for key in kind.model_fields}
    asked = [key for key in given if key not in TABLES]
    for table in TABLES.keys() & given.keys():
        if not isinstance(given[table], Mapping):
            raise ArgumentError(f"{given[table]!r} is no table", where=table, repair=f"{table}.KEY = value")
        asked += [f"{table}.{key}" for key in given[table]]
    for key in asked:
        if key not in known:
            raise UnknownName("setting of vectors", key, known - SETTLED.keys())
        if key in SETTLED:
            raise ArgumentError("has no effect here: it is settled otherwise", where=key, repair=SETTLED[key])
        if loss not in READ_BY.get(key, (loss,)):
            cause = f"the loss {loss} does not read it"
            raise ArgumentError(cause, where=key, repair=f"leave it out; it belongs to {', '.join(READ_BY[key])}")
