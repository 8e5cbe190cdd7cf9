"""Stand-ins for what classes written for run_classifier.py import: small classes of our own under the usual names.

They are there only while a file of the user's runs, and only where the real module is not: one that is installed or
lies beside the file is taken. Two are taken before the real ones: transformers, if the file asks of it nothing but the
classes below, which newer versions lack; and a file beside it that needs TensorFlow where that is not installed.
"""

from __future__ import annotations

import ast
import csv
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any


class InputExample:
    """One example: a text or two, and a label."""

    def __init__(self, guid: str, text_a: str, text_b: str | None = None, label: Any = None) -> None:
        self.guid, self.text_a, self.text_b, self.label = guid, text_a, text_b, label


class InputFeatures:
    """Whatever it is given, by name; rows are made elsewhere."""

    def __init__(self, *values: Any, **named: Any) -> None:
        names = ("input_ids", "input_mask", "segment_ids", "label_id", "is_real_example")
        vars(self).update(dict(zip(names, values, strict=False)) | named)


class DataProcessor:
    """What a class of the user's own inherits from. It has none of the methods that read a set: what the class does not
    have itself is a set that is not there."""

    @classmethod
    def _read_tsv(cls, input_file: str, quotechar: str | None = None) -> list[list[str]]:
        """The cells of each line; quotes are characters like any other unless a `quotechar` is given."""
        with Path(input_file).open(encoding="utf-8-sig", newline="") as lines:
            if quotechar is None:
                return list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
            return list(csv.reader(lines, delimiter="\t", quotechar=quotechar))


def convert_to_unicode(text: str | bytes) -> str:
    return text.decode("utf-8", "ignore") if isinstance(text, bytes) else str(text)


def _open(path: str, mode: str = "r") -> Any:
    return Path(path).open(mode) if "b" in mode else Path(path).open(mode, encoding="utf-8")


class _Flags:
    """Definitions of flags are taken and forgotten: the flags of a program that does not run here."""

    FLAGS = SimpleNamespace()

    def __getattr__(self, name: str) -> Callable[..., None]:
        if not name.startswith(("DEFINE_", "mark_")):
            raise AttributeError(name)
        return lambda *given, **named: None


def _tensorflow() -> dict[str, object]:
    """Files and logging, which reading of data uses; nothing else."""
    log = logging.getLogger("tensorflow")
    names = {"info": log.info, "warn": log.warning, "warning": log.warning, "error": log.error, "debug": log.debug}
    levels = {name: getattr(logging, name) for name in ("DEBUG", "INFO", "WARN", "ERROR")}
    gfile = SimpleNamespace(Open=_open, GFile=_open, Exists=lambda path: Path(path).exists())
    logs = SimpleNamespace(**names, **levels, set_verbosity=lambda level: None)
    return {"gfile": gfile, "io": SimpleNamespace(gfile=gfile), "logging": logs, "flags": _Flags()}


def _classes() -> dict[str, object]:
    return {each.__name__: each for each in (InputExample, InputFeatures, DataProcessor)}


def _tokenization() -> dict[str, object]:
    return {"convert_to_unicode": convert_to_unicode}


def _nothing() -> dict[str, object]:
    return {}


CLASSES = ("InputExample", "InputFeatures", "DataProcessor")
_UTILS = "data.processors.utils"
_LIBRARIES = ("transformers", "pytorch_transformers", "pytorch_pretrained_bert")
_PACKAGES = [f"{library}{part}" for library in _LIBRARIES for part in ("", ".data", ".data.processors", f".{_UTILS}")]
MODULES: Mapping[str, Callable[[], dict[str, object]]] = {
    "run_classifier": _classes,
    "tokenization": _tokenization,
    "bert": _nothing,
    "bert.run_classifier": _classes,
    "bert.tokenization": _tokenization,
    "modeling": _nothing,
    "optimization": _nothing,
    **dict.fromkeys(_PACKAGES, _classes),
    "tensorflow": _tensorflow,
    "tensorflow.compat": _nothing,
    "tensorflow.compat.v1": _tensorflow,
}
"""Module -> what it holds."""


class _StandIns(MetaPathFinder, Loader):
    def __init__(self, names: Sequence[str]) -> None:
        self.names, self.made = names, list[str]()

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name in self.names else None

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(MODULES[module.__name__]())
        self.made.append(module.__name__)


@contextmanager
def classic_modules(file: Path) -> Iterator[list[str]]:
    """The stand-ins for code of `file`; the names of those that it imported. Nothing is left behind."""
    last, first = _StandIns(list(MODULES)), _StandIns(_before_real_ones(file))
    hidden = {name: sys.modules.pop(name) for name in first.names if name in sys.modules}
    sys.meta_path.insert(0, first)
    sys.meta_path.append(last)
    used: list[str] = []
    try:
        yield used
    finally:
        for finder in (first, last):
            with suppress(ValueError):
                sys.meta_path.remove(finder)
            used += finder.made
            for name in finder.made:
                sys.modules.pop(name, None)
        sys.modules.update(hidden)


def _before_real_ones(file: Path) -> list[str]:
    """Stand-ins that are taken although there is a module of that name."""
    asked = _imported(file)
    if asked is None:
        return []
    found: list[str] = []
    for library in _LIBRARIES:
        names = [names for module, names in asked if module.partition(".")[0] == library]
        if names and all(name in CLASSES for each in names for name in each) and all(names):
            found += [name for name in MODULES if name.partition(".")[0] == library]
    if find_spec("tensorflow") is None:
        beside = {name: file.parent / f"{name}.py" for name in MODULES}
        found += [name for name, path in beside.items() if path.resolve() != file.resolve() and _needs_tensorflow(path)]
    return found


def _needs_tensorflow(file: Path) -> bool:
    return any(module.partition(".")[0] == "tensorflow" for module, _ in _imported(file) or ())


def _imported(file: Path) -> list[tuple[str, list[str]]] | None:
    """(Module, names that are imported from it) of a file; `import x` has no names. None: it is no Python."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None  # told with its line when it is run
    found: list[tuple[str, list[str]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.module, [each.name for each in node.names]))
        elif isinstance(node, ast.Import):
            found += [(each.name, []) for each in node.names]
    return found
