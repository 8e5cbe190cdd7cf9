"""Which files of a folder are train, dev and test, as sets are published.

train.tsv, dev.tsv, valid.json          by the name; train.50k.json and train.1k.json: the larger
train/, dev/                            a folder of passages (RACE)
train-v1.1.json, msr_paraphrase_train   the split is a word of the name
dev_matched.tsv, dev_mismatched.tsv     matched (MNLI)
d-train.json, m-train.json              names that differ in one letter are read together (C3)
test1.0.json, test1.1.json              the newest version
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from maskery.errors import TextError
from maskery.tasks.read.passages import holds_passages
from maskery.tasks.read.sources import format_of

SPLITS = {"train": "train", "dev": "dev", "valid": "dev", "val": "dev", "validation": "dev", "test": "test"}
"""The beginning of a file's name -> the split it holds."""
_WORDS = SPLITS | {"training": "train"}
_NO_EXAMPLES = frozenset({"answer", "answers", "label", "labels", "predict", "predictions"})
_SIZE = re.compile(r"[a-z]+\.(\d+)k\.")


@dataclass(frozen=True)
class SplitFiles:
    paths: tuple[Path, ...]
    notes: tuple[str, ...] = ()


def files_of(folder: Path) -> dict[str, SplitFiles]:
    """Split -> its files; where it is not clear which they are, the folder is refused."""
    if folder.is_file():
        raise TextError("is a file, and not a folder", file=folder, repair=f"--train {folder}")
    if not folder.is_dir():
        raise TextError("there is no such folder", file=folder, repair="a folder with train.tsv and dev.tsv")
    found: dict[str, SplitFiles] = {}
    for split in ("train", "dev", "test"):
        for candidates in (_exact, _folders, _by_word):
            paths = [path for path in sorted(folder.iterdir()) if candidates(path) == split]
            if paths:
                found[split] = _chosen(folder, split, paths)
                break
    return found


def _exact(path: Path) -> str | None:
    readable = path.is_file() and format_of(path) is not None
    return SPLITS.get(path.name.partition(".")[0].lower()) if readable else None


def _folders(path: Path) -> str | None:
    return SPLITS.get(path.name.lower()) if path.is_dir() and holds_passages(path) else None


def _by_word(path: Path) -> str | None:
    if not path.is_file() or format_of(path) is None:
        return None
    words = _words(path)
    if _NO_EXAMPLES & set(words):
        return None
    splits = {_WORDS[word] for word in words if word in _WORDS}
    return splits.pop() if len(splits) == 1 else None


def _words(path: Path) -> list[str]:
    return re.findall("[a-z]+", path.name.lower())


def _chosen(folder: Path, split: str, paths: Sequence[Path]) -> SplitFiles:
    if len(paths) == 1:
        return SplitFiles((paths[0],))
    sizes = [(int(size[1]), path) for path in paths if (size := _SIZE.match(path.name.lower()))]
    if len(sizes) == len(paths):
        return _one_of(max(sizes)[1], paths, "the largest")
    matched = [path for path in paths if "matched" in _words(path)]
    if len(matched) == 1 and all("mismatched" in _words(path) for path in paths if path not in matched):
        return _one_of(matched[0], paths, "matched; evaluate --data reads the other")
    if split == "test" and len({re.sub(r"\d", "", path.name) for path in paths}) == 1:
        return _one_of(max(paths, key=_version), paths, "the newest version")
    if _differ_in_a_letter(paths):
        return SplitFiles(tuple(paths), (f"{split}: {_named(paths)} are read together",))
    cause = f"two files could be {split}: {paths[0].name} and {paths[1].name}"
    raise TextError(cause, file=folder, repair="leave one in the folder")


def _one_of(path: Path, paths: Sequence[Path], why: str) -> SplitFiles:
    others = _named([each for each in paths if each != path])
    return SplitFiles((path,), (f"{path.name} is taken ({why}); left out: {others}",))


def _version(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.name)]


def _named(paths: Sequence[Path]) -> str:
    return ", ".join(path.name for path in paths)


def _differ_in_a_letter(paths: Sequence[Path]) -> bool:
    """d-train.json and m-train.json: single letters of their names differ, and nothing else."""
    without = {re.sub(r"(?<![a-z])[a-z](?![a-z])", "", path.name.lower()) for path in paths}
    return len(without) == 1
