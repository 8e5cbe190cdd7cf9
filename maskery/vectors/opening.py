"""A folder, or a model that is there already, as what makes vectors: what it says, what was asked for instead, where
it runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from maskery import arguments
from maskery.checkpoint.load import load
from maskery.checkpoint.locate import locate
from maskery.checkpoint.model import Model
from maskery.errors import ArgumentError, UnknownName
from maskery.tasks.framing.frame import longest_row
from maskery.train import machine
from maskery.vectors.folder import USUAL, is_encoder, read_encoder
from maskery.vectors.model import VectorModel
from maskery.vectors.settings import POOLINGS, VectorsConfig

Say = Callable[[str], None]


def opened(
    path: str | os.PathLike[str] | Model | VectorModel,
    pool: str | Sequence[str] | None,
    length: int | None,
    device: str | torch.device | None,
    allow_pickle: bool,
    say: Say,
) -> VectorModel:
    """Ready to encode; a model that is given stays where it is, unless a device is said."""
    names = None if pool is None else (pool,) if isinstance(pool, str) else tuple(pool)
    for name in names or ():
        if name not in POOLINGS:
            raise UnknownName("pooling", str(name), POOLINGS)
    if isinstance(path, VectorModel):
        made = path
    elif isinstance(path, Model):
        made = _pooled(path, "Model", pool, say)
    else:
        form = "a Model, or the path of a model or encoder folder"
        made = _read(arguments.path("path", path, form), names, allow_pickle, say)
    changes: dict[str, Any] = {}
    if names is not None and names != made.config.pool:
        changes["pool"] = names
        if "attention" in names and made.pooling.attention is None:
            say("the folder holds no attention: until one is trained, it is the mean")
    if length is not None:
        changes["length"] = arguments.count("length", length)
    if changes:
        made = made.changed(_changed(made.config, changes))
    if device is not None or not isinstance(path, VectorModel | Model):
        made.to(_device(device))
    return made.eval()


def _read(path: Path, pool: tuple[str, ...] | None, allow_pickle: bool, say: Say) -> VectorModel:
    folder = path if is_encoder(path) else locate(path)[0]
    if is_encoder(folder):
        made = read_encoder(folder, allow_pickle=allow_pickle)
        if made.model.note:
            say(f"{path}: {made.model.note}")
        if pool not in (None, made.config.pool):
            say(f"{path} pools {_listed(made.config.pool)}; {_listed(pool or ())} is taken, as asked for")
        return made
    model = load(path, allow_pickle=allow_pickle)
    if model.note:
        say(f"{path}: {model.note}")
    return _pooled(model, str(path), pool, say)


def _pooled(model: Model, name: str, pool: str | Sequence[str] | None, say: Say) -> VectorModel:
    """A model that says nothing of vectors: pooled by the mean, and a note says so unless a pooling is given."""
    most = longest_row(model)
    length = USUAL if most is None else min(USUAL, most)
    if pool is None:
        say(f"{name} does not say how slots are pooled: the mean over them is taken, of at most {length} slots")
    return VectorModel(model, VectorsConfig(pool=("mean",), length=length))


def _listed(pool: Sequence[str]) -> str:
    return " and ".join(pool)


def _device(asked: str | torch.device | None) -> torch.device:
    if asked is None:
        return machine.device()
    try:
        found = torch.device(asked)
        torch.empty(1, device=found)
    except (RuntimeError, AssertionError) as error:
        cause = str(error).partition("\n")[0]
        raise ArgumentError(f"the device {asked} cannot be used: {cause}", repair="device=cpu") from None
    return found


def _changed(config: VectorsConfig, changes: dict[str, Any]) -> VectorsConfig:
    try:
        return VectorsConfig(**{**config.plain(), **changes})
    except ValidationError as error:
        first = error.errors()[0]
        raise ArgumentError(
            f"{'.'.join(map(str, first['loc']))}: {first['msg']}", repair="a pooling at least, and 2 slots"
        ) from None
