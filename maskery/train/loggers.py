"""Loggers: who else is told of a run's progress. `metrics.jsonl` is the run folder's own and always written.

A logger sees and never steers: one that raises is told of once, ended and left out, and training goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Protocol

from maskery.recipes.recipe import Recipe
from maskery.registry import Registry
from maskery.train.loop import Update

LOGGERS: Registry[Callable[[], Logger]] = Registry("logger", {"tensorboard": "maskery.train.tensorboard:TensorBoard"})
"""Those that a command line can name."""


class Logger(Protocol):
    """Is called while a run is trained, such as a service for metrics. A subclass may leave out what it has no use for.

    class Printer(maskery.Logger):
        def log(self, update, line):
            print(line["step"], line["loss"])

    maskery.pretrain("bert", "my-corpus", "my-run", loggers=[Printer()])
    """

    def begin(self, run: Path, recipe: Recipe, step: int) -> None:
        """Training starts; `step` updates were done before (0, unless the run is resumed)."""

    def log(self, update: Update, line: Mapping[str, Any]) -> None:
        """An update was done; `line` is what went to metrics.jsonl, held-out figures included."""

    def end(self, error: BaseException | None) -> None:
        """Training is over, because it is finished (None), stopped by a signal, or by an error."""


class Loggers:
    """Several as one; a context, so that all are ended whatever happens."""

    def __init__(self, loggers: Sequence[Logger], say: Callable[[str], None]) -> None:
        self._active, self._say = list(loggers), say

    def __enter__(self) -> Loggers:
        return self

    def begin(self, run: Path, recipe: Recipe, step: int) -> None:
        for logger in tuple(self._active):
            self._try(logger, "begin", partial(logger.begin, run, recipe, step))

    def log(self, update: Update, line: Mapping[str, Any]) -> None:
        for logger in tuple(self._active):
            self._try(logger, f"step {update.step}", partial(logger.log, update, MappingProxyType(dict(line))))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for logger in tuple(self._active):
            self._try(logger, "end", partial(logger.end, error))

    def _try(self, logger: Logger, what: str, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as failure:
            self._active = [each for each in self._active if each is not logger]
            said = f"{type(failure).__name__}: {failure}"
            if what == "end":
                self._say(f"logger {type(logger).__name__} failed in end: {said}")
                return
            self._say(f"logger {type(logger).__name__} failed in {what} and is left out, training goes on: {said}")
            with suppress(Exception):  # it was told of already
                logger.end(failure)
