"""The exception tree. Each error names its cause, the place, and what repairs it.

MaskeryError                 exit 1
├── InputError               exit 2: what the user gave cannot be used
│   ├── ArgumentError        an argument of a Python call; also a ValueError, as libraries expect one
│   ├── ArgumentTypeError    an argument of another type than the call takes; also a TypeError
│   ├── TextError            a text file (file and line)
│   ├── CorpusError          a corpus folder
│   ├── RecipeError          a recipe, a key or a value in it
│   │   └── RefusedError     pieces that contradict each other, or leak their answers
│   ├── UnknownName          a name that no registry holds (nearest names listed)
│   ├── CheckpointError      a model or run folder
│   ├── ExistsError          something is already there
│   └── DiskError            the disk refuses: full, read-only, not permitted
├── TrainingError            a run that cannot go on
│   └── NonFiniteError       a loss or gradient that is not a number
├── EndedElsewhere           another rank of the run has told why it ends; nothing is left to say
└── Stopped                  exit 130 or 143: a signal came, the state is saved
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path


class MaskeryError(Exception):
    """Cause, place and repair; printed as up to three lines.

    try:
        maskery.load("nowhere")
    except maskery.MaskeryError as error:
        print(error.cause, error.where, error.repair)
    """

    exit_code = 1

    def __init__(self, cause: str, *, where: str | Path | None = None, repair: str | None = None) -> None:
        self.cause = cause
        self.where = None if where is None else str(where)
        self.repair = repair
        super().__init__(self.text())

    def text(self) -> str:
        """The lines that are printed."""
        lines = [self.cause if self.where is None else f"{self.where}: {self.cause}"]
        if self.repair:
            lines.append(f"  repair: {self.repair}")
        return "\n".join(lines)


class InputError(MaskeryError):
    exit_code = 2


class ArgumentError(InputError, ValueError):
    pass


class ArgumentTypeError(InputError, TypeError):
    pass


class ArgumentName(str):
    """The name of an argument of a Python call that holds rows: where a file has lines, it has places from 0."""

    __slots__ = ()


def place(file: str | Path, line: int | None) -> str:
    """A line of a file, or a row of an argument, as an error names it; `line` counts from 1."""
    if not line:
        return str(file)
    return f"{file}[{line - 1}]" if isinstance(file, ArgumentName) else f"{file}:{line}"


class TextError(InputError):
    """A text file that cannot be read, or rows of a Python call; `line` counts from 1."""

    def __init__(self, cause: str, *, file: str | Path, line: int | None = None, repair: str | None = None) -> None:
        self.file = file if isinstance(file, str) else str(file)
        self.line = line
        super().__init__(cause, where=place(file, line), repair=repair)


class EmptyTextError(TextError):
    """A text file with nothing in it."""


class CorpusError(InputError):
    pass


class RecipeError(InputError):
    pass


class RefusedError(RecipeError):
    pass


class CheckpointError(InputError):
    pass


class ExistsError(InputError):
    pass


class DiskError(InputError):
    pass


class UnknownName(InputError):
    """A name outside a closed set: the nearest are listed, then all."""

    def __init__(self, kind: str, name: str, choices: Iterable[str], *, where: str | Path | None = None) -> None:
        self.kind, self.name, self.choices = kind, name, sorted(choices)
        # A key without its table comes first: lr is training.lr.
        inside = [each for each in self.choices if each.endswith(f".{name}")]
        near = inside or get_close_matches(name, self.choices, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        super().__init__(f"unknown {kind} {name!r}", where=where, repair=f"{hint}choices: {', '.join(self.choices)}")


class TrainingError(MaskeryError):
    pass


class NonFiniteError(TrainingError):
    pass


class EndedElsewhere(MaskeryError):
    """One of several ranks ended the run and tells why; the others leave with its exit code."""

    def __init__(self, exit_code: int) -> None:
        self.exit_code = exit_code
        super().__init__("another rank ended the run")


class Stopped(MaskeryError):
    """Ctrl-C or SIGTERM, after the state was saved."""

    def __init__(self, cause: str, *, signal_number: int, repair: str | None = None) -> None:
        self.exit_code = 128 + signal_number
        super().__init__(cause, repair=repair)


class Unfit(ValueError):
    """Values of a config that do not go together: what a validator raises, so that its repair is told as one."""

    def __init__(self, cause: str, repair: str) -> None:
        super().__init__(f"{cause}; {repair}")
        self.cause, self.repair = cause, repair
