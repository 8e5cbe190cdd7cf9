"""Question 6, how is it trained? The `[training]` table of a recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

from maskery.config import Config
from maskery.registry import Registry

if TYPE_CHECKING:
    from maskery.train.optimizers import Optimizer
    from maskery.train.schedules import Schedule

OPTIMIZERS: Registry[type[Optimizer]] = Registry(
    "optimizer", {"adamw": "maskery.train.optimizers:AdamW", "lamb": "maskery.train.lamb:Lamb"}
)
DECAYS: Registry[Schedule] = Registry(
    "decay",
    {
        "linear": "maskery.train.schedules:linear",
        "google": "maskery.train.schedules:google",
        "electra": "maskery.train.schedules:electra",
        "cosine": "maskery.train.schedules:cosine",
        "constant": "maskery.train.schedules:constant",
        "inverse_sqrt": "maskery.train.schedules:inverse_sqrt",
    },
)


class PhaseConfig(Config):
    """A stretch of training with its own row length. `steps` are proportions where they do not add up to
    `training.steps`."""

    steps: int = Field(ge=1)
    length: int = Field(ge=8)
    batch: int = Field(0, ge=0)
    """0 = training.batch."""
    lr: float = Field(0.0, ge=0)
    """Peak rate; 0 = training.lr."""


class TrainingConfig(Config):
    optimizer: Annotated[str, AfterValidator(OPTIMIZERS.validator())] = "adamw"
    lr: float = Field(1e-4, gt=0)
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = Field(1e-6, gt=0)
    weight_decay: float = Field(0.01, ge=0)
    bias_correction: bool = True
    clip: float = Field(1.0, ge=0)
    """Largest norm of the whole gradient; 0 = no clipping."""
    warmup: float = Field(0.01, ge=0)
    """Below 1 a share of all steps, otherwise a number of steps."""
    decay: Annotated[str, AfterValidator(DECAYS.validator())] = "linear"
    steps: int = Field(1_000_000, ge=1)
    batch: int = Field(256, ge=1)
    """Rows of one optimiser step, over all ranks and micro-batches."""
    micro: int = Field(0, ge=0)
    """Rows of one forward pass on one rank; 0 = chosen by memory, and told."""
    length: int = Field(512, ge=8)
    phases: tuple[PhaseConfig, ...] = ()
    seed: int = Field(0, ge=0)
    dropout_until: float = Field(1.0, ge=0, le=1)
    """The part of all steps that has dropout; after it there is none (BART: 0.9)."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Of matrix products; weights are float32. "auto" is settled when a run starts, told, and written into its
    recipe."""
    save_every: int = Field(1000, ge=0)
    keep: int = Field(3, ge=1)
    eval_every: int = Field(1000, ge=0)
    eval_rows: int = Field(256, ge=1)
