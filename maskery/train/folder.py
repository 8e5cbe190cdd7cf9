"""A run's folder: recipe.toml, metrics.jsonl, state.json, checkpoints/step-N/, and at the end the model at the top.

A checkpoint is a whole Hugging Face folder plus `optimizer.safetensors` and `state.json`. It appears by one rename, so
what is there is whole; a manifest with checksums shows later damage.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from maskery import files
from maskery.checkpoint.folder import write_model
from maskery.checkpoint.locate import saved_steps, write_manifest
from maskery.checkpoint.tensors import read_json
from maskery.errors import CheckpointError
from maskery.recipes.recipe import Recipe, recipe
from maskery.system import System
from maskery.text.tokenizer import Tokenizer
from maskery.train.optimizers import Optimizer

OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"


@dataclass(frozen=True)
class RunFolder:
    path: Path

    @property
    def recipe(self) -> Recipe:
        """The resolved recipe the run was started with."""
        return recipe(str(self.path / "recipe.toml"))

    @property
    def state(self) -> dict[str, Any]:
        """The run's own facts: corpus fingerprint, whether it is finished, how far it came."""
        return read_json(self.path / STATE)

    @property
    def begun(self) -> bool:
        """Whether the files that come first are there."""
        return (self.path / "recipe.toml").is_file() and (self.path / STATE).is_file()

    def create(self, resolved: Recipe, state: dict[str, Any]) -> None:
        """State first: a folder with a recipe and no state is somebody's own, not a run that was just begun."""
        (self.path / "checkpoints").mkdir(parents=True, exist_ok=True)
        self.write_state(state)
        files.write_text(self.path / "recipe.toml", resolved.toml())

    def write_state(self, state: dict[str, Any]) -> None:
        files.write_json(self.path / STATE, state)

    # -- checkpoints

    def checkpoints(self) -> list[tuple[int, Path]]:
        """(step, folder), oldest first."""
        return [(step, self.path / "checkpoints" / f"step-{step}") for step in saved_steps(self.path)]

    def save(
        self, system: System, optimizer: Optimizer, tokenizer: Tokenizer, state: dict[str, Any], keep: int
    ) -> Path:
        """Write checkpoints/step-N, then delete the oldest beyond `keep`."""
        folder = self.path / "checkpoints" / f"step-{state['step']}"
        if folder.exists():
            files.remove_folder(folder)
        with files.new_folder(folder) as partial:
            write_model(partial, system.network, system.heads, tokenizer)
            save_file(optimizer.state(), partial / OPTIMIZER, {"format": "pt"})
            files.write_json(partial / STATE, state)
            write_manifest(partial, [path.name for path in partial.iterdir()])
        for _, old in self.checkpoints()[:-keep]:
            files.remove_folder(old)
        return folder

    def restore(self, folder: Path, system: System, optimizer: Optimizer) -> dict[str, Any]:
        """Put a checkpoint's weights and moments into the given objects; its state is returned."""
        from maskery.checkpoint.load import load

        model = load(folder)
        with torch.no_grad():
            system.network.load_state_dict(model.network.state_dict())
            for name, head in system.heads.items():
                if name not in model.heads:
                    raise CheckpointError(f"has no head for the objective {name}", where=folder)
                head.load_state_dict(model.heads[name].state_dict())
        optimizer.restore(load_file(folder / OPTIMIZER))
        return read_json(folder / STATE)

    # -- metrics

    @property
    def metrics_file(self) -> Path:
        return self.path / "metrics.jsonl"

    def metrics(self) -> Iterator[dict[str, Any]]:
        """The lines written so far; a last line cut short by a crash is left out."""
        if not self.metrics_file.is_file():
            return
        with open(self.metrics_file, encoding="utf-8") as file:
            for line in file:
                try:
                    yield json.loads(line)
                except json.JSONDecodeError:
                    return

    def cut_metrics(self, step: int) -> None:
        """Forget the lines after a checkpoint, which resuming will write again."""
        lines = [json.dumps(line) + "\n" for line in self.metrics() if line["step"] <= step]
        files.write_text(self.metrics_file, "".join(lines))
