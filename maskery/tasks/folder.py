"""A fine-tuning's folder: task.toml, metrics.jsonl, state.json, checkpoints/step-N/, and at the end the best model.

A checkpoint holds the weights as they are, the best so far, and the optimiser's averages: a run goes on bitwise from
it. It appears by one rename, so what is there is whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from maskery import files
from maskery.checkpoint.locate import RECIPE, saved_steps, verify, write_manifest
from maskery.checkpoint.tensors import read_json, read_safetensors, write_safetensors
from maskery.errors import CheckpointError
from maskery.tasks.examples import Examples
from maskery.train.folder import OPTIMIZER, STATE, RunFolder
from maskery.train.optimizers import Optimizer

WEIGHTS, BEST = "weights.safetensors", "best.safetensors"


def weights_of(system: nn.Module, prefix: str = "") -> dict[str, Tensor]:
    """A copy of all parameters by name, with `prefix` before it; those that are shared once."""
    return {prefix + name: each.detach().clone() for name, each in system.named_parameters()}


@torch.no_grad()
def put_weights(system: nn.Module, weights: Mapping[str, Tensor], where: Path | None = None) -> None:
    wanted = dict(system.named_parameters())
    wrong = sorted(n for n in {*wanted, *weights} if n not in wanted or n not in weights)
    wrong += sorted(n for n in wanted if n in weights and weights[n].shape != wanted[n].shape)
    if wrong:
        raise CheckpointError(
            f"{wrong[0]} is missing, or of another size than the model's",
            where=where,
            repair="go on with the same model and task, or start anew with another --out",
        )
    for name, each in wanted.items():
        each.copy_(weights[name])


def fingerprint(*splits: Examples | None) -> str:
    """Of all texts and labels."""
    found = sha256()
    for split in splits:
        found.update(repr(None if split is None else (split.task, split.fields, split.meta)).encode())
        for each in split or ():
            said = sorted(each.label) if isinstance(each.label, frozenset) else each.label
            found.update(repr((each.texts, said, each.meta, each.choices, each.spans, each.answers)).encode())
    return found.hexdigest()


FINETUNE, VECTORS = "finetune", "vectors train"
"""Commands whose runs have such a folder."""


@dataclass(frozen=True, kw_only=True)
class Origins:
    """What a run was started from, as state.json keeps it: nothing else of the same shape may take its place."""

    kind: str
    """The command."""
    data: str
    """The fingerprint of all examples."""
    base: str
    """The fingerprint of the model before training."""


@dataclass(frozen=True)
class TaskFolder:
    path: Path

    @property
    def run(self) -> RunFolder:
        """Its metrics are those of any run."""
        return RunFolder(self.path)

    @property
    def begun(self) -> bool:
        return (self.path / STATE).is_file()

    @property
    def state(self) -> dict[str, Any]:
        return read_json(self.path / STATE)

    def write_state(self, state: Mapping[str, Any]) -> None:
        files.write_json(self.path / STATE, dict(state))

    def checkpoints(self) -> list[tuple[int, Path]]:
        return [(step, self.path / "checkpoints" / f"step-{step}") for step in saved_steps(self.path)]

    def save(
        self, system: nn.Module, best: Mapping[str, Tensor], moments: dict[str, Tensor], state: dict[str, Any]
    ) -> None:
        """Write checkpoints/step-N; the one before it goes."""
        folder = self.path / "checkpoints" / f"step-{state['step']}"
        with files.new_folder(folder) as partial:
            write_safetensors(partial / WEIGHTS, weights_of(system))
            if best:
                write_safetensors(partial / BEST, dict(best))
            write_safetensors(partial / OPTIMIZER, moments)
            files.write_json(partial / STATE, state)
            write_manifest(partial, [WEIGHTS, *([BEST] if best else []), OPTIMIZER, STATE])
        for step, old in self.checkpoints():
            if step < state["step"]:
                files.remove_folder(old)

    def restore(
        self, folder: Path, system: nn.Module, optimizer: Optimizer
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Put a checkpoint into the given objects; its state and the best weights so far."""
        verify(folder)
        put_weights(system, read_safetensors(folder / WEIGHTS), folder / WEIGHTS)
        optimizer.restore(read_safetensors(folder / OPTIMIZER))
        best = read_safetensors(folder / BEST) if (folder / BEST).is_file() else {}
        return read_json(folder / STATE), best


def require_kind(folder: TaskFolder, kind: str) -> None:
    """Refuse to go on with what another command wrote, or with no run at all."""
    found = folder.state.get("kind") if folder.begun else None
    if found != kind:
        other = "pretrain" if (folder.path / RECIPE).is_file() else found
        raise CheckpointError(
            f"is a run of maskery {other}, not of maskery {kind}" if other else f"is no run of maskery {kind}",
            where=folder.path,
            repair="choose another --out, and no --resume",
        )
