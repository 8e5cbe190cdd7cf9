"""A class of the user's own that reads the data: get_train_examples(data_dir), get_dev_examples, get_test_examples, and
get_labels. Its examples have guid, text_a, text_b and label. The file is run: it is the user's own code, and told.
Classes that were written for run_classifier.py are run as they stand (maskery/tasks/read/classic.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from maskery.errors import InputError, Unfit, UnknownName
from maskery.tasks.examples import Example, Examples, Label
from maskery.tasks.read import values
from maskery.tasks.read.classic import classic_modules
from maskery.tasks.read.code import file_and_name, module_of, own_code

SPLITS = ("train", "dev", "test")
_FORM = "--processor FILE.py:CLASS"


def read_processor(spec: str, data_dir: Path, task: str | None = None) -> dict[str, Examples]:
    """Split -> examples, train first. A development or test set that the class does not read, and a test set without
    examples, are left out and noted."""
    found: dict[str, Examples] = {}
    notes: list[str] = []
    for split in splits_of_processor(spec):
        try:
            found[split] = examples_of_processor(spec, data_dir, split, task or (found and found["train"].task) or None)
        except _Left as left:
            notes.append(f"{spec}: {left.cause}: there is no {split} set")
    train = found["train"]
    return {**found, "train": replace(train, notes=(*train.notes, *notes))}


class _Left(InputError):
    """A split that is not there, and need not be."""


def examples_of_processor(spec: str, data_dir: Path, split: str, task: str | None = None) -> Examples:
    """The examples of one split, in the class's own order of labels. Without a task: pair if any has a text_b."""
    if split not in SPLITS:
        raise UnknownName("split", split, SPLITS)
    with classic_modules(file_and_name(spec, "--processor", "class")[0]) as used:
        found = _examples(spec, data_dir, split, task)
    if not used or split != "train":
        return found
    note = f"{spec}: own small classes stand in for {', '.join(dict.fromkeys(used))}, which the file imports"
    return replace(found, notes=(*found.notes, note))


def _examples(spec: str, data_dir: Path, split: str, task: str | None) -> Examples:
    file, processor = _made(spec)
    given = _listed(file, processor, f"get_{split}_examples", data_dir)
    if not given:
        cause = f"get_{split}_examples gave no examples"
        kind = _Left if split == "test" else InputError
        raise kind(cause, where=file, repair=f"it has to return the examples of {data_dir}")
    said = [] if task in ("regress", "rank") else _listed(file, processor, "get_labels")
    labels = _labels(file, said)
    fields = ("text_a", "text_b") if any(getattr(each, "text_b", None) is not None for each in given) else ("text_a",)
    found = task or ("regress" if said and not labels else _task(given, labels, fields))
    items = tuple(_example(file, each, number, split, found, len(fields)) for number, each in enumerate(given))
    notes = [
        f"{spec}: the code of this file was run",
        f"{spec}: {len(items):,} examples ({split})",
    ]
    if task is None:
        notes.append(f"{spec}: task = {found} (by what the examples hold)")
    if labels and found != "regress":
        notes.append(f"{spec}: labels in the order of get_labels: {', '.join(labels[:12])}")
    return Examples(task=found, fields=fields, items=items, labels=labels, notes=tuple(notes))


def splits_of_processor(spec: str) -> tuple[str, ...]:
    """The splits that the class can read."""
    with classic_modules(file_and_name(spec, "--processor", "class")[0]):
        file, processor = _made(spec)
    found = tuple(split for split in SPLITS if callable(getattr(processor, f"get_{split}_examples", None)))
    if "train" not in found:
        raise InputError("the class has no get_train_examples", where=file, repair=f"{_FORM} of a class that has it")
    return found


def _made(spec: str) -> tuple[Path, Any]:
    file, wanted = file_and_name(spec, "--processor", "class")
    module = module_of(file)
    classes = [key for key, value in vars(module).items() if isinstance(value, type)]
    if not isinstance(vars(module).get(wanted), type):
        raise UnknownName("class", wanted, classes, where=file)
    with own_code(file, wanted):
        return file, vars(module)[wanted]()


def _call(file: Path, processor: Any, method: str, *arguments: Path) -> Any:
    found: Callable[..., Any] | None = getattr(processor, method, None)
    if not callable(found):
        raise InputError(f"the class has no {method}", where=file, repair=f"def {method}(self, ...) in the class")
    with own_code(file, method), _unread(file, method):
        return found(*(str(each) for each in arguments))


@contextmanager
def _unread(file: Path, method: str) -> Iterator[None]:
    """A development or test set that the class only inherits the name of."""
    try:
        yield
    except NotImplementedError:
        if method not in ("get_dev_examples", "get_test_examples"):
            raise
        raise _Left(f"{method} is not implemented", where=file, repair=f"def {method}(self, data_dir)") from None


def _listed(file: Path, processor: Any, method: str, *arguments: Path) -> list[Any]:
    """What a method gives, which may be a generator: then its code runs here."""
    given = _call(file, processor, method, *arguments)
    if given is not None and (isinstance(given, str) or not isinstance(given, Iterable)):
        cause = f"{method} gave {given!r:.40}, of type {type(given).__name__}"
        raise InputError(cause, where=file, repair="it has to return a list")
    with own_code(file, method):
        return list(given or ())


def _labels(file: Path, said: list[Any]) -> tuple[str, ...]:
    try:
        labels = tuple(values.class_name(label) for label in said if label is not None)
    except Unfit as error:
        raise InputError(f"get_labels: {error.cause}", where=file, repair="a list of names or numbers") from None
    twice = next((name for at, name in enumerate(labels) if name in labels[:at]), None)
    if twice is not None:
        raise InputError(f"get_labels names {twice!r} more than once", where=file, repair="name each label once")
    return labels


def _task(given: list[Any], labels: tuple[str, ...], fields: tuple[str, ...]) -> str:
    first = next((each.label for each in given if getattr(each, "label", None) is not None), None)
    if isinstance(first, list | tuple | set | frozenset):
        return "multilabel"
    if isinstance(first, float) and not labels:
        return "regress"
    return "pair" if len(fields) == 2 else "classify"


def _example(file: Path, given: Any, number: int, split: str, task: str, fields: int) -> Example:
    texts = [getattr(given, name, None) for name in ("text_a", "text_b")][:fields]
    guid = str(getattr(given, "guid", None) or f"{split}-{number}")
    if not isinstance(texts[0], str) or any(not isinstance(text, str | None) for text in texts):
        kinds = ", ".join(type(text).__name__ for text in texts)
        cause = f"example {guid}: the texts are of type {kinds}"
        if texts[0] is None:
            cause = f"example {guid} has no text_a; it is of type {type(given).__name__}"
        raise InputError(cause, where=file, repair="objects with text_a (str), text_b (str or None) and label")
    if None in texts:
        cause = f"example {guid} has no text_b, while others have one"
        raise InputError(cause, where=file, repair='text_b="" where there is none, or None in all examples')
    try:
        label = _label(getattr(given, "label", None), task)
    except Unfit as error:
        raise InputError(f"example {guid}: {error.cause}", where=file, repair=error.repair) from None
    if label is None and split != "test":
        raise InputError(f"example {guid} has no label", where=file, repair="give it one, or leave it out")
    return Example(guid=guid, texts=tuple(str(text) for text in texts), label=label, file=str(file))


def _label(label: Any, task: str) -> Label | None:
    if label is None:
        return None
    if task in ("regress", "rank"):
        return values.score(label)
    if task == "multilabel":
        return values.names(label if isinstance(label, str) else list(label), ",")
    return values.class_name(label)
