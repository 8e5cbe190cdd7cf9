"""Which files of a folder of Google's belong together: a checkpoint, its config and its vocabulary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from maskery.checkpoint.tensorflow.bundle import INDEX, with_ending
from maskery.checkpoint.tensorflow.table import is_table
from maskery.errors import CheckpointError

VOCABULARY = "vocab.txt"
_WANTED = "give a folder with bert_model.ckpt.index and its data files, or one of Hugging Face with config.json"


@dataclass(frozen=True)
class Source:
    prefix: Path
    """The checkpoint's path without .index."""
    config: Path | None
    vocabulary: Path | None
    sentencepiece: Path | None
    """A vocabulary of another kind, where there is no vocab.txt."""


def find_source(path: Path, config: Path | None = None, vocabulary: Path | None = None) -> Source:
    """The files that `path`, a folder or one checkpoint in it, stands for; what is given is not looked for."""
    for given in (config, vocabulary):
        if given is not None and not given.is_file():
            raise CheckpointError("no such file", where=given, repair="give the path of a file that is there")
    prefix = _checkpoint(path)
    folder = prefix.parent
    if config is None:
        config = _config(folder)
    if vocabulary is None:
        vocabulary = _only(folder.glob(VOCABULARY)) or _only(folder.glob("*vocab*.txt"))
    model = None if vocabulary else _only(folder.glob("*.model"))
    return Source(prefix, config, vocabulary, model)


def _checkpoint(path: Path) -> Path:
    if path.is_dir():
        return _in_folder(path)
    prefix = path.with_name(path.name.removesuffix(INDEX))
    if with_ending(prefix, INDEX).is_file():
        return prefix
    if not path.is_file():
        raise CheckpointError("no such folder or checkpoint", where=path, repair=_WANTED)
    if path.suffix in (".zip", ".gz", ".tgz", ".tar"):
        raise CheckpointError("is an archive", where=path, repair="unpack it and give the folder")
    _refuse_first_format([path])
    if any(path.parent.glob(f"*{INDEX}")):
        raise CheckpointError("is no checkpoint", where=path, repair=f"give the folder: {path.parent}")
    raise CheckpointError("is no checkpoint, and none is beside it", where=path, repair=_files_of(path))


def _files_of(path: Path) -> str:
    """What a checkpoint of this name would be made of."""
    name = path.name if path.suffix == ".ckpt" else "bert_model.ckpt"
    return f"fetch {name}{INDEX} and {name}.data-00000-of-00001 into {path.parent}: these two are a checkpoint"


def _in_folder(folder: Path) -> Path:
    found = sorted(each.with_name(each.name.removesuffix(INDEX)) for each in folder.glob(f"*{INDEX}"))
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(each.name for each in found)
        raise CheckpointError(
            f"{len(found)} checkpoints are here: {names}", where=folder, repair=f"name one: maskery import {found[-1]}"
        )
    data = sorted(folder.glob("*.data-*-of-*"))
    if data:
        index = data[0].name.partition(".data-")[0] + INDEX
        raise CheckpointError(
            f"{data[0].name} is here, but not {index}, which says what is in it",
            where=folder,
            repair=f"fetch {index} into the folder",
        )
    _refuse_first_format(sorted(each for each in folder.iterdir() if each.is_file()))
    alone = sorted(each for each in folder.glob("*.ckpt") if each.is_file())
    if alone:
        raise CheckpointError(f"{alone[0].name} alone is no checkpoint", where=folder, repair=_files_of(alone[0]))
    inside = sorted({each.parent for each in folder.glob(f"*/*{INDEX}")})
    if inside:
        raise CheckpointError(
            "no checkpoint is here, but in a folder inside", where=folder, repair=f"maskery import {inside[0]}"
        )
    raise CheckpointError(
        "neither a TensorFlow checkpoint (*.index) nor a Hugging Face model (config.json) is here",
        where=folder,
        repair=_WANTED,
    )


def _refuse_first_format(paths: Iterable[Path]) -> None:
    """Before TensorFlow 1.0 a checkpoint was one file: a table that holds the tensors themselves."""
    for path in paths:
        if is_table(path):
            raise CheckpointError(
                "is a checkpoint of TensorFlow's first format (one file, without .index)",
                where=path,
                repair="load it in TensorFlow and save it with tf.compat.v1.train.Saver, which writes the second",
            )


def _config(folder: Path) -> Path | None:
    """bert_config.json, albert_config.json and the like. A generator's own is no model's where there are others."""
    found = sorted(folder.glob("*config*.json"))
    kept = [each for each in found if "generator" not in each.name] or found
    if len(kept) > 1:
        names = ", ".join(each.name for each in kept)
        raise CheckpointError(f"several configs are here: {names}", where=folder, repair=f"--config {kept[0]}")
    return kept[0] if kept else None


def _only(paths: Iterable[Path]) -> Path | None:
    found = sorted(paths)
    return found[0] if len(found) == 1 else None
