"""The recipe that `maskery pretrain` trains: recipe < size < --set < named flags, and what is chosen automatically.

An automatic choice answers a key that the user left open where the published value would not finish on a CPU; with a
GPU there is none. What stands in a recipe file of the user's own is not open, so `pretrain old-run/recipe.toml` repeats
that run. A choice lies below --set. A resumed run takes these keys from its stored recipe, so that the same command
with --resume goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from maskery.errors import InputError
from maskery.model.config import SIZES, Architecture
from maskery.phases import phases_of
from maskery.recipes.layers import file_layers
from maskery.recipes.recipe import Recipe, recipe
from maskery.train import machine

CPU_SIZE, CPU_LENGTH, CPU_BATCH, CPU_BUDGET = "mini", 128, 32, "10m"
LARGEST_CPU_BATCH = 64
_SIZE_KEYS = frozenset({"model.layers", "model.width", "model.heads"})


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the command line says."""

    recipe: str
    size: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    """--set, as dotted keys without tables."""
    steps: int | None = None
    tokens: int | None = None
    budget: str | None = None
    batch: int | None = None
    length: int | None = None
    seed: int | None = None
    save_every: int | None = None
    start_from: Path | None = None
    allow_pickle: bool = False

    def __post_init__(self) -> None:
        steps = self.settings.get("training.steps") if self.steps is None else self.steps
        limits = {"--steps": steps, "--tokens": self.tokens, "--budget": self.budget}
        given = [name for name, value in limits.items() if value is not None]
        if len(given) > 1:
            raise InputError(f"{' and '.join(given)} each say how long to train", repair=f"keep {given[0]} alone")
        if self.tokens is not None and self.tokens < 1:
            raise InputError(f"--tokens {self.tokens} is nothing to train on", repair="--tokens 10000000")

    @property
    def flags(self) -> dict[str, Any]:
        """Named flags as dotted keys."""
        named: dict[str, Any] = {
            "training.steps": self.steps,
            "training.batch": self.batch,
            "training.length": self.length,
            "training.phases": [] if self.length is not None else None,
            "training.seed": self.seed,
            "training.save_every": self.save_every,
        }
        return {key: value for key, value in named.items() if value is not None}

    @cached_property
    def written(self) -> frozenset[str]:
        """Keys that recipe files of the user's own answer."""
        own = (layer.data for layer in file_layers(self.recipe) if not layer.shipped)
        return frozenset(key for data in own for key in flat(data))

    @property
    def typed(self) -> frozenset[str]:
        """Keys that the command line answers."""
        return frozenset(self.settings) | frozenset(self.flags)

    @property
    def given(self) -> frozenset[str]:
        return self.typed | self.written

    @property
    def open_ended(self) -> bool:
        """Whether nothing says how long to train."""
        return self.tokens is None and self.budget is None and "training.steps" not in self.given


@dataclass(frozen=True)
class Choice:
    """Keys answered automatically, and why."""

    keys: Mapping[str, Any]
    reason: str


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"model": {"layers": 2}} -> {"model.layers": 2}"""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value}
    return found


def choices(asked: Asked, model: Architecture | None, resumed: bool = False) -> list[Choice]:
    """What is chosen for this command line; `model` is the shape of --from. For a run that is resumed these are the
    keys to be read from it, wherever it was started."""
    published = recipe(asked.recipe)
    found = [_shape_of(asked, model)] if model is not None else []
    if resumed or on_cpu():
        found += [*([] if found else [_shape(asked, published)]), _length(asked, published), _batch(asked, published)]
    return [choice for choice in found if choice is not None and choice.keys.keys() - asked.given]


def on_cpu() -> bool:
    return machine.device().type == "cpu"


def resolve(asked: Asked, chosen: list[Choice], stored: Recipe | None) -> Recipe:
    """The recipe to train, all but the number of steps that a budget or a number of tokens makes."""
    keys = {key: value for choice in chosen for key, value in choice.keys.items() if key not in asked.given}
    if stored is not None:
        before = stored.plain()
        keys = {key: before[table][name] for key in keys for table, _, name in [key.partition(".")]}
    return recipe(asked.recipe, keys | asked.settings, size=asked.size).changed(asked.flags)


def _shape_of(asked: Asked, model: Architecture) -> Choice | None:
    if asked.size is not None:
        return None
    keys = {f"model.{name}": getattr(model, name) for name in Architecture.model_fields}
    return Choice(keys, f"the network's shape is that of {asked.start_from}, because training starts from it")


def _shape(asked: Asked, published: Recipe) -> Choice | None:
    if asked.size is not None or asked.written & _SIZE_KEYS:
        return None
    mini, theirs = SIZES[CPU_SIZE], published.model
    small = theirs.layers * theirs.width**2 <= mini["layers"] * mini["width"] ** 2
    if small or asked.given >= _SIZE_KEYS:
        return None
    keys = {f"model.{name}": value for name, value in mini.items()} | {"model.feedforward": 0}
    was = f"{theirs.layers} layers of width {theirs.width}"
    return Choice(keys, f"--size {CPU_SIZE}: {was}, as published, need far more than a CPU (choose with --size)")


def _length(asked: Asked, published: Recipe) -> Choice | None:
    longest = max(phase.length for phase in phases_of(published.training))
    if longest <= CPU_LENGTH or asked.given & {"training.length", "training.phases"}:
        return None
    keys = {"training.length": CPU_LENGTH, "training.phases": []}
    reason = f"rows of {longest}, as published, take too long on a CPU (choose with --length)"
    return Choice(keys, f"--length {CPU_LENGTH}: {reason}")


def _batch(asked: Asked, published: Recipe) -> Choice | None:
    largest = max(phase.batch for phase in phases_of(published.training))
    if (
        largest <= LARGEST_CPU_BATCH
        or "training.batch" in asked.given
        or "training.phases" in asked.settings.keys() | asked.written
    ):
        return None
    reason = f"with {largest} rows a step, as published, a CPU makes too few steps (choose with --batch)"
    return Choice({"training.batch": CPU_BATCH}, f"--batch {CPU_BATCH}: {reason}")
