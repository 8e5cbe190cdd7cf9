"""`--log tensorboard`: event files in RUN/tensorboard, one scalar for each number of a metrics line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from maskery.extras import optional
from maskery.recipes.recipe import Recipe
from maskery.train.loggers import Logger
from maskery.train.loop import Update

FOLDER = "tensorboard"
_FLUSH_SECONDS = 10


class TensorBoard(Logger):
    def __init__(self) -> None:
        self._library = optional("tensorboardX", "--log tensorboard")
        self._writer: Any = None

    def begin(self, run: Path, recipe: Recipe, step: int) -> None:
        folder = run / FOLDER
        before = len(list(folder.glob("events.*")))
        self._writer = self._library.SummaryWriter(
            str(folder),
            purge_step=step + 1 if before else None,  # hides what a stopped run wrote behind its checkpoint
            filename_suffix=f".{before}",  # names have whole seconds: a quick resume would overwrite the file before
            flush_secs=_FLUSH_SECONDS,
        )
        if not before:
            self._writer.add_text("recipe", "\n".join(f"    {line}" for line in recipe.toml().splitlines()), 0)

    def log(self, update: Update, line: Mapping[str, Any]) -> None:
        for name, value in line.items():
            if name != "step":
                self._writer.add_scalar(name, value, update.step)

    def end(self, error: BaseException | None) -> None:
        if self._writer is not None:
            self._writer.close()
