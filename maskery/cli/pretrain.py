"""`maskery pretrain`: a recipe and a corpus in, a run folder out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import JsonOption, PickleOption, SetOption, SizeOption, parse_settings

if TYPE_CHECKING:
    from maskery.cli.choices import Asked, Choice
    from maskery.cli.live import Meter
    from maskery.corpus.store import Corpus
    from maskery.model.config import Shape
    from maskery.recipes.recipe import Recipe
    from maskery.train.run import Run


def pretrain(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A name, or the path of a .toml file.")],
    corpus: Annotated[Path, typer.Option("--corpus", metavar="DIR", help="A folder made by maskery corpus build.")],
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="The run's folder.")],
    size: SizeOption = None,
    steps: Annotated[int | None, typer.Option("--steps", metavar="N", help="Updates.")] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", metavar="N", help="Real positions to read.")] = None,
    budget: Annotated[str | None, typer.Option("--budget", metavar="TIME", help="30s, 10m or 2h.")] = None,
    batch: Annotated[int | None, typer.Option("--batch", metavar="ROWS", help="Rows of one update.")] = None,
    length: Annotated[int | None, typer.Option("--length", metavar="T", help="Slots of a row.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", help="Of everything that is drawn.")] = None,
    save_every: Annotated[int | None, typer.Option("--save-every", metavar="N", help="Updates.")] = None,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=0, help="Processes that make batches.")] = 0,
    settings: SetOption = None,
    start_from: Annotated[
        Path | None, typer.Option("--from", metavar="MODEL", help="Begin with the weights of this model.")
    ] = None,
    allow_pickle: PickleOption = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Train a model. What is left open is chosen so that it finishes on a CPU, and told."""
    from maskery.cli.choices import Asked, flat
    from maskery.cli.output import counted, duration, emit_json, results, say
    from maskery.corpus.store import Corpus

    began = time.monotonic()
    asked = Asked(
        recipe=recipe,
        size=size,
        settings=flat(parse_settings(settings)),
        steps=steps,
        tokens=tokens,
        budget=budget,
        batch=batch,
        length=length,
        seed=seed,
        save_every=save_every,
        start_from=start_from,
        allow_pickle=allow_pickle,
    )
    store = Corpus.open(corpus)
    resolved = settle(asked, store, out, resume, began)
    run = train(resolved, store, out, resume, start_from=start_from, workers=workers, allow_pickle=allow_pickle)
    took = time.monotonic() - began
    if as_json:
        emit_json(summary(run, took))
        return
    done = f"{out}: a model of {counted(resolved.training.steps, 'step')}, in {duration(took)}"
    results().print(done, soft_wrap=True)
    mask = store.tokenizer.names.get("mask", "[MASK]")
    say(f'next: maskery fill {out} "a text with {mask} in it"        maskery info {out}')


def settle(asked: Asked, corpus: Corpus, out: Path, resume: bool, began: float) -> Recipe:
    """The recipe with nothing left open; every automatic choice is told."""
    from maskery.cli.choices import choices, resolve
    from maskery.cli.output import say
    from maskery.files import require_writable
    from maskery.train.folder import RunFolder
    from maskery.train.run import occupied

    stored = None
    if occupied(out, resume) and RunFolder(out).begun:
        stored = RunFolder(out).recipe
    require_writable(out)
    corpus.verify()
    model = None
    if stored is not None and RunFolder(out).state.get("from"):
        model = stored.model
    elif asked.start_from is not None:
        model = _shape_to_start_from(asked.start_from, asked.allow_pickle)
    chosen = choices(asked, model, stored is not None)
    resolved = resolve(asked, chosen, stored)
    for choice in chosen:
        say(choice.reason if stored is None else f"as the run was started: {_values(resolved, choice, asked)}")
    resolved.require()
    return _with_saving(_with_steps(resolved, asked, corpus, stored, began), asked)


def _shape_to_start_from(path: Path, allow_pickle: bool) -> Shape:
    """The shape of a model; what was found when it was opened is told."""
    from maskery.checkpoint.load import load

    loaded = load(path, allow_pickle=allow_pickle)
    return loaded.config


def _values(resolved: Recipe, choice: Choice, asked: Asked) -> str:
    """The keys of a choice as the recipe answers them."""
    plain = resolved.plain()
    open_keys = [key.partition(".") for key in choice.keys if key not in asked.given]
    return ", ".join(f"{table}.{name} = {plain[table][name]}" for table, _, name in open_keys)


def _with_steps(resolved: Recipe, asked: Asked, corpus: Corpus, stored: Recipe | None, began: float) -> Recipe:
    from maskery.cli import budget
    from maskery.cli.choices import CPU_BUDGET, on_cpu
    from maskery.cli.output import counted, say

    if asked.tokens is None and asked.budget is None and "training.steps" in asked.given:
        return resolved
    if asked.tokens is not None:
        steps, each = budget.steps_for_tokens(asked.tokens, resolved, corpus)
        say(f"--tokens {asked.tokens:,}: {counted(steps, 'step')} of {each:,.0f} positions in the mean")
        return resolved.changed({"training.steps": steps})
    if stored is not None:
        say(f"as the run was started: {counted(stored.training.steps, 'step')}")
        return resolved.changed({"training.steps": stored.training.steps})
    if asked.open_ended:
        if not on_cpu():
            return resolved
        say(
            f"--budget {CPU_BUDGET}: {resolved.training.steps:,} steps, as published, take days on a CPU "
            "(choose with --steps, --tokens or --budget)"
        )
    seconds = budget.parse_budget(asked.budget or CPU_BUDGET)
    speeds = budget.measure(resolved, corpus, seconds)
    training = resolved.training
    eval_rows = training.eval_rows if len(corpus.documents("heldout")) else 0
    left = seconds - (time.monotonic() - began)
    steps = budget.steps_within(left, speeds, training.eval_every, eval_rows)
    measured = ", ".join(f"{1000 * speed.seconds:.0f} ms at length {speed.phase.length}" for speed in speeds)
    say(f"--budget {asked.budget or CPU_BUDGET}: {counted(steps, 'step')}; measured for one update: {measured}")
    return resolved.changed({"training.steps": steps})


def _with_saving(resolved: Recipe, asked: Asked) -> Recipe:
    """A run shorter than the recipe's distance between checkpoints still gets some."""
    from maskery.cli.output import counted, say

    training = resolved.training
    if "training.save_every" in asked.given or training.steps >= training.save_every:
        return resolved
    every = max(1, training.steps // 4)
    say(f"--save-every {every}: the run is shorter than {counted(training.save_every, 'step')}")
    return resolved.changed({"training.save_every": every})


def train(
    resolved: Recipe,
    corpus: Corpus,
    out: Path,
    resume: bool = False,
    *,
    start_from: Path | None = None,
    workers: int = 0,
    allow_pickle: bool = False,
) -> Run:
    """Train with a live display."""
    from maskery.cli.live import Display
    from maskery.cli.output import say
    from maskery.train import machine
    from maskery.train.run import pretrain as train_model

    resolved.require()
    machine.prepare()  # before the meter's products start torch's threads
    with Display(meter_of(resolved, corpus)) as display:
        return train_model(
            resolved,
            corpus,
            out,
            resume,
            start_from=start_from,
            allow_pickle=allow_pickle,
            workers=workers,
            on_update=display.update,
            say=say,
        )


def meter_of(resolved: Recipe, corpus: Corpus) -> Meter:
    """A meter that knows what a token costs in the first phase, and what this machine can do."""
    from maskery.cli.budget import slots_per_row
    from maskery.cli.live import Meter
    from maskery.feed import Feed
    from maskery.model.cost import forward_flops
    from maskery.objectives.tokens import TokenObjective
    from maskery.train.machine import matmul_peak
    from maskery.train.run import first_rows

    feed = Feed(resolved, corpus, resolved.training.seed)
    batch = first_rows(feed, 64)
    asked = sum(each.count(batch) for each in feed.objectives.values() if isinstance(each, TokenObjective))
    shape = resolved.model.shape(corpus.vocabulary, resolved.visibility.kind)
    flops = 3 * forward_flops(shape, slots_per_row(feed.plan(feed.phases[0])), asked / max(1, batch.tokens))
    return Meter(resolved.training.steps, flops, matmul_peak())


def summary(run: Run, seconds: float) -> dict[str, Any]:
    """The end of a run, for scripts."""
    lines = run.metrics
    last: dict[str, Any] = lines[-1] if lines else {}
    evaluated = {key.removeprefix("eval/"): value for key, value in last.items() if key.startswith("eval/")}
    return {
        "run": str(run.path),
        "steps": last.get("step", 0),
        "tokens": last.get("tokens", 0),
        "loss": last.get("loss"),
        "eval": evaluated,
        "seconds": seconds,
    }
