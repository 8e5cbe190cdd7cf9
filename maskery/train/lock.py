"""One process trains a run at a time. The lock ends with its process, however that ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from maskery import files
from maskery.errors import ExistsError

LOCK = "run.lock"
"""There while somebody trains; a process that was killed leaves it, unlocked, to the next."""
_ours: set[int] = set()
"""Open files of the locks that this process holds."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a run's folder; it is made if need be, and taken away again if nothing was put into it."""
    files.require_place(folder)
    missing = [each for each in (folder, *folder.absolute().parents) if not each.exists()]
    if folder.exists() and not folder.is_dir():
        raise ExistsError("is a file, not a folder", where=folder, repair="choose another --out")
    with files.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        held = _hold(folder / LOCK)
    _ours.add(held)
    try:
        yield
    finally:
        with suppress(OSError):  # a disk that refuses now has refused something before, which is told
            (folder / LOCK).unlink(missing_ok=True)
        _ours.discard(held)
        os.close(held)
        with suppress(OSError):
            for each in missing:
                each.rmdir()


def _let_go() -> None:
    """In a process that makes batches: it may outlive a killed maker for seconds, and must not hold the run then."""
    while _ours:
        os.close(_ours.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def _hold(path: Path) -> int:
    """The lock's open file; one that its holder removed in the meantime is made anew."""
    while True:
        held = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if not _lock(held):
            os.close(held)
            owner = path.read_text().strip() if path.exists() else ""
            raise ExistsError(
                f"is being trained by process {owner or '(just starting)'}",
                where=path.parent,
                repair=f"wait until it is done, or end it with kill {owner or 'PID'}, then --resume",
            )
        if path.exists() and path.stat().st_ino == os.fstat(held).st_ino:
            break
        os.close(held)
    with suppress(OSError):  # a full disk holds a lock without a number in it as well
        os.truncate(held, 0)
        os.write(held, f"{os.getpid()}\n".encode())
    return held


def _lock(held: int) -> bool:
    """Whether nobody else holds it. Where there are no locks (some network disks) nobody is known to."""
    try:
        import fcntl

        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return True
    return True
