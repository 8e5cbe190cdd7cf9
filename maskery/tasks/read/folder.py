"""The classic folder: train.tsv, dev.tsv and perhaps test.tsv, in any format that is read.

What was found in train holds for the others: the task, the fields, the labels. A test file may have a header where the
others have none, and no label.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from maskery.errors import EmptyTextError, TextError
from maskery.tasks.examples import Examples
from maskery.tasks.read.columns import Seen
from maskery.tasks.read.files import read_examples
from maskery.tasks.read.labels import labels_of, require_known
from maskery.tasks.read.sources import format_of
from maskery.tasks.settings import ColumnsConfig

SPLITS = {"train": "train", "dev": "dev", "valid": "dev", "val": "dev", "validation": "dev", "test": "test"}
"""The beginning of a file's name -> the split it holds."""


def read_folder(folder: Path, task: str | None, columns: ColumnsConfig) -> dict[str, Examples]:
    """Split -> examples, train first. Labels that train does not have are refused."""
    files = files_of(Path(folder))
    if "train" not in files:
        there = ", ".join(sorted(path.name for path in Path(folder).iterdir())[:12]) or "nothing"
        cause = f"there is no train file in the folder; it holds {there}"
        raise TextError(
            cause, file=folder, repair="name the files train.tsv, dev.tsv and test.tsv (or .csv, .jsonl ...)"
        )
    train = read_examples(files["train"], task, "train", columns)
    if "dev" not in files:
        train = replace(train, notes=(*train.notes, f"{folder}: there is no dev file (dev.tsv, valid.tsv or val.tsv)"))
    labels = labels_of(train, train.task)
    found, seen = {"train": train}, seen_in(train, labels)
    for split in ("dev", "test"):
        if split not in files:
            continue
        read = read_split(train, files[split], split, columns, seen)
        if isinstance(read, str):
            found["train"] = replace(found["train"], notes=(*found["train"].notes, read))
            continue
        found[split] = read
        _check_fields(train, read, files[split])
        if split == "dev":
            require_known(read, labels)
    return found


def read_split(train: Examples, path: Path, split: str, columns: ColumnsConfig, seen: Seen) -> Examples | str:
    """The examples of a file beside `train`; of an empty test file a note, for nothing depends on it."""
    try:
        return read_examples(path, train.task, split, columns, seen=seen)
    except EmptyTextError as error:
        if split != "test":
            raise
        return f"{error.where}: {error.cause}: there is no test set"


def seen_in(train: Examples, labels: tuple[str, ...]) -> Seen:
    """What files that are read after `train` have to be like."""
    first = train[0].meta
    numbers = tuple(name for name, value in zip(train.meta, first, strict=True) if isinstance(value, float))
    return Seen(fields=train.fields, labels=labels, numbers=numbers)


def files_of(folder: Path) -> dict[str, Path]:
    """Split -> its file; two files for one split are refused."""
    if folder.is_file():
        raise TextError("is a file, and not a folder", file=folder, repair=f"--train {folder}")
    if not folder.is_dir():
        raise TextError("there is no such folder", file=folder, repair="a folder with train.tsv and dev.tsv")
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        split = SPLITS.get(path.name.partition(".")[0].lower())
        if split is None or format_of(path) is None or not path.is_file():
            continue
        if split in files:
            cause = f"two files could be {split}: {files[split].name} and {path.name}"
            raise TextError(cause, file=folder, repair="leave one in the folder")
        files[split] = path
    return files


def _check_fields(train: Examples, other: Examples, path: Path) -> None:
    if len(other.fields) != len(train.fields):
        cause = f"texts: {', '.join(other.fields)}; train has {', '.join(train.fields)}"
        raise TextError(cause, file=path, repair="--text A,B says which columns are the texts, in all files")
