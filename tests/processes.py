"""The command line in a process of its own that can be stopped and killed, without the seconds that imports take: it is
forked from one that has done them. What only a new interpreter shows is tested with `python -m maskery`."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from multiprocessing import forkserver
from pathlib import Path
from unittest import mock

PATIENCE = 600
"""Seconds; only what hangs takes them."""
_IMPORTS = ["maskery.cli.app", "maskery.train.run", "maskery.compare.run", "maskery.cli.demo.steps"]
_CONTEXT = multiprocessing.get_context("forkserver")


def _run(arguments: list[str], folder: Path) -> None:
    from maskery.cli import main

    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    for number, name in ((1, "out"), (2, "err")):
        with open(folder / name, "wb") as file:
            os.dup2(file.fileno(), number)
    sys.exit(main(arguments))


class Command:
    """`maskery ARGUMENTS`, leader of a group of processes; `folder` is for what it says."""

    def __init__(self, arguments: list[str], folder: Path):
        folder.mkdir(exist_ok=True)
        with mock.patch.dict(os.environ, {"OMP_NUM_THREADS": "1"}):
            _CONTEXT.set_forkserver_preload(_IMPORTS)
            forkserver.ensure_running()
        self._folder, self._process = folder, _CONTEXT.Process(target=_run, args=(arguments, folder))
        self._process.start()

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def wait_until(self, ready) -> bool:
        """Whether it came true while the process was alive."""
        end = time.monotonic() + PATIENCE
        while self.alive:
            if ready():
                return True
            assert time.monotonic() < end
            time.sleep(0.002)
        return False

    def signal_group(self, number: int) -> None:
        """As a terminal does: every process of the group hears it."""
        os.killpg(self._process.pid, number)

    def signal(self, number: int) -> None:
        os.kill(self._process.pid, number)

    def end(self) -> tuple[int, str, str]:
        """Exit code, results and talk, when it has ended."""
        self._process.join(PATIENCE)
        assert not self.alive
        out, err = ((self._folder / name).read_text(encoding="utf-8") for name in ("out", "err"))
        return self._process.exitcode, out, err
