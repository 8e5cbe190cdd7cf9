"""How text is written: which way a token is chosen, what is forbidden, when it ends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maskery.errors import InputError, UnknownName

WAYS = ("greedy", "beam", "sample", "gibbs")
ORDERS = ("random", "sequential")
_ONLY = {
    "beams": ("beam",),
    "length_penalty": ("beam",),
    "early": ("beam",),
    "top_p": ("sample",),
    "temperature": ("sample", "gibbs"),
    "top_k": ("sample", "gibbs"),
    "steps": ("gibbs",),
    "burn_in": ("gibbs",),
    "order": ("gibbs",),
    "least": ("greedy", "beam", "sample"),
    "repetition": ("greedy", "beam", "sample"),
    "no_repeat": ("greedy", "beam", "sample"),
    "stop": ("greedy", "beam", "sample"),
}
"""Settings that belong to some ways alone; the first is meant where nothing else tells."""
_GIBBS_TOP_K = 100
STEPS_PER_TOKEN = 12


@dataclass(frozen=True, kw_only=True)
class How:
    how: str = "greedy"
    """greedy: the most probable token; beam: the most probable text that is found with some texts in hand; sample: a
    draw; gibbs: masks are filled again and again."""
    new: int = 64
    """Most tokens that are written; for gibbs, their number."""
    least: int = 0
    """No end before so many."""
    samples: int = 1
    """Texts for each prompt."""
    seed: int = 0
    temperature: float = 1.0
    """Scores are divided by it before a draw."""
    top_k: int = 0
    """A draw is among the so many most probable; 0 = all."""
    top_p: float = 1.0
    """A draw is among the most probable that together have this probability."""
    repetition: float = 1.0
    """Scores of tokens that stand in the text already are divided by it if positive, multiplied otherwise."""
    no_repeat: int = 0
    """No stretch of so many tokens comes twice; 0 = no such rule."""
    stop: tuple[str, ...] = ()
    """A text ends before the first of these."""
    beams: int = 4
    """Texts in hand."""
    length_penalty: float = 1.0
    """A text's log-probability is divided by its length to this power."""
    early: bool = True
    """Whether a search ends when as many texts as beams are finished, or goes on while a better one is possible."""
    steps: int = 0
    """gibbs: tokens that are drawn in all; 0 = 12 for each token of the text."""
    burn_in: float = 0.5
    """gibbs: the share of draws at the beginning that are among all tokens, whatever `top_k` says."""
    order: str = "random"
    """gibbs: random places, or from left to right again and again (sequential)."""

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise UnknownName("order", self.order, ORDERS)
        small = {"new": 1, "samples": 1, "beams": 1, "least": 0, "no_repeat": 0, "top_k": 0, "steps": 0}
        for name, least in small.items():
            if getattr(self, name) < least:
                raise InputError(f"{name} {getattr(self, name)} is too small", repair=f"{name} {least} or more")
        for name in ("temperature", "repetition"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} {getattr(self, name):g} is no positive number", repair=f"{name} 1")
        if not 0 < self.top_p <= 1:
            raise InputError(f"top_p {self.top_p:g} is no probability above 0", repair="top_p 0.9")
        if not 0 <= self.burn_in <= 1:
            raise InputError(f"burn_in {self.burn_in:g} is no share", repair="burn_in 0.5")
        if not math.isfinite(self.length_penalty):
            raise InputError(f"length_penalty {self.length_penalty:g} is no number", repair="length_penalty 1")
        if self.least > self.new:
            raise InputError(f"least {self.least} is more than new {self.new}", repair=f"new {self.least} or more")
        if not all(self.stop):
            raise InputError("a text to stop at is empty", repair="leave it out")
        self._require_samples()

    def _require_samples(self) -> None:
        if self.how == "greedy" and self.samples > 1:
            raise InputError("greedy writes one text for a prompt", repair="how sample, or how beam")
        if self.how == "beam" and self.samples > self.beams:
            raise InputError(f"{self.samples} texts of {self.beams} beams", repair=f"beams {self.samples} or more")


def how_of(how: str | None, settings: Mapping[str, Any]) -> How:
    """The way that was asked for, or that the settings mean. Settings that are None were not given."""
    given = {name: value for name, value in settings.items() if value is not None}
    if how is None:
        meant = [_ONLY[name][0] for name in given if name in _ONLY and _ONLY[name][0] != "greedy"]
        how = meant[0] if meant else "sample" if given.get("samples", 1) > 1 else "greedy"
    if how not in WAYS:
        raise UnknownName("way to write", how, WAYS)
    for name in given:
        if how not in _ONLY.get(name, WAYS):
            ways = " or ".join(_ONLY[name])
            raise InputError(f"{name} is for the way {ways}, not for {how}", repair=f"how {_ONLY[name][0]}")
    if how == "gibbs":
        given.setdefault("top_k", _GIBBS_TOP_K)
    return How(how=how, **given)
