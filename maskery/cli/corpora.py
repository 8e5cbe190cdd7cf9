"""`--corpus DIR` once, or several times with weights: `--corpus a=3 --corpus b=1`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from maskery.errors import InputError

if TYPE_CHECKING:
    from maskery.corpus.mixture import Corpora

HELP = "A folder made by maskery corpus build; several, with =WEIGHT or without, are mixed."
Weight = float | Fraction


def corpus_option(more: str = "") -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option("--corpus", metavar="DIR[=WEIGHT]", help=HELP + more)
    return option


def open_corpora(given: Sequence[str]) -> Corpora:
    """The corpus, or the mixture of several."""
    from maskery.cli.output import say
    from maskery.corpus.mixture import Mixture
    from maskery.corpus.store import Corpus

    asked = [parse_corpus(text) for text in given]
    opened = [Corpus.open(path) for path, _ in asked]
    mixed = Mixture(
        [corpus if weight is None else (corpus, weight) for corpus, (_, weight) in zip(opened, asked, strict=True)]
    )
    if len(opened) > 1:
        return mixed
    if mixed.weights is not None:
        say(f"--corpus {given[0]}: the weight of the only corpus changes nothing")
    return opened[0]


def parse_corpus(text: str) -> tuple[Path, Weight | None]:
    """A folder that is there is taken as it is; else what stands behind the last `=` is a weight."""
    path, equals, weight = text.rpartition("=")
    if not equals or not path or Path(text).is_dir():
        return Path(text), None
    try:
        return Path(path), _number(weight)
    except ValueError:
        if not Path(path).is_dir():
            return Path(text), None
    raise InputError(f"--corpus {text}: the weight {weight!r} is no number", repair=f"--corpus {path}=1")


def _number(text: str) -> Weight:
    """3, 0.25, 1/3; nan and inf are numbers too, to be refused by name."""
    try:
        size = 1.0 if "/" in text else float(text)
        # Exact only where that is short: 1e999999999 would have a billion digits.
        return Fraction(text) if 1e-12 < abs(size) < 1e12 else size or Fraction(0)
    except ZeroDivisionError:
        return math.inf
