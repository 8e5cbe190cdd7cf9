"""`maskery.pretrain`: what a user says in Python -> a run. The command line says the same with its options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from maskery import arguments
from maskery.arguments import checked
from maskery.corpus.mixture import AnyCorpora, corpus_of
from maskery.errors import ArgumentError
from maskery.recipes.recipe import AnyRecipe, Recipe
from maskery.train import run
from maskery.train.build import Say
from maskery.train.loggers import Logger
from maskery.train.options import Options, dotted
from maskery.train.run import Run, say_on_stderr
from maskery.train.settle import settle


@checked
def pretrain(
    recipe: AnyRecipe,
    corpus: AnyCorpora,
    out: str | Path,
    resume: bool = False,
    *,
    size: str | None = None,
    settings: Mapping[str, Any] | None = None,
    steps: int | None = None,
    tokens: int | None = None,
    budget: str | None = None,
    lr: float | None = None,
    batch: int | None = None,
    length: int | None = None,
    seed: int | None = None,
    as_published: bool = False,
    start_from: str | os.PathLike[str] | None = None,
    allow_pickle: bool = False,
    workers: int = 0,
    loggers: Sequence[Logger] = (),
    fsdp: bool = False,
    say: Say = say_on_stderr,
) -> Run:
    """Train a model; the result is a run folder that is also a model folder.

    A recipe given by its name or path leaves questions open. What is not answered by `size`, `settings` (dotted keys),
    `steps`, `tokens`, `budget`, `lr`, `batch`, `length` or `seed` is chosen to suit the run and the machine, and said
    with its reason; `as_published` keeps the paper's settings. A `Recipe` is complete, and trained exactly as it is.

        maskery.pretrain("bert", "my-corpus", "my-run", budget="10m")
        maskery.pretrain(maskery.recipe("bert", {"training.steps": 1000}, size="tiny"), "my-corpus", "my-run")

    `loggers` are called at each update. Started by torchrun, this is one rank of several, all of which have to call it.
    Copies of the weights are kept equal (DDP), or with `fsdp` each rank holds a part of them. The first rank writes,
    talks and logs.
    """
    store = corpus_of(corpus)
    folder = arguments.path("out", out, "the path of a run folder")
    arguments.call("say", say)
    arguments.processes("workers", workers)
    for number, each in enumerate(arguments.items("loggers", loggers, "a list of loggers")):
        if not all(callable(getattr(each, name, None)) for name in ("begin", "log", "end")):
            raise arguments.wrong(f"loggers[{number}]", each, "an object with begin, log and end, as maskery.Logger")
    given: dict[str, Any] = {
        **{"size": size, "settings": settings, "steps": steps, "tokens": tokens, "budget": budget, "lr": lr},
        **{"batch": batch, "length": length, "seed": seed, "as_published": as_published or None},
    }
    named = {name: value for name, value in given.items() if value is not None}
    if isinstance(recipe, str | os.PathLike):
        begin = None if start_from is None else arguments.path("start_from", start_from, "the path of a model folder")
        options = _options(str(recipe), named, begin, allow_pickle)
        recipe = settle(options, store, folder, resume, say=say, fsdp=fsdp)
    elif isinstance(recipe, Recipe) and named:
        raise _beside_a_recipe(next(iter(named)))
    return run.pretrain(
        recipe, store, folder, resume, start_from=start_from, allow_pickle=allow_pickle, workers=workers,
        loggers=loggers, fsdp=fsdp, say=say,
    )  # fmt: skip


def _options(recipe: str, named: Mapping[str, Any], start_from: Path | None, allow_pickle: bool) -> Options:
    for name in ("steps", "tokens", "batch", "length", "seed"):
        arguments.optional_count(name, named.get(name), 0 if name == "seed" else 1)
    settings = dotted(named.get("settings", {}))
    return Options(recipe=recipe, **{**named, "settings": settings}, start_from=start_from, allow_pickle=allow_pickle)


def _beside_a_recipe(name: str) -> ArgumentError:
    return ArgumentError(
        f"{name} is given beside a Recipe, which is complete",
        repair=f"give the recipe by its name, or change it: recipe.changed({{...}}), and leave out {name}",
    )
