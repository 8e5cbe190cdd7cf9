"""What a trained generator puts into the chosen slots: the tokens that the model reads (ELECTRA)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model
from maskery.edit import ASKED
from maskery.errors import InputError
from maskery.feed import Feed
from maskery.inspection.walk import Visit, visits
from maskery.objectives.config import ASKED_OF_GENERATOR
from maskery.objectives.masked_token import MaskedToken
from maskery.rewrite import rewrite
from maskery.rows.ragged import Rows

SIGN = "▸"
"""Stands before a token that a generator drew."""


@dataclass(frozen=True)
class Generator:
    """A run's generator, and the run."""

    run: str
    model: Model

    def read(self, feed: Feed, visit: Visit, rows: Rows) -> NDArray[np.int64]:
        """(M,) what the model reads of the rows of a visit, drawn by the numbers that training draws by."""
        batch = feed.make(*visit)
        with torch.inference_mode():
            head = self.model.heads[ASKED_OF_GENERATOR]
            ids = rewrite(self.model.network, MaskedToken(), head, batch).batch.ids.numpy()
        found: NDArray[np.int64] = ids[rows.row, rows.slot]
        return found

    def counts(self, feed: Feed, rows: int, step: int) -> dict[str, int]:
        """Tokens drawn in the first rows from a step on, and how many of them are those that stood there."""
        drawn = right = 0
        for visit in visits(feed, rows, step):
            held = feed.corrupted(*visit)
            chosen = np.isin(held.edit, ASKED)
            drawn += int(chosen.sum())
            right += int((self.read(feed, visit, held) == held.original)[chosen].sum())
        return {"rows": rows, "drawn": drawn, "original": right}


def generator_of(path: str | Path, feed: Feed) -> Generator:
    """The generator of a model folder, if it has one that fits the feed's recipe and corpus."""
    if not feed.recipe.model.generator.width:
        raise InputError(
            f"recipe {feed.recipe.name} has no generator, so no token is drawn",
            repair="leave out --model, or name the recipe that the model was trained with, such as electra",
        )
    model = load(path)
    small = model.generator
    if small is None or ASKED_OF_GENERATOR not in small.heads:
        raise InputError("has no generator", where=path, repair="--model RUN with a run of electra")
    tokenizer = model.tokenizer
    if tokenizer is None or tokenizer.fingerprint != feed.corpus.tokenizer.fingerprint:
        raise InputError(
            "the corpus was built with another tokenizer than the model's",
            where=path,
            repair="--corpus with the corpus that the model was trained on",
        )
    small.eval()
    return Generator(str(path), small)
