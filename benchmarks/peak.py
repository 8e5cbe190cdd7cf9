"""How much memory something takes: the peak of a process above what it had, and the peak of a whole tree of processes.

One process: Linux remembers the largest resident set of a process (VmHWM in /proc/self/status) and forgets it when
"5" is written to /proc/self/clear_refs. So the peak between two moments is read exactly, however short it was. A
system that cannot forget gives the peak since the start, which is right as long as the work itself is what was largest.

Several processes (a build with workers, ranks): pages they share must count once, so the proportional set sizes (PSS)
of the tree are added up every few hundredths of a second. A shorter peak can be missed.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
STATUS, FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def _status(name: str) -> int | None:
    if STATUS.is_file():
        for line in STATUS.read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return None


def resident() -> int:
    """Bytes of this process that lie in memory now; where that is not told, its peak so far."""
    return _status("VmRSS") or highest()


def highest() -> int:
    """The largest number of resident bytes since the start or since `forget`."""
    unit = 1 if sys.platform == "darwin" else 1024
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def forget() -> bool:
    """Begin a new peak; False where the system cannot."""
    try:
        FORGET.write_text("5")
    except OSError:
        return False
    return True


def alone(work: Callable[..., T], *arguments: Any) -> T:
    """`work(*arguments)` in a fresh process of its own; its result, or its error."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer, args=(theirs, work, arguments))
    process.start()
    theirs.close()
    try:
        result, error = ours.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"{work.__name__}{arguments} ended with code {process.exitcode} and no result") from None
    process.join()
    if error is not None:
        raise RuntimeError(f"{work.__name__}{arguments}: {error}")
    found: T = result
    return found


def _answer(pipe: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        pipe.send((work(*arguments), None))
    except Exception as error:
        pipe.send((None, f"{type(error).__name__}: {error}"))


def run_and_watch(command: list[str], environment: dict[str, str], every: float = 0.05) -> int | None:
    """Run a command to its end; the peak of its whole tree in bytes, None where the system does not tell.

    A command that fails is an error that carries what it said.
    """
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
    )
    ended = threading.Event()
    peak = 0

    def watch() -> None:
        nonlocal peak
        while not ended.wait(every):
            peak = max(peak, sum(map(proportional, tree(process.pid))))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    said, _ = process.communicate()
    ended.set()
    watcher.join()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with code {process.returncode}:\n{said[-2000:]}")
    return peak or None


def tree(root: int) -> list[int]:
    """The process and everything it started, directly or not."""
    found, waiting = [], [root]
    while waiting:
        process = waiting.pop()
        found.append(process)
        for thread in _listed(Path(f"/proc/{process}/task")):
            waiting += [int(child) for child in _text(thread / "children").split()]
    return found


def proportional(process: int) -> int:
    """Bytes in memory, pages shared by n processes counted as 1/n; 0 for a process that has gone."""
    for line in _text(Path(f"/proc/{process}/smaps_rollup")).splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def environment(threads: int) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": str(threads)}
