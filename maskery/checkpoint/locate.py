"""Model folders and run folders on disk: which one is meant, whether it is whole, what its config says."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from maskery import files, hub
from maskery.checkpoint.families import FAMILIES, OWN
from maskery.checkpoint.tensors import read_json
from maskery.errors import CheckpointError
from maskery.rows.config import SOURCES, RowsConfig
from maskery.text import byte_pairs, piece_files

CONFIG = "config.json"
TENSORLESS = "maskery_heads"
"""Key of config.json: heads that have no tensor of their own and that the class does not tell of."""
GENERATOR = "generator"
"""The folder of a second network, inside that of its model."""
POOLER = "has_pooler"
"""A key of config.json, ours: false where a class that could have a pooler has none. Hugging Face's own word for it,
add_pooling_layer, would be taken from whoever opens the folder, and would not reach the class."""
ROWS = "maskery_rows"
"""A key of config.json: the kind of rows, where nothing else tells that a prompt is a source and not a beginning."""
RECIPE = "recipe.toml"
CHECKPOINTS = "checkpoints"
_INDEX = ".index"
"""How the file is named that tells what a TensorFlow checkpoint holds."""
_FORMAT = 1
_STATE = "state.json"
"""A run's own facts."""


def holds_tensorflow(path: Path) -> bool:
    """Whether `path` is a folder with a TensorFlow checkpoint and no model of another kind, or such a checkpoint."""
    if path.is_dir():
        return not (path / CONFIG).is_file() and not is_run(path) and any(path.glob(f"*{_INDEX}"))
    return (path.suffix == _INDEX and path.is_file()) or path.with_name(path.name + _INDEX).is_file()


def locate(path: Path) -> tuple[Path, str]:
    """The model folder that `path` stands for, and what there is to say about the choice.

    A run folder stands for its final model, or while there is none for its newest checkpoint. The name of a published
    model stands for its folder in the local Hugging Face cache, unless there is a folder of that name here. Files of
    TensorFlow stand for themselves.
    """
    if holds_tensorflow(path):
        return path, ""
    if not path.exists():
        cached = hub.in_cache(str(path))
        if cached is None:
            raise _nowhere(path)
        return cached, f"{path}: from the Hugging Face cache, {cached}"
    if not path.is_dir():
        raise CheckpointError("is a file", where=path, repair=f"give the folder: {path.parent}")
    if (path / CONFIG).is_file() and (not is_run(path) or (path / files.MANIFEST).is_file() or _is_finished(path)):
        return path, ""
    if not is_run(path):
        raise CheckpointError(
            "no config.json here, so this is no model folder",
            where=path,
            repair="give a folder with config.json and model.safetensors, or a run folder",
        )
    saved = saved_steps(path)
    if not saved:
        raise CheckpointError(
            "this run has not saved a model yet", where=path, repair="let it go on: maskery pretrain ... --resume"
        )
    newest = path / CHECKPOINTS / f"step-{saved[-1]}"
    return newest, f"the run is not finished: this is its newest checkpoint, {CHECKPOINTS}/{newest.name}"


def _nowhere(path: Path) -> CheckpointError:
    folder = "give a folder with config.json and model.safetensors, or a run folder"
    if not hub.is_name(path):
        return CheckpointError("no such folder", where=path, repair=folder)
    near = hub.near(str(path))
    return CheckpointError(
        f"no such folder, and no model of this name in the Hugging Face cache ({hub.cache()})",
        where=path,
        repair=f"{folder}; weights that others published: {hub.download_command(near[0] if near else str(path))} "
        "(docs/weights.md lists some that open)",
    )


def is_run(path: Path) -> bool:
    return (path / RECIPE).is_file() or (path / CHECKPOINTS).is_dir()


def _is_finished(run: Path) -> bool:
    """Whether a run says that its model stands at the top. Its manifest says so, too, but is removed by who changes the
    model on purpose."""
    state = run / _STATE
    return state.is_file() and read_json(state).get("finished") is True


def saved_steps(run: Path) -> list[int]:
    """The steps of a run's complete checkpoints, ascending."""
    steps = [
        int(number)
        for folder in (run / CHECKPOINTS).glob("step-*")
        if (number := folder.name.removeprefix("step-")).isdecimal() and (folder / files.MANIFEST).is_file()
    ]
    return sorted(steps)


def write_manifest(folder: Path, names: Iterable[str]) -> None:
    """Sizes and checksums of the named files; written last, because it says that all of them are whole."""
    files.write_json(folder / files.MANIFEST, {"format": _FORMAT, "files": files.describe(folder, names)})


def verify(folder: Path) -> None:
    """Compare every file with the manifest, where there is one."""
    manifest = folder / files.MANIFEST
    if not manifest.is_file():
        return
    listed = read_json(manifest).get("files")
    if listed is None or not files.is_described(listed):
        raise CheckpointError(
            "is not a manifest", where=manifest, repair="remove it if you trust the other files of the folder"
        )
    found = files.damage(folder, listed, full=True)
    if found:
        raise CheckpointError(
            "; ".join(found),
            where=folder,
            repair=f"fetch or save the folder again; if you changed it on purpose, remove {manifest}",
        )


def read_config(folder: Path) -> dict[str, Any]:
    """config.json, refused if it names code or a type that we do not know."""
    path = folder / CONFIG
    config = read_json(path)
    require_known(config, path)
    return config


def require_known(config: dict[str, Any], path: Path) -> None:
    if config.get("auto_map"):
        raise CheckpointError(
            f"auto_map names code to be run, which alone says what model_type {config.get('model_type')!r} computes; "
            "maskery runs no code that a folder names",
            where=path,
            repair=f"use a model of a type we know: {', '.join(supported())}",
        )
    kind = config.get("model_type")
    if kind not in supported():
        told = "no model_type" if kind is None else f"model_type {kind!r} is not supported"
        raise CheckpointError(told, where=path, repair=f"supported: {', '.join(supported())}")


def supported() -> list[str]:
    return [*FAMILIES, OWN]


def placed(error: CheckpointError, where: Path) -> CheckpointError:
    """The same error with the place that the code which found it could not know."""
    return error if error.where else CheckpointError(error.cause, where=where, repair=error.repair)


def rows_of(folder: Path) -> RowsConfig | None:
    """The rows that a run trains with, if this is its final model or one of its checkpoints; or as config.json says."""
    run = folder.resolve().parent.parent if folder.resolve().parent.name == CHECKPOINTS else folder
    try:
        files.require_regular(run / RECIPE)
        return RowsConfig.model_validate(tomllib.loads((run / RECIPE).read_text(encoding="utf-8")).get("rows", {}))
    except (OSError, ValueError):  # none here, or one that another version wrote
        pass
    kind = read_json(folder / CONFIG).get(ROWS)
    return RowsConfig(kind=kind) if kind == SOURCES else None


def has_tokenizer(folder: Path) -> bool:
    written = any((folder / name).is_file() for name in ("tokenizer.json", "vocab.txt"))
    return written or byte_pairs.is_here(folder) or piece_files.in_folder(folder) is not None
