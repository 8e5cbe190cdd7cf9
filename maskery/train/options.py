"""What a user says of a pretraining run, and what that leaves open: recipe < size < settings < named options.

What stands in a recipe file of the user's own is not open, so `pretrain old-run/recipe.toml` repeats that run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from maskery.errors import InputError
from maskery.recipes.layers import file_layers, override_layer


@dataclass(frozen=True, kw_only=True)
class Options:
    """A recipe by name or path, and what is to differ from it."""

    recipe: str
    size: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Dotted keys of the recipe (--set), as `dotted` makes them."""
    steps: int | None = None
    tokens: int | None = None
    budget: str | None = None
    lr: float | None = None
    batch: int | None = None
    length: int | None = None
    seed: int | None = None
    save_every: int | None = None
    start_from: Path | None = None
    allow_pickle: bool = False
    as_published: bool = False
    """Keep every setting of the paper that is not named."""

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
        """Named options as dotted keys."""
        named: dict[str, Any] = {
            "training.steps": self.steps,
            "training.lr": self.lr,
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
    def given(self) -> frozenset[str]:
        """Keys that the options or the user's own files answer."""
        return frozenset(flat(self.settings)) | frozenset(self.flags) | self.written

    @property
    def open_ended(self) -> bool:
        """Whether nothing says how long to train."""
        return self.tokens is None and self.budget is None and "training.steps" not in self.given


def flat(settings: Mapping[str, Any], prefix: str = "", whole: Collection[str] = ()) -> dict[str, Any]:
    """{"model": {"layers": 2}} -> {"model.layers": 2}; a table named in `whole` stays one."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and prefix + key not in whole:
            found |= flat(value, f"{prefix}{key}.", whole)
        else:
            found[prefix + key] = value
    return found


def nested(keys: Mapping[str, Any]) -> dict[str, Any]:
    """{"rows.length": 64} -> {"rows": {"length": 64}}"""
    found: dict[str, Any] = {}
    for key, value in keys.items():
        *tables, last = key.split(".")
        inside = found
        for number, table in enumerate(tables):
            inside = inside.setdefault(table, {})
            if not isinstance(inside, dict):
                name = ".".join(tables[: number + 1])
                raise InputError(
                    f"{key} is a key of the table {name}, and {name} is given as a value",
                    repair=f"give {name} as a table, or leave out {key}",
                )
        inside[last] = value
    return found


def dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Tables as dotted keys, except those that replace the recipe's own."""
    return flat(settings, whole=override_layer(settings).whole)
