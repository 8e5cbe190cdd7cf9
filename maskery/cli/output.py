"""What verbs share on the way out: results on stdout, talk on stderr, JSON for machines, progress with an estimate."""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from maskery.errors import InputError
from maskery.language import phrases

if TYPE_CHECKING:
    from pathlib import Path

    from maskery.checkpoint.model import Model
    from maskery.picture import Picture

WIDTH_WITHOUT_TERMINAL = 120
_quiet = False


def be_quiet() -> None:
    """No more talk and no results from this process: another rank of the run speaks for all."""
    global _quiet
    _quiet = True


class Update(Protocol):
    """Tell how much is done; `total` may be corrected on the way, `note` is shown beside the bar.

    An infinite total: no end can be told for a while. The bar then only moves, and a log is told that work goes on.
    """

    def __call__(self, done: float, total: float | None = None, note: str = "") -> None: ...


def results() -> Console:
    """For tables and text on stdout; as wide as the terminal, or 120 columns into a pipe."""
    wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH_WITHOUT_TERMINAL
    return Console(markup=False, highlight=False, emoji=False, width=wide, quiet=_quiet)


def talk() -> Console:
    return Console(stderr=True, markup=False, highlight=False, emoji=False, quiet=_quiet)


def say(message: str) -> None:
    """One remark on stderr, whole: a terminal may wrap it, a log gets one line. It is given in English, and printed in
    the language of results."""
    talk().print(phrases().line(message), soft_wrap=True)


def say_all(messages: Iterable[str]) -> None:
    for message in messages:
        say(message)


def tell(line: str) -> None:
    """One line of the result on stdout, given in English as in `say`."""
    results().print(phrases().line(line), soft_wrap=True)


def say_found(model: Model, before: str = "") -> None:
    """What there is to tell about opening a model: which it is, and tensors that are missing, unused or ignored."""
    for line in [*filter(None, [model.note]), *model.report.lines()]:
        say(before + line)


def say_unknown(model: Model, texts: Sequence[str]) -> None:
    """Which characters of the texts the model's vocabulary lacks, and what helps."""
    from maskery.text.unknown import unknown_in

    told = "" if model.tokenizer is None else unknown_in(model.tokenizer, texts)
    if told:
        say(told)


def save_picture(picture: Picture, path: Path) -> None:
    say(f"written: {picture.save(path)}")


def emit_json(value: Any) -> None:
    """One JSON value on stdout; not-a-number is an error, because JSON has none."""
    if _quiet:
        return
    unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    try:
        text = json.dumps(value, indent=2, ensure_ascii=not unicode, allow_nan=False)
    except ValueError:
        cause = "a figure of the result is not a finite number, and JSON has no such numbers"
        raise InputError(cause, repair="leave out --json to see which, and look at the model and the texts") from None
    sys.stdout.write(text + "\n")


@contextmanager
def progress(
    label: str,
    total: float | None = None,
    *,
    every: float = 10.0,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Update]:
    """A bar where stderr is a terminal; elsewhere one line every `every` seconds and one at the end."""
    console = talk()
    if not console.is_terminal:
        lines = _Lines(label, total, every, clock)
        try:
            yield lines
        finally:
            lines.stop_waiting()
        lines.finish()
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
    ) as bars:
        task = bars.add_task(label, total=total, note="")

        def update(done: float, total: float | None = None, note: str = "") -> None:
            bars.update(task, completed=done, total=None if total == math.inf else total, note=note)
            if total == math.inf:
                bars.tasks[0].total = None  # the only way to take it back

        yield update


@contextmanager
def late_progress(
    label: str, total: float, *, after: float = 2.0, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[float], None]]:
    """A bar that comes only if the work takes longer than `after` seconds."""
    begun = clock()
    with ExitStack() as opened:
        update: Update | None = None

        def told(done: float) -> None:
            nonlocal update
            if update is None and clock() - begun > after:
                update = opened.enter_context(progress(label, total))
            if update is not None:
                update(done)

        yield told


class _Lines:
    """Progress for a log file."""

    def __init__(self, label: str, total: float | None, every: float, clock: Callable[[], float]) -> None:
        self.label, self.total, self.every, self.clock = label, total, every, clock
        self.begun = self.told = clock()
        self.done = 0.0
        self._heard: threading.Event | None = None
        self._note = ""

    def __call__(self, done: float, total: float | None = None, note: str = "") -> None:
        if total == math.inf:
            self._wait(note)
            return
        self.stop_waiting()
        self.done, self.total = done, total if total is not None else self.total
        now = self.clock()
        if now - self.told >= self.every:
            self.told = now
            say(self._line(now - self.begun, note))

    def _wait(self, note: str) -> None:
        """Tell from time to time that work goes on which tells nothing itself."""
        self._note = note
        if self._heard is not None:
            return
        heard = self._heard = threading.Event()

        def tell() -> None:
            while not heard.wait(self.every):
                self.told = self.clock()
                say(f"{self.label}: {self._note}, {duration(self.told - self.begun)} so far")

        threading.Thread(target=tell, daemon=True).start()

    def stop_waiting(self) -> None:
        if self._heard is not None:
            self._heard.set()
            self._heard = None

    def _line(self, elapsed: float, note: str) -> str:
        parts = [f"{self.label}: {self.done:g}"]
        if self.total:
            parts = [f"{self.label}: {100 * self.done / self.total:.0f} %"]
            if self.done > 0:
                left = elapsed * max(0.0, self.total - self.done) / self.done
                parts.append(f"about {duration(left)} left")
        return ", ".join([*parts, note] if note else parts)

    def finish(self) -> None:
        say(f"{self.label}: done in {duration(self.clock() - self.begun)}")


def counted(number: int, noun: str) -> str:
    """1 row, 1,000 rows"""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(seconds: float) -> str:
    """90.4 -> 1m 30s"""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"


def print_table(lines: Sequence[Sequence[str]]) -> None:
    """Cells under each other: the first to the left, the others to the right."""
    widths = [max(cell_len(line[at]) for line in lines) for at in range(len(lines[0]))]
    for first, *rest in lines:
        cells = [first + _gap(first, widths[0])]
        cells += [_gap(cell, width) + cell for cell, width in zip(rest, widths[1:], strict=True)]
        results().print("  ".join(cells).rstrip(), soft_wrap=True)


def _gap(cell: str, width: int) -> str:
    """Han characters are two columns wide."""
    return " " * (width - cell_len(cell))
