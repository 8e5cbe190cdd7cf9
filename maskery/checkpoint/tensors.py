"""Weight files: safetensors whole or in shards, and pickled ones only on request and without running what they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from maskery import files
from maskery.errors import CheckpointError

WEIGHTS = "model.safetensors"
HEADS = "heads.safetensors"
INDEX = "model.safetensors.index.json"
PICKLE = "pytorch_model.bin"

_AGAIN = "the file is damaged or was cut short; fetch or save it again"


def read_json(path: Path) -> dict[str, Any]:
    files.require_regular(path)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise CheckpointError(f"is not JSON: {error.msg}", where=f"{path}:{error.lineno}", repair=_AGAIN) from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"cannot be read: {error}", where=path, repair=_AGAIN) from None
    if not isinstance(value, dict):
        raise CheckpointError("does not hold a JSON object", where=path, repair=_AGAIN)
    return value


def is_pickle(folder: Path) -> bool:
    """Whether the folder's weights are a pickle and nothing else."""
    return (folder / PICKLE).is_file() and not ((folder / WEIGHTS).is_file() or (folder / INDEX).is_file())


def read_weights(folder: Path, *, allow_pickle: bool) -> dict[str, Tensor]:
    """All tensors of a model folder under the names of its files."""
    if (folder / WEIGHTS).is_file():
        return read_safetensors(folder / WEIGHTS)
    if (folder / INDEX).is_file():
        return _read_shards(folder)
    if is_pickle(folder):
        if not allow_pickle:
            raise CheckpointError(
                f"the weights are a pickle ({PICKLE}), a format that can hold code",
                where=folder,
                repair="--allow-pickle (in Python allow_pickle=True) reads its tensors without running any code in it",
            )
        return _read_pickle(folder / PICKLE)
    raise CheckpointError(
        f"no weights: neither {WEIGHTS}, {INDEX} nor {PICKLE}", where=folder, repair="fetch or save the model again"
    )


def read_safetensors(path: Path, wanted: set[str] | None = None) -> dict[str, Tensor]:
    """Every tensor of the file; with `wanted`, what an index says of it, these and no others."""
    try:
        with safe_open(path, framework="pt") as file:
            names = set(file.keys())
            absent, beyond = sorted((wanted or names) - names), sorted(names - (wanted or names))
            if absent:
                raise CheckpointError(
                    f"has no tensor {absent[0]}, which the index says it has", where=path, repair=_AGAIN
                )
            if beyond:
                more = f" and {len(beyond) - 1} more" if len(beyond) > 1 else ""
                raise CheckpointError(
                    f"holds {beyond[0]}{more}, which the index leaves out",
                    where=path,
                    repair=f"fetch {INDEX} and the shards again, all of one release",
                )
            return {name: file.get_tensor(name) for name in sorted(wanted or names)}
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"cannot be read: {error}", where=path, repair=_AGAIN) from None


def _read_shards(folder: Path) -> dict[str, Tensor]:
    index = folder / INDEX
    shards = read_json(index).get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise CheckpointError("has no weight_map", where=index, repair=_AGAIN)
    by_file: dict[str, set[str]] = {}
    for name, file in shards.items():
        if not isinstance(file, str) or Path(file).name != file or file in (".", ".."):
            raise CheckpointError(f"names a file outside the folder: {file!r}", where=index, repair=_AGAIN)
        by_file.setdefault(file, set()).add(name)
    tensors: dict[str, Tensor] = {}
    for file, names in sorted(by_file.items()):
        if not (folder / file).is_file():
            raise CheckpointError(f"shard {file} is missing", where=folder, repair=f"fetch {file} into the folder")
        tensors |= read_safetensors(folder / file, names)
    return tensors


def _read_pickle(path: Path) -> dict[str, Tensor]:
    try:
        value = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # the reader raises many kinds, and its own words tell how to switch the protection off
        raise CheckpointError(
            "holds something other than tensors, or is damaged; nothing in it was run",
            where=path,
            repair=f"get the model as {WEIGHTS}",
        ) from None
    if not isinstance(value, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in value.items()
    ):
        raise CheckpointError("is not a table of named tensors", where=path, repair=f"get the model as {WEIGHTS}")
    for name, tensor in value.items():
        kind = "has a shape and no numbers (meta)" if tensor.is_meta else "is sparse"
        if tensor.is_nested:
            kind = "is nested: its rows are of several lengths"
        if tensor.is_meta or tensor.is_nested or tensor.layout != torch.strided:
            raise CheckpointError(f"tensor {name} {kind}", where=path, repair="save it as a dense tensor with numbers")
    return dict(value)


def require_finite(state: Mapping[str, Tensor], where: Path) -> None:
    for name, tensor in state.items():
        # A sum is not-a-number as soon as one element is, and costs no array; only then is each element looked at.
        if not bool(torch.isfinite(tensor.sum())) and not bool(torch.isfinite(tensor).all()):
            count = int((~torch.isfinite(tensor)).sum())
            raise CheckpointError(
                f"{count} of the {tensor.numel()} weights of {name} are not finite numbers",
                where=where,
                repair="the model diverged while it was trained: use an earlier checkpoint",
            )


def write_safetensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """The same tensors give the same bytes: with a second metadata key the order in the header would vary."""
    plain = {name: tensors[name].detach().cpu().contiguous() for name in sorted(tensors)}
    with files.writing(path):
        with files.written_by_library(path):
            save_file(plain, path, metadata={"format": "pt"})
        files.sync(path)
