"""The files of a model as run_classifier.py is given them: a checkpoint, its config and its vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from maskery.errors import CheckpointError, InputError

CHECKPOINT, CONFIG, VOCABULARY = "init_checkpoint", "bert_config_file", "vocab_file"
NAMES = (CONFIG, CHECKPOINT, VOCABULARY)


def model_of_files(given: Mapping[str, str]) -> str:
    """The folder or checkpoint that the files stand for, as MODEL is given to a command. Files that do not belong to it
    are refused."""
    from maskery.checkpoint.importing import is_hugging_face
    from maskery.checkpoint.locate import holds_tensorflow

    first = Path(given.get(CHECKPOINT) or next(iter(given.values())))
    folder = first if first.is_dir() else first.parent
    if holds_tensorflow(first):
        _require_its_own(first, given)
        return str(first)
    if is_hugging_face(folder):
        for name in given:
            _require(Path(given[name]).resolve().is_relative_to(folder.resolve()), name, given, folder)
        return str(folder)
    if CHECKPOINT not in given and holds_tensorflow(folder):
        _require_its_own(folder, given)
        return str(folder)
    raise InputError(
        f"there is no checkpoint {first}" if CHECKPOINT in given else f"there is no checkpoint beside {first}",
        where=folder,
        repair=f"--{CHECKPOINT}=FOLDER/bert_model.ckpt, of which FOLDER/bert_model.ckpt.index is a part; or give MODEL",
    )


def _require_its_own(source: Path, given: Mapping[str, str]) -> None:
    """The config and the vocabulary are those that lie beside a checkpoint of TensorFlow."""
    from maskery.checkpoint.tensorflow.source import find_source

    paths = {name: Path(given[name]) for name in (CONFIG, VOCABULARY) if name in given}
    for name, path in paths.items():
        if not path.is_file():
            raise InputError("there is no such file", where=path, repair=f"--{name}=FILE of the model")
    try:
        found = find_source(source)
        own = {CONFIG: found.config, VOCABULARY: found.vocabulary}
    except CheckpointError:
        own = {}
    for name, path in paths.items():
        beside = own.get(name)
        _require(beside is not None and path.resolve() == beside.resolve(), name, given, source)


def _require(same: bool, name: str, given: Mapping[str, str], source: Path) -> None:
    if same:
        return
    flags = {CONFIG: "--config", VOCABULARY: "--vocab"}
    more = " ".join(f"{flag} {given[key]}" for key, flag in flags.items() if key in given)
    raise InputError(
        f"--{name} {given[name]} is not the file that lies beside {source}",
        repair=f"maskery import {source} {more} --out FOLDER, then maskery finetune FOLDER ...",
    )
