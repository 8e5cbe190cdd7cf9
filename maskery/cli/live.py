"""What is seen while a model trains: a bar and one line of figures on a terminal, a sparse line in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from maskery.cli.output import duration, talk
from maskery.language import phrases
from maskery.recipes.recipe import Recipe
from maskery.train.loggers import Logger
from maskery.train.loop import Update

_MEMORY = 0.95
"""Weight of the past in smoothed figures; younger runs remember less."""
_LOG_EVERY = 10.0


class Smooth:
    """A mean that forgets slowly and is not pulled towards its first value."""

    def __init__(self) -> None:
        self._sum = self._weight = 0.0

    def add(self, value: float) -> None:
        self._sum = _MEMORY * self._sum + value
        self._weight = _MEMORY * self._weight + 1.0

    @property
    def value(self) -> float:
        return self._sum / self._weight if self._weight else 0.0


class Meter:
    """The figures of a run so far."""

    def __init__(self, steps: int, flops_per_token: float, peak: float) -> None:
        self.steps, self.flops, self.peak = steps, flops_per_token, peak
        self.step, self.lr = 0, 0.0
        self.loss, self.tokens, self.seconds = Smooth(), Smooth(), Smooth()
        self.evaluation = ""

    def add(self, update: Update, line: Mapping[str, Any]) -> None:
        self.step, self.lr = update.step, update.lr
        self.loss.add(update.loss)
        self.tokens.add(update.tokens)
        self.seconds.add(update.seconds)
        if "eval/loss" in line:
            self.evaluation = f"held out: loss {line['eval/loss']:.3f}{_accuracy(line)}"

    @property
    def tokens_per_second(self) -> float:
        return self.tokens.value / self.seconds.value if self.seconds.value else 0.0

    @property
    def seconds_left(self) -> float:
        return (self.steps - self.step) * self.seconds.value

    def text(self) -> str:
        speed = f"{self.tokens_per_second:,.0f} tokens/s"
        if self.peak:
            speed += f" ({100 * self.tokens_per_second * self.flops / self.peak:.0f} % of peak)"
        parts = [f"step {self.step:,}/{self.steps:,}", f"loss {self.loss.value:.3f}", f"rate {self.lr:.2g}", speed]
        parts.append(f"{duration(self.seconds_left)} left")
        return ", ".join([*parts, self.evaluation] if self.evaluation else parts)


def _accuracy(line: Mapping[str, Any]) -> str:
    """Of the first question; where tokens were replaced, the generator's, which was asked for them, and the model's
    area."""
    replaced = any(key.startswith("eval/replaced_token/") for key in line)
    accuracy = line.get("eval/masked_token/accuracy" if replaced else "eval/accuracy")
    whose, area = "generator's " * replaced, line.get("eval/replaced_token/auc")
    told = "" if accuracy is None else f", {whose}accuracy {100 * accuracy:.1f} %"
    return told if area is None else f"{told}, replaced-token AUC {area:.3f}"


class Display(Logger):
    """Shows a meter after each update."""

    def __init__(
        self, meter: Meter, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.meter, self.console, self.clock = meter, console or talk(), clock
        self._live: Live | None = None
        self._told, self._printed = clock(), 0

    def begin(self, run: Path, recipe: Recipe, step: int) -> None:
        self.start()

    def start(self) -> None:
        if self.console.is_terminal:
            self._live = Live(console=self.console, refresh_per_second=4, transient=True)
            self._live.start()

    def end(self, error: BaseException | None) -> None:
        if self._live is not None:
            self._live.stop()
        if self.meter.step != self._printed:
            self._print()

    def log(self, update: Update, line: Mapping[str, Any]) -> None:
        self.meter.add(update, line)
        if self._live is not None:
            bar = ProgressBar(total=self.meter.steps, completed=self.meter.step, width=60)
            shown = Table.grid()
            shown.add_row(bar)
            shown.add_row(Text(phrases().line(self.meter.text())))
            self._live.update(shown)
        elif self.clock() - self._told >= _LOG_EVERY:
            self._print()

    def _print(self) -> None:
        self._told, self._printed = self.clock(), self.meter.step
        self.console.print(phrases().line(self.meter.text()), soft_wrap=True)
