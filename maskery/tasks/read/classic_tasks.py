"""The folders of the tasks that run_classifier.py knows by name, as they were published.

Most are tables whose columns are found by their names: there only the kind of task is told, and which files are meant.
CoLA has no header, and XNLI's training and development files have neither columns nor labels in common: they are read
by the classes here, as a --processor is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

KINDS = {
    "cola": "classify", "sst-2": "classify", "mrpc": "pair", "qqp": "pair", "sts-b": "regress", "mnli": "pair",
    "qnli": "pair", "rte": "pair", "xnli": "pair",
}  # fmt: skip
"""Name -> kind of task."""
_ALIASES = {"sst2": "sst-2", "stsb": "sts-b", "sts": "sts-b"}
_FILES = {"mnli": {"train": "train.tsv", "dev": "dev_matched.tsv", "test": "test_matched.tsv"}}
"""Files that are not called by their splits alone."""


@dataclass(frozen=True)
class Reading:
    """How the folder of a task is read: the options of `maskery finetune` that say it."""

    options: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())


def reading_of(name: str, folder: Path) -> Reading | None:
    """How the task called `name` is read from `folder`; None: no such task is known."""
    known = _ALIASES.get(name.lower(), name.lower())
    if known not in KINDS:
        return None
    task = ("--task", KINDS[known])
    if known == "cola" and _is_cola(folder / "train.tsv") and _is_cola(folder / "dev.tsv"):
        return Reading((*task, "--data", str(folder), "--processor", f"{__file__}:Cola"))
    train = _xnli_train(folder) if known == "xnli" else None
    if train is not None and (folder / "xnli.dev.tsv").is_file():
        note = f"train is {train.name}; of dev and test only the rows of language {_language(train)} are read"
        return Reading((*task, "--data", str(folder), "--processor", f"{__file__}:Xnli"), (note,))
    named = {split: folder / name for split, name in _FILES.get(known, {}).items() if (folder / name).is_file()}
    if "train" in named and "dev" in named:
        left = sorted(path.name for path in folder.glob("*_mismatched.tsv"))
        notes = (
            (f"not read: {', '.join(left)}; maskery evaluate RUN --data {folder / left[0]} reads it",) if left else ()
        )
        return Reading((*task, *(text for split, path in named.items() for text in (f"--{split}", str(path)))), notes)
    return Reading((*task, "--data", str(folder)))


def _rows(path: Path) -> Iterator[list[str]]:
    """The cells of each line; of a file that is not there, none."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8-sig") as lines:
        for line in lines:
            if line.strip():
                yield line.rstrip("\r\n").split("\t")


def _is_cola(path: Path) -> bool:
    """Source, label, the author's mark, sentence: no header."""
    first = next(_rows(path), [])
    return len(first) == 4 and first[1] in ("0", "1")


class Cola:
    """CoLA: the sentence is the fourth column, in the test file the second, under a header."""

    def get_labels(self) -> list[str]:
        return ["0", "1"]

    def get_train_examples(self, folder: str) -> list[SimpleNamespace]:
        return [
            _row("train", at, cells[3], label=cells[1]) for at, cells in enumerate(_rows(Path(folder) / "train.tsv"))
        ]

    def get_dev_examples(self, folder: str) -> list[SimpleNamespace]:
        return [_row("dev", at, cells[3], label=cells[1]) for at, cells in enumerate(_rows(Path(folder) / "dev.tsv"))]

    def get_test_examples(self, folder: str) -> list[SimpleNamespace]:
        rows = enumerate(_rows(Path(folder) / "test.tsv"))
        return [_row("test", at, cells[-1]) for at, cells in rows if cells != ["index", "sentence"]]


class Xnli:
    """XNLI: MultiNLI in translation to learn from, and of the development and test files the rows in its language."""

    def get_labels(self) -> list[str]:
        return ["contradiction", "entailment", "neutral"]

    def get_train_examples(self, folder: str) -> list[SimpleNamespace]:
        path = _xnli_train(Path(folder))
        rows = list(_rows(path)) if path is not None else []
        same = {"contradictory": "contradiction"}  # as the translated file spells it
        return [
            _row("train", at, cells[0], cells[1], same.get(cells[2], cells[2])) for at, cells in enumerate(rows[1:])
        ]

    def get_dev_examples(self, folder: str) -> list[SimpleNamespace]:
        return self._of_language(Path(folder), "dev")

    def get_test_examples(self, folder: str) -> list[SimpleNamespace]:
        return self._of_language(Path(folder), "test")

    def _of_language(self, folder: Path, split: str) -> list[SimpleNamespace]:
        train = _xnli_train(folder)
        head, *rows = [*_rows(folder / f"xnli.{split}.tsv")] or [[]]
        if not rows:
            return []
        language, label, one, two = (head.index(name) for name in ("language", "gold_label", "sentence1", "sentence2"))
        wanted = "" if train is None else _language(train)
        return [
            _row(split, at, cells[one], cells[two], label=cells[label])
            for at, cells in enumerate(rows)
            if cells[language] == wanted
        ]


def _xnli_train(folder: Path) -> Path | None:
    """multinli.train.LANGUAGE.tsv; of several, the Chinese one, as run_classifier.py has it."""
    found: Sequence[Path] = sorted((folder / "multinli").glob("multinli.train.*.tsv"))
    chinese = [path for path in found if _language(path) == "zh"]
    return next(iter((*chinese, *found)), None)


def _language(train: Path) -> str:
    return train.name.split(".")[-2]


def _row(split: str, number: int, text: str, second: str | None = None, label: str | None = None) -> SimpleNamespace:
    return SimpleNamespace(guid=f"{split}-{number}", text_a=text, text_b=second, label=label)
