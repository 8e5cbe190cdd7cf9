"""What is seen while an encoder is trained: the bar and figures of any training, and what the development set says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from maskery.cli.live import Display, Meter
from maskery.tasks.folder import TaskFolder
from maskery.tasks.run import Watch
from maskery.train.loop import Update


class VectorMeter(Meter):
    """The headline is the first figure of an evaluation; a share of the machine's peak is not told."""

    def __init__(self, steps: int) -> None:
        super().__init__(steps, 0.0, 0.0)
        self.best: tuple[float, int] | None = None

    def add(self, update: Update, line: Mapping[str, Any]) -> None:
        super().add(update, line)
        figures = {key.removeprefix("eval/"): value for key, value in line.items() if key.startswith("eval/")}
        if not figures:
            return
        value = next(iter(figures.values()))
        if self.best is None or value > self.best[0]:
            self.best = value, update.step
        told = ", ".join(f"{name} {each:.4f}" for name, each in figures.items())
        best, step = self.best
        compared = "best so far" if step == update.step else f"best {best:.4f}, step {step:,}"
        self.evaluation = f"dev: {told} ({compared})"


@contextmanager
def watching(run: Path) -> Iterator[Watch]:
    """A watcher of `train_encoder`: the bar comes with the first update, every evaluation leaves its line."""
    shown: list[Display] = []

    def watch(update: Update, line: Mapping[str, Any]) -> None:
        if not shown:  # how many steps there are is known when the first one is done
            shown.append(Display(VectorMeter(TaskFolder(run).state["task"]["training"]["steps"])))
            shown[0].start()
        display = shown[0]
        display.log(update, line)
        if any(key.startswith("eval/") for key in line):
            meter = display.meter
            display.console.print(f"step {meter.step:,}/{meter.steps:,}: {meter.evaluation}", soft_wrap=True)

    try:
        yield watch
    finally:
        for display in shown:
            display.end(None)
