"""The steps of the demo as a story: what and why before each, how long it took behind it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from maskery.cli.demo.words import Words
from maskery.cli.output import Update, progress, say


class Story:
    def __init__(self, words: Words, clock: Callable[[], float] = time.monotonic) -> None:
        self.words, self.clock = words, clock
        self.seconds: dict[str, float] = {}
        """What each step took, by its name."""

    @contextmanager
    def step(self, told: str) -> Iterator[str]:
        """One step; `told` is its name, a colon of either language, and why. The name is given."""
        name = told.replace("：", ":").partition(":")[0]
        number = len(self.seconds) + 1
        self.tell(f"{number}. {told}")
        began = self.clock()
        self.seconds[name] = 0.0
        yield name
        self.seconds[name] = self.clock() - began

    def bar(self, label: str) -> AbstractContextManager[Update]:
        return progress(f"   {label}")

    def tell(self, line: str) -> None:
        say(line)

    def detail(self, line: str) -> None:
        say(f"   {line}")

    @property
    def total(self) -> float:
        return sum(self.seconds.values())
