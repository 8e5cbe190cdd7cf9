"""Code of the user's own, named FILE.py:NAME on the command line: it is run as it stands, and what goes wrong in it is
told with its file and line. Nothing here is ever named by a folder: a command or a call names it.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from maskery.errors import InputError, MaskeryError

_CLASSES = "from run_classifier import DataProcessor, InputExample"
_IMPORTS = {
    **dict.fromkeys(("DataProcessor", "InputExample"), _CLASSES),
    "tokenization": "import tokenization",
    "tf": "import tensorflow as tf",
    **{name: f"import {name}" for name in ("os", "csv", "json", "re")},
}
"""What a class that was cut out of run_classifier.py found there. The stand-ins of `classic` are behind these names."""


def file_and_name(spec: str, flag: str, what: str) -> tuple[Path, str]:
    """The two halves of FILE.py:NAME, `what` (a class, a function), as `flag` was given them."""
    name, colon, wanted = spec.rpartition(":")
    file, form = Path(name), f"{flag} FILE.py:{what.upper()}"
    if not colon or not wanted or file.suffix != ".py":
        raise InputError(f"{flag} {spec}: no file and {what}", repair=form)
    if not file.is_file():
        raise InputError(f"{flag} {spec}: there is no such file", where=file, repair=form)
    return file, wanted


def module_of(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"maskery_own_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise InputError("the file cannot be imported", where=file, repair="name a file of Python code")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    with own_code(file, "import"):
        spec.loader.exec_module(module)
    return module


@contextmanager
def own_code(file: Path, doing: str) -> Iterator[None]:
    """The file's folder is first on the path: it may import its neighbours. What it raises is told with its line."""
    folder = str(file.parent.resolve())
    sys.path.insert(0, folder)
    try:
        yield
    except MaskeryError:
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame.lineno for frame in frames if Path(frame.filename).name == file.name]
        if isinstance(error, SyntaxError) and Path(error.filename or "").name == file.name:
            own.append(error.lineno)
        where = f"{file}:{own[-1]}" if own else str(file)
        cause = f"{doing} failed: {type(error).__name__}: {error}"
        raise InputError(cause, where=where, repair=_repair(error)) from error
    finally:
        with suppress(ValueError):
            sys.path.remove(folder)


def _repair(error: BaseException) -> str:
    line = _IMPORTS.get(error.name or "") if isinstance(error, NameError) else None
    return f"write at the beginning of the file: {line}" if line else "mend the code; it was run as it stands"
