"""Text that needs no download: Python's documentation topics and the docstrings of its standard library, or a short
Chinese text that comes with the package.

Nothing is imported or run to get docstrings: source files are parsed. Paragraphs of prose are kept, tables and code are
not, and a paragraph that comes again is left out, so nothing held out was read in training. The order is fixed: one
version of Python always gives the same text.
"""

from __future__ import annotations

import ast
import re
import sysconfig
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from pydoc_data.topics import topics

_LEFT_OUT = ("test", "tests", "idlelib", "lib2to3", "site-packages", "__pycache__", "pydoc_data", "turtledemo")
_ENOUGH = 2_000_000
"""Characters; what comes behind is left out."""
_FEWEST_WORDS = 5
_LETTERS = 0.75
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_CHINESE = Path(__file__).with_name("chinese.txt")

Progress = Callable[[float, float], None]
"""Called with what is done and what there is in all."""


def chinese_documents() -> list[str]:
    return _CHINESE.read_text(encoding="utf-8").strip().split("\n\n")


def python_documents(progress: Progress | None = None) -> list[str]:
    """One document for each topic and each module: a paragraph a line."""
    modules = _module_paths()
    sources = chain((topics[name] for name in sorted(topics)), map(_module_text, modules))
    total = len(topics) + len(modules)
    found: list[str] = []
    seen: set[str] = set()
    size = 0
    for number, text in enumerate(sources, 1):
        fresh = [line for line in dict.fromkeys(paragraphs(text)) if line not in seen]
        seen.update(fresh)
        if fresh:
            found.append("\n".join(fresh))
            size += len(found[-1])
        if progress is not None:
            progress(number, total)
        if size >= _ENOUGH:
            break
    return found


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of prose, each on one line."""
    for block in re.split(r"\n\s*\n", text.expandtabs()):
        line = " ".join(block.split())
        letters = sum(sign.isalpha() or sign == " " for sign in line)
        if len(line.split()) >= _FEWEST_WORDS and letters >= _LETTERS * len(line) and ">>>" not in line:
            yield line


def _module_paths() -> list[Path]:
    root = Path(sysconfig.get_paths()["stdlib"])
    return sorted(
        path for path in root.rglob("*.py") if not any(part in _LEFT_OUT for part in path.relative_to(root).parts)
    )


def _module_text(path: Path) -> str:
    return "\n\n".join(docstrings(path.read_bytes()))


def docstrings(source: bytes) -> Iterator[str]:
    """The docstrings of a module, outer ones first; none if it is not valid Python here."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about other people's escapes
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    todo: deque[ast.AST] = deque([tree])
    while todo:
        node = todo.popleft()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found = ast.get_docstring(node)
            if found:
                yield found
        for name in _BLOCKS:  # statements only: `ast.walk` would visit every expression
            block = getattr(node, name, None)
            if isinstance(block, list):
                todo.extend(block)
