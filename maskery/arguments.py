"""Arguments of Python calls, checked where a caller passes them: what does not fit is named, with the form that does.

    model = opened("model", given, Model, load, "a Model, or the path of a model or run folder")

A wrong type is an `ArgumentTypeError`, which is a TypeError; a value out of range an `ArgumentError`, a ValueError.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from maskery.errors import ArgumentError, ArgumentTypeError

Kind = TypeVar("Kind")
_SHOWN = 40
"""Characters of a value that an error repeats."""


def described(value: object) -> str:
    """A value as an error names it: its type, and itself where it is short."""
    if value is None:
        return "None"
    if isinstance(value, str | bytes | int | float):
        shown = repr(value)
        return f"{shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '...'} ({type(value).__name__})"
    return f"of type {type(value).__name__}"


def wrong(name: str, value: object, form: str, repair: str = "") -> ArgumentTypeError:
    return ArgumentTypeError(f"{name} is {described(value)}", repair=repair or f"give {name} as {form}")


def opened(name: str, value: object, kind: type[Kind], open_path: Callable[[str], Kind], form: str) -> Kind:
    """What a path stands for, opened; what is open already is itself."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str | os.PathLike):
        return open_path(str(path(name, value, form)))
    raise wrong(name, value, form)


def path(name: str, value: object, form: str = "a path: a string or a pathlib.Path") -> Path:
    """A path that a file system can hold."""
    plain = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(plain, str):
        raise wrong(name, value, form, unsaved(name, value, form))
    if not plain or "\0" in plain:
        raise ArgumentError(f"{name} is {plain!r}, which is no path", repair=f"give {name} as {form}")
    return Path(plain)


def unsaved(name: str, value: object, form: str) -> str:
    """The repair where a folder is needed and an object in memory was given; empty for what cannot be saved."""
    if isinstance(value, type) or not callable(getattr(value, "save", None)):
        return ""
    return f'give {name} as {form}: write one with .save("my-folder") and give "my-folder"'


def text(name: str, value: object) -> str:
    if isinstance(value, bytes):
        raise wrong(name, value, "a string", f"decode it: {name}.decode()")
    if not isinstance(value, str):
        raise wrong(name, value, "a string")
    return value


def texts(name: str, value: object) -> list[str]:
    """One text, or an iterable of texts, as a list; whatever is no text among them is named by its place."""
    if isinstance(value, str):
        return [value]
    listed = items(name, value, "a text, or a list of texts")
    for number, each in enumerate(listed):
        text(f"{name}[{number}]", each)
    return listed


def items(name: str, value: object, form: str) -> list[Any]:
    """The members of a list, a tuple, an array, a column or a generator; no letters of a string, no keys of a dict, and
    no columns of a table."""
    if len(getattr(value, "shape", ())) > 1:
        raise wrong(name, value, form, f'give {name} as {form}; of a table one column: {name}["text"]')
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise wrong(name, value, form)
    return list(value)


def count(name: str, value: object, least: int = 1) -> int:
    """A whole number, of Python's or numpy's types; True and 3.0 are none."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise wrong(name, value, f"a whole number, {least} or more")
    found = operator.index(value)
    if found < least:
        raise ArgumentError(f"{name} {found} is too small", repair=f"{name} {least} or more")
    return found


def optional_count(name: str, value: object, least: int = 1) -> int | None:
    return None if value is None else count(name, value, least)


def call(name: str, value: object) -> Any:
    """Something that can be called, such as `say` and `progress`."""
    if not callable(value):
        raise wrong(name, value, "a function")
    return value
