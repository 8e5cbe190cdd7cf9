"""Texts while they are written, and what is handed out in the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from maskery.randomness import Keys, keys
from maskery.writing.texts import Speller

ENDS = {
    "end": "the model ended it",
    "stop": "a text to stop at came",
    "length": "it has as many tokens as were asked for",
    "room": "the model has no further position",
    "rules": "every token was forbidden",
    "open": "it was interrupted",
}
"""Why a text ended."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """A text that a model wrote."""

    prompt: str
    text: str
    ids: tuple[int, ...]
    """Its tokens, without the one that ends it."""
    log_probability: float | None
    """Of its tokens and of the end, if it came, as the model tells it before any rule; None for gibbs."""
    ended: str
    """One of `ENDS`."""
    sample: int = 0
    """Which of the texts for this prompt."""

    def plain(self) -> dict[str, Any]:
        return {**self.__dict__, "ids": list(self.ids)}


@dataclass(kw_only=True)
class Draft:
    prompt: str
    prompt_ids: list[int]
    speller: Speller
    most: int
    """Tokens that may be written."""
    full: str
    """Why it ends when it has them: length or room."""
    before: list[int] = field(default_factory=list)
    """What counts as written before, for rules about repetition."""
    sample: int = 0
    ids: list[int] = field(default_factory=list)
    log_probability: float | None = 0.0
    ended: str = ""

    @property
    def history(self) -> list[int]:
        return [*self.before, *self.ids]

    def add(self, token: int, log_probability: float, end: int) -> None:
        self.log_probability = (self.log_probability or 0.0) + log_probability
        if token == end:
            self.ended = "end"
            return
        self.ids.append(token)
        if self.speller.stops(self.ids):
            self.ended = "stop"
        elif len(self.ids) >= self.most:
            self.ended = self.full

    def written(self) -> Written:
        return Written(
            prompt=self.prompt,
            text=self.speller.text(self.ids),
            ids=tuple(self.ids),
            log_probability=self.log_probability,
            ended=self.ended or "open",
            sample=self.sample,
        )


def keys_of(prompts: Sequence[Sequence[int]], samples: Sequence[int], seed: int) -> Keys:
    """(B,) a key for each text: of the prompt's tokens, the number of the sample and the seed, and of nothing beside
    it."""
    marks = [int.from_bytes(blake2b(np.asarray(ids, "<i8").tobytes(), digest_size=8).digest()) for ids in prompts]
    return keys(seed, "write", np.array(marks, dtype=np.uint64), np.array(samples, dtype=np.uint64))
