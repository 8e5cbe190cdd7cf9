"""What is seen while a model is fine-tuned: the bar and figures of any training, and what the development set says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from maskery.cli.live import Display, Meter
from maskery.tasks.judge.measure import HEADLINES
from maskery.tasks.judge.words import figure_text
from maskery.tasks.plan import Part
from maskery.tasks.run import Watch
from maskery.train.loop import Update


class TaskMeter(Meter):
    """The figures of a part of the work; a share of the machine's peak is not told."""

    def __init__(self, part: Part) -> None:
        super().__init__(part.steps, 0.0, 0.0)
        self.names = HEADLINES[part.task] if part.task else ()
        self.title = f"{part.title}: " if part.title else ""
        self.best: tuple[float, int] | None = None

    def text(self) -> str:
        return self.title + super().text()

    def add(self, update: Update, line: Mapping[str, Any]) -> None:
        super().add(update, line)
        value = line.get(f"eval/{self.names[0]}") if self.names else None
        if value is None:
            return
        if self.best is None or value > self.best[0]:
            self.best = value, update.step
        figures = ", ".join(f"{name} {figure_text(line[f'eval/{name}'])}" for name in self.names)
        best, step = self.best
        compared = "best so far" if step == update.step else f"best {figure_text(best)}, step {step:,}"
        self.evaluation = f"dev: {figures} ({compared})"


@contextmanager
def watching(part: Part) -> Iterator[Watch]:
    """A watcher of one training: the bar comes with the first update, every evaluation leaves its line."""
    shown: list[Display] = []

    def watch(update: Update, line: Mapping[str, Any]) -> None:
        if not shown:
            shown.append(Display(TaskMeter(part)))
            shown[0].start()
        display = shown[0]
        display.log(update, line)
        if any(key.startswith("eval/") for key in line):
            meter = display.meter
            display.console.print(f"step {meter.step:,}/{meter.steps:,}: {meter.evaluation}", soft_wrap=True)
        if update.step == display.meter.steps:
            display.end(None)

    try:
        yield watch
    finally:
        for display in shown:
            display.end(None)
