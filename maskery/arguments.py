"""Arguments of Python calls, checked where a caller passes them: what does not fit is named, with the form that does.

    model = opened("model", given, Model, load, "a Model, or the path of a model or run folder")

A wrong type is an `ArgumentTypeError`, which is a TypeError; a value out of range an `ArgumentError`, a ValueError.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import numbers
import operator
import os
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeGuard, TypeVar, Union, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from maskery.errors import ArgumentError, ArgumentTypeError

Kind = TypeVar("Kind")
Given = ParamSpec("Given")
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


def array(name: str, value: object, form: str, kinds: str = "iuf") -> NDArray[Any]:
    """Numbers as an array, of `kinds`: whole ones (iu), or with parts (f); an empty list is an array."""
    try:
        found = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):
        raise wrong(name, value, form) from None
    if found.ndim == 0 or (found.size and found.dtype.kind not in kinds):
        raise wrong(name, value, form)
    return found


def whole_numbers(name: str, value: object, least: int = 0) -> list[int]:
    """One whole number, or a list or an array of them."""
    found = array(name, [value] if _is_whole(value) else value, "a list or an array of whole numbers", "iu")
    if found.size and found.min() < least:
        raise ArgumentError(f"{name} holds {found.min()}", repair=f"give {name} as whole numbers, {least} or more")
    return [int(number) for number in found.ravel()]


def processes(name: str, value: object) -> int:
    """A number of processes or threads, no more than a machine can start; 0 is one."""
    found, cores = count(name, value, 0), os.cpu_count() or 1
    most = max(64, 4 * cores)
    if found > most:
        cause = f"{name} {found:,} is too many: this machine has {cores} cores"
        raise ArgumentError(cause, repair=f"{name} {most} or fewer")
    return found


def optional_count(name: str, value: object, least: int = 1) -> int | None:
    return None if value is None else count(name, value, least)


def call(name: str, value: object) -> Any:
    """Something that can be called, such as `say` and `progress`."""
    if not callable(value):
        raise wrong(name, value, "a function")
    return value


def checked(function: Callable[Given, Kind]) -> Callable[Given, Kind]:
    """A public call whose arguments are checked against its annotations before anything is done.

    Texts, numbers, switches, functions, tables of settings, objects of one class and lists of strings are checked, with
    None where it is allowed. What a path or several things stand for is left to the call, which knows its forms.
    """

    @functools.wraps(function)
    def _call(*given: Given.args, **named: Given.kwargs) -> Kind:
        places, forms = _annotated(function)
        for name, value in (*zip(places, given, strict=False), *named.items()):
            if name in forms:
                _require(name, value, forms[name])
        return function(*given, **named)

    return _call


def require(function: Callable[..., Any], given: Mapping[str, Any], but: Sequence[str] = ()) -> None:
    """Check what was given to a call that may not check it itself, as scikit-learn asks of its estimators; all `but`
    these."""
    forms = _annotated(function)[1]
    for name, value in given.items():
        if name in forms and name not in but:
            _require(name, value, forms[name])


Form = tuple[Callable[[Any], bool], str]
"""Whether a value is of a form, and the form's name."""


def _require(name: str, value: object, forms: Sequence[Form]) -> None:
    if not any(fits(value) for fits, _ in forms):
        wanted = " or ".join(dict.fromkeys(form for _, form in forms))
        if isinstance(value, list | tuple) and _TEXTS in wanted:
            for number, each in enumerate(value):
                text(f"{name}[{number}]", each)
        if isinstance(value, float) and _NUMBER in wanted:
            raise ArgumentError(f"{name} is {described(value)}", repair=f"give {name} as {wanted}")
        if _is_bytes_for_text(value, forms):
            raise wrong(name, value, wanted, f"decode it: {name}.decode()")
        raise wrong(name, value, wanted, unsaved(name, value, wanted) if _PATH in wanted else "")


def _is_bytes_for_text(value: object, forms: Sequence[Form]) -> bool:
    return isinstance(value, bytes) and any(form == _TEXT for _, form in forms)


class _Unknown:
    """In the place of a name that only type checkers import: what it stands in is not checked."""

    def __getattr__(self, name: str) -> _Unknown:
        return self

    def __getitem__(self, name: object) -> _Unknown:
        return self

    def __or__(self, other: object) -> _Unknown:
        return self

    __ror__ = __or__


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> _Unknown:
        return _Unknown()


@functools.cache
def _annotated(function: Callable[..., Any]) -> tuple[tuple[str, ...], dict[str, tuple[Form, ...]]]:
    """The names of what may be given by place, and the forms of every argument that can be checked."""
    known = _Names({**vars(builtins), **function.__globals__})
    hints = inspect.get_annotations(function, globals={}, locals=known, eval_str=True)
    forms = {name: found for name, hint in hints.items() if name != "return" and (found := _forms(hint))}
    return function.__code__.co_varnames[: function.__code__.co_argcount], forms


_TEXT, _TEXTS, _NUMBER, _PATH = "a string", "a list of strings", "a finite number", "a path"


def _forms(hint: Any) -> tuple[Form, ...]:
    """The forms that an annotation allows; none where it allows something that is not checked here.

    A class of ours is checked alone or beside None: where a path stands for it, too, the call opens it.
    """
    if get_origin(hint) in (Union, types.UnionType):
        parts = [(each, _form(each)) for each in get_args(hint)]
        alone = len([each for each, _ in parts if each is not type(None)]) == 1
        found = [form for each, form in parts if form and (alone or not _is_class(each))]
        return tuple(found) if len(found) == len(parts) else ()
    form = _form(hint)
    return () if form is None else (form,)


def _form(hint: Any) -> Form | None:
    origin, inside = get_origin(hint) or hint, get_args(hint)
    if origin is Literal:
        return (lambda value: isinstance(value, str)), "one of " + ", ".join(str(each) for each in inside)
    if origin is Sequence:
        paths = {*get_args(inside[0])} if inside else set()
        kinds = {(str,): (_is_texts, _TEXTS)} | (
            {inside: (_are_paths, "a list of paths")} if paths == {str, Path} else {}
        )
        return kinds.get(inside)
    if origin is tuple:
        return (_is_pair, "a pair of strings") if inside == (str, str) else None
    if origin is Mapping and inside == (str, str):
        return _is_names, "a table of strings: {name: name}"
    if not isinstance(origin, type):
        return None
    if origin.__name__ == "Tensor":  # a list of numbers stands for one
        return (lambda value: isinstance(value, origin) or _is_list(value)), "a tensor of torch"
    if _is_class(origin):
        return (lambda value: isinstance(value, origin)), f"a {origin.__name__}"
    return _PLAIN.get(origin)


def _is_class(hint: Any) -> bool:
    """Whether a hint names a class whose objects nothing else stands for, as lists do for arrays."""
    origin = get_origin(hint) or hint
    known = isinstance(origin, type) and origin.__module__.partition(".")[0] in ("maskery", "tokenizers", "torch")
    return known and not getattr(origin, "_is_protocol", False)


def _is_whole(value: object) -> bool:
    """True and 3.0 are none."""
    return hasattr(value, "__index__") and not isinstance(value, bool) and not getattr(value, "shape", ())


def _is_number(value: object) -> bool:
    return _is_whole(value) or (
        isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    )


def _is_texts(value: object) -> bool:
    return _is_list(value) and all(isinstance(each, str) for each in value)


def _are_paths(value: object) -> bool:
    return _is_list(value) and all(isinstance(each, str | os.PathLike) for each in value)


def _is_list(value: object) -> TypeGuard[Iterable[object]]:
    """What has members and a length; no letters of a string, no keys of a dict."""
    return isinstance(value, Iterable) and hasattr(value, "__len__") and not isinstance(value, _NO_LISTS)


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple | list) and len(value) == 2 and _is_texts(value)


def _has_names(value: object) -> bool:
    """Torch's ModuleDict is no Mapping, and can be read as one."""
    return hasattr(value, "keys") and hasattr(value, "items") and hasattr(value, "values") and not _is_table(value)


def _is_table(value: object) -> bool:
    return hasattr(value, "columns") or hasattr(value, "dtype")


def _is_names(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(each, str) for pair in value.items() for each in pair)


_NO_LISTS = (str, bytes, bytearray, Mapping)
_PLAIN: dict[type, Form] = {
    type(None): (lambda value: value is None, "None"),
    str: (lambda value: isinstance(value, str), _TEXT),
    bool: (lambda value: isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"), "True or False"),
    int: (_is_whole, "a whole number"),
    float: (_is_number, _NUMBER),
    Path: (lambda value: isinstance(value, str | os.PathLike), _PATH),
    os.PathLike: (lambda value: isinstance(value, str | os.PathLike), _PATH),
    Callable: (callable, "a function"),  # type: ignore[dict-item]  # an abstract class, as a type
    Mapping: (lambda value: isinstance(value, Mapping) or _has_names(value), "a table: {name: value}"),
}
