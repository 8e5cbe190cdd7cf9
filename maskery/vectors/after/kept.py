"""A fitted post-processing as one safetensors file: its arrays, and a header that says what they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from maskery import files
from maskery.errors import ArgumentError, CheckpointError

AGAIN = "the file is damaged or was made by something else; fit and save again"
_HEADER = "maskery.after"
"""All facts under one key: the order of several would vary from one writing to the next."""
_FORMAT = 1


def write(path: Path, state: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
    """The same state gives the same bytes; the file appears whole or not at all."""
    header = json.dumps({"format": _FORMAT, **facts}, sort_keys=True, ensure_ascii=False, allow_nan=False)
    plain = {name: np.ascontiguousarray(state[name]) for name in sorted(state)}
    files.write_bytes(path, save(plain, metadata={_HEADER: header}))


def read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    if not path.is_file():
        raise CheckpointError("no such file", where=path, repair="fit first, and save(path)")
    try:
        with safe_open(path, framework="np") as file:
            header = (file.metadata() or {}).get(_HEADER)
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"cannot be read: {error}", where=path, repair=AGAIN) from None
    facts = _facts(header, path)
    for name, values in state.items():
        if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
            raise CheckpointError(f"{name} holds what is no finite number", where=path, repair=AGAIN)
    return state, facts


def _facts(header: str | None, path: Path) -> dict[str, Any]:
    if header is None:
        raise CheckpointError(
            "is no fitted post-processing: its header does not say what it is", where=path, repair=AGAIN
        )
    try:
        facts = json.loads(header)
    except (ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict) or not _is_whole(facts):
        raise CheckpointError("has a header that cannot be understood", where=path, repair=AGAIN)
    if facts["format"] != _FORMAT:
        raise CheckpointError(
            f"has format {facts['format']}, this version reads {_FORMAT}", where=path, repair="update maskery"
        )
    return facts


def _is_whole(facts: Mapping[str, Any]) -> bool:
    kinds = {"format": int, "kind": str, "settings": dict, "notes": list}
    return all(isinstance(facts.get(key), kind) for key, kind in kinds.items())


def part(state: Mapping[str, NDArray[Any]], name: str, *shape: int | None) -> NDArray[np.float64]:
    """One array of a state, of the shape that is wanted (None: any length)."""
    if name not in state:
        raise ArgumentError(f"the state has no {name}", repair=AGAIN)
    found = np.asarray(state[name], dtype=np.float64)
    if len(found.shape) != len(shape) or any(b is not None and a != b for a, b in zip(found.shape, shape, strict=True)):
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ArgumentError(f"{name} has the shape {found.shape}, ({wanted}) is wanted", repair=AGAIN)
    return found
