"""A run's folder: recipe.toml, metrics.jsonl, state.json, checkpoints/step-N/, and at the end the model at the top.

A checkpoint is a whole Hugging Face folder plus `optimizer.safetensors`, `memory.safetensors` where lanes remember, and
`state.json`. It appears by one rename, so what is there is whole; a manifest with checksums shows later damage.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from maskery import files
from maskery.checkpoint.folder import beside, write_model
from maskery.checkpoint.locate import GENERATOR, saved_steps, write_manifest
from maskery.checkpoint.model import Model
from maskery.checkpoint.tensors import read_json, read_safetensors, write_safetensors
from maskery.errors import CheckpointError
from maskery.model.config import Shape
from maskery.model.transformer import Network
from maskery.recipes.recipe import Recipe, recipe
from maskery.system import System
from maskery.text.tokenizer import Tokenizer
from maskery.train.lanes import require_fit
from maskery.train.optimizers import Optimizer

OPTIMIZER = "optimizer.safetensors"
MEMORY = "memory.safetensors"
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
        state = read_json(self.path / STATE)
        for key, form in {"corpus": str, "step": int}.items():
            if not isinstance(state.get(key), form):
                raise CheckpointError(
                    f"{key} is missing or no {form.__name__}: this is not what a run writes",
                    where=self.path / STATE,
                    repair="put the file back as it was, or start anew with another --out",
                )
        return state

    @property
    def begun(self) -> bool:
        """Whether the files that come first are there."""
        return (self.path / "recipe.toml").is_file() and (self.path / STATE).is_file()

    def create(self, resolved: Recipe, state: dict[str, Any]) -> None:
        """State first: a folder with a recipe and no state is somebody's own, not a run that was just begun."""
        with files.writing(self.path):
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
        self,
        system: System,
        moments: dict[str, Tensor],
        tokenizer: Tokenizer,
        state: dict[str, Any],
        keep: int,
        memory: Mapping[str, Tensor] | None = None,
    ) -> Path:
        """Write checkpoints/step-N, then delete the oldest beyond `keep`; `memory` is what the lanes remember."""
        folder = self.path / "checkpoints" / f"step-{state['step']}"
        with files.new_folder(folder) as partial:
            heads = system.heads_of(system.network)
            saved = write_model(partial, system.network, heads, tokenizer, generator=beside(system), rows=system.rows)
            write_safetensors(partial / OPTIMIZER, moments)
            if memory:
                write_safetensors(partial / MEMORY, dict(memory))
            files.write_json(partial / STATE, state)
            write_manifest(partial, [*saved.files, OPTIMIZER, *([MEMORY] if memory else []), STATE])
        for step, old in self.checkpoints()[:-keep]:
            if step < state["step"]:
                files.remove_folder(old)
        return folder

    def restore(self, folder: Path, system: System, optimizer: Optimizer) -> dict[str, Any]:
        """Put a checkpoint's weights and moments into the given objects; its state is returned."""
        from maskery.checkpoint.load import load

        model = load(folder)
        _fill(system, system.network, model, folder)
        if system.generator is not None:
            if model.generator is None:
                raise CheckpointError("has no generator", where=folder)
            _fill(system, system.generator, model.generator, folder / GENERATOR)
        optimizer.restore(_moments(folder / OPTIMIZER, optimizer))
        return read_json(folder / STATE)

    def memory(self, folder: Path, shape: Shape) -> dict[str, Tensor]:
        """What the lanes of a checkpoint remember; nothing where the network has no memory."""
        if not shape.memory:
            return {}
        found = read_safetensors(folder / MEMORY)
        try:
            require_fit(found, shape.layers, shape.width, shape.memory)
        except CheckpointError as error:
            raise CheckpointError(error.cause, where=folder / MEMORY, repair=error.repair) from None
        return found

    # -- metrics

    @property
    def metrics_file(self) -> Path:
        return self.path / "metrics.jsonl"

    def metrics(self) -> Iterator[dict[str, Any]]:
        """The lines written so far; one that a crash cut short, or that something damaged, is left out."""
        return (read for _, read in self._read_metrics() if read is not None)

    def cut_metrics(self, step: int) -> int:
        """Forget the lines after a checkpoint, which resuming will write again. Returned is how many whole lines were
        damaged and are gone; the last one may be cut short by any crash, and does not count."""
        found = list(self._read_metrics())
        kept = [json.dumps(read) + "\n" for _, read in found if read is not None and read["step"] <= step]
        files.write_text(self.metrics_file, "".join(kept))
        return sum(read is None and line.endswith(b"\n") for line, read in found)

    def _read_metrics(self) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
        """Each line and what it says, None where that cannot be read."""
        if not self.metrics_file.is_file():
            return
        with open(self.metrics_file, "rb") as file:
            for line in file:
                try:
                    read = json.loads(line)
                except (ValueError, RecursionError):
                    read = None
                yield line, read if isinstance(read, dict) and isinstance(read.get("step"), int) else None


@torch.no_grad()
def _fill(system: System, network: Network, saved: Model, folder: Path) -> None:
    """Put saved weights into a network of a system and into the heads on it."""
    network.load_state_dict(saved.network.state_dict())
    for name, head in system.heads_of(network).items():
        if not head.state_dict():
            continue
        if name not in saved.heads:
            raise CheckpointError(f"has no head for the objective {name}", where=folder)
        head.load_state_dict(saved.heads[name].state_dict())


def _moments(path: Path, optimizer: Optimizer) -> dict[str, Tensor]:
    """The optimiser's tensors in a file, each of the size that it has here."""
    found, wanted = read_safetensors(path), optimizer.state()
    wrong = sorted(name for name, tensor in wanted.items() if name not in found or found[name].shape != tensor.shape)
    if wrong:
        raise CheckpointError(
            f"{wrong[0]} is missing, or of another size than the model's",
            where=path,
            repair="go on from an earlier checkpoint, or start anew with another --out",
        )
    return found
