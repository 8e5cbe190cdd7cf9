"""Choices of the network that nothing reads: they would change nothing, and no type of Hugging Face knows them, so that
a folder would be of our own type for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from maskery.model.config import BUCKETED, RELATIVE
from maskery.recipes.refusal import Refusal, either

if TYPE_CHECKING:
    from maskery.recipes.recipe import Recipe

_READERS = {
    "clip": [name for name in dict.fromkeys((*RELATIVE, *BUCKETED)) if name != "rotary"],
    "buckets": [*BUCKETED, "disentangled"],
    "theta": ["rotary"],
    "local_theta": ["rotary"],
}
"""Key of the model -> the positions that read it."""


def distances_without_positions(recipe: Recipe) -> Refusal | None:
    model = recipe.model
    for name, schemes in _READERS.items():
        usual = type(model).model_fields[name].default
        if model.positions not in schemes and getattr(model, name) != usual:
            return Refusal(
                piece=f"model.{name}",
                reason=f'model.positions = "{model.positions}" tells no distances that it could be about',
                repair=f"--set model.{name}={usual}, or model.positions = {either(schemes)}",
            )
    return None


def windows_without_layers(recipe: Recipe) -> Refusal | None:
    model = recipe.model
    if model.local and not any(map(model.is_local, range(max(model.layers, model.decoder)))):
        return Refusal(
            piece="model.local",
            reason=f"with model.layers = {model.layers} and model.global_every = {model.global_every} every layer "
            "attends to the whole row",
            repair="model.local = 0, or more layers and model.global_every = 3",
        )
    for name in ("global_every", "local_theta"):
        usual = type(model).model_fields[name].default
        if not model.local and getattr(model, name) != usual:
            return Refusal(
                piece=f"model.{name}",
                reason="model.local = 0: there is no local attention that it could be about",
                repair=f"--set model.{name}={usual}, or model.local = 128",
            )
    return None
