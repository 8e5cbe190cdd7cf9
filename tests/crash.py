"""Crashes and refusals at every effect on the file system.

`crashes_of` runs an operation once and keeps, before each of its effects, a copy of the folder: what a process killed
at that moment leaves behind, because nothing that it would still have done has happened. Three ways to go:

- `killed`: what was written so far is there.
- `torn`: of the write under way the first half has arrived.
- `power`: of every file that was not synced since its last write only the first half is kept.

`Refusing` lets the disk refuse from the n-th effect on.
"""

from __future__ import annotations

import builtins
import io
import os
import re
import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from maskery import files
from maskery.checkpoint import tensors

WRITING = ("open", "write", "save", "fsync", "mkdir")
_REST = ("rename", "replace", "unlink", "remove", "rmdir", "mkdir", "link")
_real = {"open": builtins.open, "create": os.open, "save": tensors.save_file, "exchange": files._exchange}


class Effects:
    """Every effect passes `meet` before it happens and `done` after."""

    def __init__(self):
        self.trace = []
        self.asleep = False

    def meet(self, kind, path, data=None):
        """`data` is what a write would bring."""

    def done(self, kind, path):
        pass

    def _met(self, kind, path, act, data=None):
        if self.asleep:
            return act()
        self.trace.append(f"{kind} {re.sub(r'[.]partial-[0-9]+', '.partial', Path(path).name)}")
        self._asleep(self.meet, kind, path, data)
        result = act()
        self._asleep(self.done, kind, path)
        return result

    def _asleep(self, act, *arguments):
        """What the harness itself does to the disk is no effect."""
        self.asleep = True
        try:
            act(*arguments)
        finally:
            self.asleep = False

    def _open(self, file, mode="r", *arguments, **options):
        def act():
            return _real["open"](file, mode, *arguments, **options)

        if self.asleep or isinstance(file, int) or not set(mode) & set("wax+"):
            return act()
        return CountedFile(self._met("open", file, act), file, self)

    def _save_file(self, tensors, path, metadata=None):
        return self._met("save", path, lambda: _real["save"](tensors, path, metadata=metadata))

    def _fsync(self, descriptor):
        """The disk itself is not asked: nobody could see it, and it takes its time."""
        self._met("fsync", Path(f"/proc/self/fd/{descriptor}").readlink(), lambda: None)

    def _create(self, path, flags, *arguments, **options):
        def act():
            return _real["create"](path, flags, *arguments, **options)

        return self._met("open", path, act) if flags & os.O_CREAT else act()

    def _exchange(self, one, other):
        return self._met("exchange", one, lambda: _real["exchange"](one, other))

    def _counted(self, kind):
        real = getattr(os, kind)

        def stand_in(path, *arguments, **options):
            return self._met(kind, path, lambda: real(path, *arguments, **options))

        return stand_in

    def watch(self):
        stack = ExitStack()
        stack.enter_context(mock.patch.object(builtins, "open", self._open))
        stack.enter_context(mock.patch.object(io, "open", self._open))
        stack.enter_context(mock.patch.object(os, "fsync", self._fsync))
        stack.enter_context(mock.patch.object(tensors, "save_file", self._save_file))
        stack.enter_context(mock.patch.object(os, "open", self._create))
        stack.enter_context(mock.patch.object(files, "_exchange", self._exchange))
        for kind in _REST:
            stack.enter_context(mock.patch.object(os, kind, self._counted(kind)))
        return stack


class CountedFile:
    """A file whose writes are effects and reach it at once."""

    def __init__(self, real, path, effects):
        self._file, self._path, self._effects = real, path, effects

    def write(self, data):
        def act():
            count = self._file.write(data)
            self._file.flush()
            return count

        return self._effects._met("write", self._path, act, data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def __getattr__(self, name):
        return getattr(self._file, name)


@dataclass(frozen=True)
class Crash:
    number: int
    """Of the effect that did not happen any more, counted from 1."""
    effect: str
    way: str
    left: Path
    """The folder as the crash left it."""


class Snapshots(Effects):
    def __init__(self, root, into, wanted):
        super().__init__()
        self.root, self.into, self.wanted = root, into, wanted
        self.crashes, self.seen, self.unsynced = [], set(), set()

    def meet(self, kind, path, data=None):
        self.keep("killed")
        if data:
            self.keep("torn", lambda copy: append(copy / self.place(path), data[: len(data) // 2]))
        if self.unsynced:
            self.keep("power", self._halve_unsynced)

    def done(self, kind, path):
        if kind == "save":
            data = Path(path).read_bytes()
            self.keep("torn", lambda copy: (copy / self.place(path)).write_bytes(data[: len(data) // 2]))
        if kind in ("open", "write", "save"):
            self.unsynced.add(Path(path).stat().st_ino)
        elif kind == "fsync":
            self.unsynced.discard(Path(path).stat().st_ino)

    def place(self, path):
        return Path(path).absolute().relative_to(self.root)

    def keep(self, way, change=None):
        if not self.root.exists() or not self.wanted(len(self.trace)):
            return
        copy = self.into / f"{len(self.trace)}-{way}"
        shutil.copytree(self.root, copy, symlinks=True)
        if change is not None:
            change(copy)
        if (state := contents(copy, hidden=True)) in self.seen:
            shutil.rmtree(copy)
            return
        self.seen.add(state)
        self.crashes.append(Crash(len(self.trace), self.trace[-1], way, copy))

    def _halve_unsynced(self, copy):
        for path in self.root.rglob("*"):
            if path.is_file() and path.stat().st_ino in self.unsynced:
                os.truncate(copy / path.relative_to(self.root), path.stat().st_size // 2)


def append(path, data):
    with open(path, "ab") as file:
        file.write(data.encode() if isinstance(data, str) else bytes(data))


def crashes_of(operation, start, folder, wanted=lambda number: True):
    """(all effects, the different states that a crash at one of them leaves). `start` is what is there before."""
    root, into = folder / "under-way", folder / "crashed"
    shutil.copytree(start, root)
    into.mkdir()
    effects = Snapshots(root, into, wanted)
    with effects.watch():
        operation(root)
    effects.keep("done")
    return effects.trace, effects.crashes


def contents(path, hidden=False):
    """Names and checksums of everything, leftovers only if asked for: equal for folders that nobody can tell apart."""
    names = sorted(each for each in path.rglob("*") if hidden or "/.partial-" not in str(each))
    return tuple((str(each.relative_to(path)), files.checksum(each) if each.is_file() else "") for each in names)


class Refusing(Effects):
    """From effect `at` on nothing can be written any more; what is there can still be read and deleted."""

    def __init__(self, at, error):
        super().__init__()
        self.at, self.error = at, error

    def meet(self, kind, path, data=None):
        if len(self.trace) >= self.at and kind in WRITING:
            raise OSError(self.error, os.strerror(self.error))
