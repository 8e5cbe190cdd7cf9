"""Text that is on every machine with Python: its language reference and the docstrings of its standard library.

Nothing is imported or run to get it: source files are parsed. Paragraphs of prose are kept, tables and code are not.
The order is fixed, so one version of Python always gives the same text.
"""

from __future__ import annotations

import ast
import re
import sysconfig
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from pydoc_data.topics import topics

_LEFT_OUT = ("test", "tests", "idlelib", "lib2to3", "site-packages", "__pycache__", "pydoc_data", "turtledemo")
_ENOUGH = 1_500_000
"""Characters; the rest of the library is left out."""
_FEWEST_WORDS = 6
_LETTERS = 0.75


def documents() -> list[str]:
    """One document for each topic and each module: a paragraph a line."""
    found: list[str] = []
    size = 0
    for text in chain(_topics(), _modules()):
        document = "\n".join(paragraphs(text))
        if document:
            found.append(document)
            size += len(document)
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


def _topics() -> Iterator[str]:
    for name in sorted(topics):
        yield topics[name]


def _modules() -> Iterator[str]:
    root = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(root.rglob("*.py")):
        if not any(part in _LEFT_OUT for part in path.relative_to(root).parts):
            yield "\n\n".join(docstrings(path.read_bytes()))


def docstrings(source: bytes) -> Iterator[str]:
    """The docstrings of a module, outer ones first; none if it is not valid Python here."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about other people's escapes
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found = ast.get_docstring(node)
            if found:
                yield found
