"""The streams of a command, made safe before anything is read or written.

A shell may close them (`>&-`, `<&-`): the next file that is opened would get the number of stdout, and every library
that prints would write into it. And a locale without UTF-8 (`LC_ALL=C`) makes half characters of Chinese arguments.
"""

from __future__ import annotations

import io
import os
import sys
from typing import NoReturn

from maskery.errors import DiskError

_UTF8 = "PYTHONUTF8"


class _Closed(io.TextIOBase):
    """In the place of a stream that the caller has closed: nothing is lost without a word."""

    def __init__(self, name: str, what: str, repair: str) -> None:
        self._refusal = DiskError(f"is closed: {what}", where=name, repair=repair)

    def _refuse(self) -> NoReturn:
        raise self._refusal

    def write(self, text: str) -> int:
        return self._refuse() if text else 0

    def read(self, size: int | None = -1) -> str:
        self._refuse()

    def isatty(self) -> bool:
        return False

    @property
    def buffer(self) -> io.BufferedIOBase:
        self._refuse()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the base says that it may be set
        return "utf-8"


def read_utf8() -> None:
    """Start this process anew where the locale has no UTF-8: only a new interpreter reads its arguments again."""
    if sys.getfilesystemencoding().lower().replace("-", "") == "utf8" or os.environ.get(_UTF8) == "1":
        return
    environment = {**os.environ, _UTF8: "1"}
    os.execve(sys.executable, [sys.executable, "-m", "maskery", *sys.argv[1:]], environment)


def prepare() -> None:
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    if sys.stdin is None:
        sys.stdin = _Closed("stdin", "there is nothing to read", "leave out <&-, or name a file")
    if sys.stdout is None:
        sys.stdout = _Closed("stdout", "the result cannot be printed", "leave out >&-, or > FILE")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character gets its escape, never an exception in place of the result.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def give_up_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush is quiet."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
