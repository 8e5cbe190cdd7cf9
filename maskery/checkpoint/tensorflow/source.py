"""Which files of a folder of TensorFlow's belong together: a checkpoint, its config and its vocabulary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from maskery.checkpoint.tensorflow.bundle import INDEX, with_ending
from maskery.checkpoint.tensorflow.table import is_table
from maskery.errors import CheckpointError

VOCABULARY = "vocab.txt"
SENTENCEPIECE = ".model"
"""How the file of a SentencePiece tokenizer ends."""
_WANTED = "give a folder with NAME.ckpt.index and its data files, or one of Hugging Face with config.json"


@dataclass(frozen=True)
class Source:
    prefix: Path
    """The checkpoint's path without .index."""
    config: Path | None
    given: Path | None
    """The vocabulary that the caller names."""

    @property
    def vocabulary(self) -> Path:
        """vocab.txt, or a SentencePiece model. Looked for when it is wanted: what is wrong with the checkpoint itself
        comes first."""
        return _vocabulary(self.prefix.parent) if self.given is None else self.given


def find_source(path: Path, config: Path | None = None, vocabulary: Path | None = None) -> Source:
    """The files that `path`, a folder or one checkpoint in it, stands for; what is given is not looked for."""
    for given in (config, vocabulary):
        if given is not None and not given.is_file():
            raise CheckpointError("no such file", where=given, repair="give the path of a file that is there")
    prefix = _checkpoint(path)
    folder = prefix.parent
    if config is None:
        config = _config(folder)
    return Source(prefix, config, vocabulary)


def _vocabulary(folder: Path) -> Path:
    """vocab.txt; or the only file that is named as a vocabulary, such as vocab_chinese.txt, or is of SentencePiece."""
    if (folder / VOCABULARY).is_file():
        return folder / VOCABULARY
    found = sorted(folder.glob("*vocab*.txt")) or sorted(folder.glob(f"*{SENTENCEPIECE}"))
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(each.name for each in found)
        raise CheckpointError(f"several vocabularies are here: {names}", where=folder, repair=f"--vocab {found[0]}")
    raise CheckpointError(
        f"no {VOCABULARY} here, the pieces that the checkpoint's numbers stand for, nor a SentencePiece model",
        where=folder,
        repair=f"put {VOCABULARY} (or spiece.model) beside the checkpoint, or give its path: --vocab FILE",
    )


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
