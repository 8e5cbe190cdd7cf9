"""The classic folder: train.tsv, dev.tsv and perhaps test.tsv, in any format that is read (`splits` finds them).

What was found in train holds for the others: the task, the fields, the labels. A test file may have a header where the
others have none, and no label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from maskery.errors import EmptyTextError, TextError
from maskery.records import Records
from maskery.tasks.examples import Examples
from maskery.tasks.read.columns import Seen
from maskery.tasks.read.files import read_examples
from maskery.tasks.read.given import given_splits
from maskery.tasks.read.labels import labels_of, require_known
from maskery.tasks.read.splits import SPLITS, files_of
from maskery.tasks.settings import ColumnsConfig


def read_folder(folder: Path | Mapping[str, object], task: str | None, columns: ColumnsConfig) -> dict[str, Examples]:
    """Split -> examples, train first. Labels that train does not have are refused. Rows may be given by their split."""
    notes: dict[str, tuple[str, ...]] = {}
    if isinstance(folder, Mapping):
        given, others = given_splits(folder, SPLITS)
        files: dict[str, tuple[Path | Records, ...]] = {split: (each,) for split, each in given.items()}
        folder = Path("data")
        notes["train"] = (f"{folder}: not read: {', '.join(others)}",) if others else ()
    else:
        there_are = files_of(Path(folder))
        files = {split: each.paths for split, each in there_are.items()}
        notes = {split: each.notes for split, each in there_are.items()}
    if "train" not in files:
        there = ", ".join(sorted(path.name for path in Path(folder).iterdir())[:12]) or "nothing"
        cause = f"there is no train file in the folder; it holds {there}"
        raise TextError(
            cause, file=folder, repair="name the files train.tsv, dev.tsv and test.tsv (or .csv, .jsonl ...)"
        )
    train = _read(files["train"], task, "train", columns, Seen())
    train = replace(train, notes=(*notes.get("train", ()), *train.notes))
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
        _check_fields(train, read, files[split][0])
        if split == "dev":
            require_known(read, labels)
        found[split] = replace(read, notes=(*notes.get(split, ()), *read.notes))
    return found


def _read(
    paths: Sequence[Path | Records], task: str | None, split: str, columns: ColumnsConfig, seen: Seen
) -> Examples:
    first = read_examples(paths[0], task, split, columns, seen=seen)
    return joined([first, *(read_examples(path, first.task, split, columns, seen=seen) for path in paths[1:])])


def read_split(
    train: Examples, paths: Sequence[Path | Records], split: str, columns: ColumnsConfig, seen: Seen
) -> Examples | str:
    """The examples of files or rows beside `train`; of an empty test file a note, for nothing depends on it."""
    try:
        return _read(paths, train.task, split, columns, seen)
    except EmptyTextError as error:
        if split != "test":
            raise
        return f"{error.where}: {error.cause}: there is no test set"


def seen_in(train: Examples, labels: tuple[str, ...]) -> Seen:
    """What files that are read after `train` have to be like."""
    first = train[0].meta
    numbers = tuple(name for name, value in zip(train.meta, first, strict=True) if isinstance(value, float))
    return Seen(fields=train.fields, labels=labels, numbers=numbers)


def joined(parts: Sequence[Examples]) -> Examples:
    """The examples of several files as those of one."""
    items = tuple(each for part in parts for each in part)
    notes = tuple(note for part in parts for note in part.notes)
    return parts[0] if len(parts) == 1 else replace(parts[0], items=items, notes=notes)


def _check_fields(train: Examples, other: Examples, path: Path | Records) -> None:
    if len(other.fields) != len(train.fields):
        cause = f"texts: {', '.join(other.fields)}; train has {', '.join(train.fields)}"
        place = path.place if isinstance(path, Records) else path
        raise TextError(cause, file=place, repair="--text A,B says which columns are the texts, in all files")
