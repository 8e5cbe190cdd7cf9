"""What is seen while a model is fine-tuned or an encoder trained: the bar and figures of any training, and what the
development set says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from maskery.cli.live import Display, Meter
from maskery.language import phrases
from maskery.tasks.folder import TaskFolder
from maskery.tasks.judge.measure import HEADLINES
from maskery.tasks.judge.words import figure_text
from maskery.tasks.plan import Part
from maskery.tasks.run import Watch
from maskery.train.loop import Update


class DevMeter(Meter):
    """Of an evaluation the named figures, the first of which decides, or all; a share of the machine's peak is not
    told."""

    def __init__(self, steps: int, names: tuple[str, ...] = (), title: str = "") -> None:
        super().__init__(steps, 0.0, 0.0)
        self.names, self.title = names, title
        self.best: tuple[float, int] | None = None

    def text(self) -> str:
        return self.title + super().text()

    def add(self, update: Update, line: Mapping[str, Any]) -> None:
        super().add(update, line)
        every = {key.removeprefix("eval/"): value for key, value in line.items() if key.startswith("eval/")}
        figures = {name: every[name] for name in self.names or every} if every else {}
        if not figures:
            return
        value = next(iter(figures.values()))
        if self.best is None or value > self.best[0]:
            self.best = value, update.step
        told = ", ".join(f"{name} {figure_text(each)}" for name, each in figures.items())
        best, step = self.best
        compared = "best so far" if step == update.step else f"best {figure_text(best)}, step {step:,}"
        if not step:
            compared = f"worse than {figure_text(best)} before training"
        self.evaluation = f"dev: {told} ({compared})"


@contextmanager
def watching(part: Part) -> Iterator[Watch]:
    """A watcher of one training, or of the pretraining before it."""
    names = HEADLINES[part.task] if part.task else ()
    with _shown(lambda: DevMeter(part.steps, names, f"{part.title}: " if part.title else "")) as watch:
        yield watch


@contextmanager
def watching_encoder(run: Path) -> Iterator[Watch]:
    """A watcher of `train_encoder`: how many steps there are is known when the first one is done."""

    def meter() -> DevMeter:
        state = TaskFolder(run).state
        made, best = DevMeter(state["task"]["training"]["steps"]), state.get("best")
        if best and math.isfinite(best["value"]):
            made.best = best["value"], best["step"]  # the start, or what a resumed run has found
        return made

    with _shown(meter) as watch:
        yield watch


@contextmanager
def _shown(meter_of: Callable[[], DevMeter]) -> Iterator[Watch]:
    """The bar comes with the first update, every evaluation leaves its line."""
    shown: list[Display] = []

    def watch(update: Update, line: Mapping[str, Any]) -> None:
        if not shown:
            shown.append(Display(meter_of()))
            shown[0].start()
        display = shown[0]
        display.log(update, line)
        if any(key.startswith("eval/") for key in line):
            meter = display.meter
            told = f"step {meter.step:,}/{meter.steps:,}: {meter.evaluation}"
            display.console.print(phrases().line(told), soft_wrap=True)
        if update.step == display.meter.steps:
            display.end(None)

    try:
        yield watch
    finally:
        for display in shown:
            display.end(None)
