"""`maskery pretrain`: a recipe and a corpus in, a run folder out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery import arguments
from maskery.cli.corpora import corpus_option, open_corpora
from maskery.cli.settings import JsonOption, LangOption, PickleOption, SetOption, SizeOption, parse_settings

if TYPE_CHECKING:
    from maskery.cli.live import Meter
    from maskery.corpus.mixture import Corpora
    from maskery.recipes.recipe import Recipe
    from maskery.train.loggers import Logger
    from maskery.train.options import Options
    from maskery.train.run import Run


def pretrain(
    context: typer.Context,
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A name, or the path of a .toml file.")],
    corpus: Annotated[list[str], corpus_option()],
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="The run's folder.")],
    size: SizeOption = None,
    steps: Annotated[int | None, typer.Option("--steps", metavar="N", help="Updates.")] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", metavar="N", help="Real positions to read.")] = None,
    budget: Annotated[str | None, typer.Option("--budget", metavar="TIME", help="30s, 10m or 2h.")] = None,
    lr: Annotated[float | None, typer.Option("--lr", metavar="RATE", help="Peak learning rate.")] = None,
    batch: Annotated[int | None, typer.Option("--batch", metavar="ROWS", help="Rows of one update.")] = None,
    length: Annotated[int | None, typer.Option("--length", metavar="T", help="Slots of a row.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="N", help="Of everything that is drawn.")] = None,
    save_every: Annotated[int | None, typer.Option("--save-every", metavar="N", help="Updates.")] = None,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=0, help="Processes that make batches.")] = 0,
    settings: SetOption = None,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="Keep every setting of the paper that is not named here.")
    ] = False,
    start_from: Annotated[
        Path | None, typer.Option("--from", metavar="MODEL", help="Begin with the weights of this model.")
    ] = None,
    allow_pickle: PickleOption = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    log: Annotated[list[str] | None, typer.Option("--log", metavar="LOGGER", help="tensorboard")] = None,
    ranks: Annotated[
        int | None, typer.Option("--ranks", metavar="N", min=1, help="Processes that train together, on this machine.")
    ] = None,
    fsdp: Annotated[bool, typer.Option("--fsdp", help="Each rank holds a part of the weights, not all.")] = False,
    threads: Annotated[int, typer.Option("--threads", metavar="N", min=0, help="Of each rank; 0 = automatic.")] = 0,
    lang: LangOption = None,
    as_json: JsonOption = False,
) -> int:
    """Train a model. What is left open is chosen to suit the run and the machine, and printed with its reason."""
    from maskery.cli.launch import is_rank, launch
    from maskery.cli.output import be_quiet, say
    from maskery.train.loggers import LOGGERS
    from maskery.train.ranks import joined

    if not is_rank(ranks) and ranks is not None and ranks > 1:
        _options(context, settings)  # what is wrong with the command line alone is said before anything is started
        return launch(ranks, context.obj)
    with joined(say, threads) as among:
        if not among.first:
            be_quiet()
        loggers = [LOGGERS.get(name)() for name in dict.fromkeys(log or ())]
        _pretrain(_options(context, settings), corpus, out, resume, workers, loggers, fsdp, as_json)
    return 0


def _options(context: typer.Context, settings: list[str] | None) -> Options:
    """The options of the same names."""
    from dataclasses import fields

    from maskery.train.options import Options, dotted

    named = {each.name: context.params[each.name] for each in fields(Options) if each.name != "settings"}
    return Options(**named, settings=dotted(parse_settings(settings)))


def _pretrain(
    options: Options,
    corpus: list[str],
    out: Path,
    resume: bool,
    workers: int,
    loggers: Sequence[Logger],
    fsdp: bool,
    as_json: bool,
) -> None:
    from maskery.cli.called import program
    from maskery.cli.knowledge import prepare
    from maskery.cli.output import counted, duration, emit_json, say, tell
    from maskery.train.folder import RunFolder
    from maskery.train.settle import settle

    began = time.monotonic()
    arguments.processes("workers", workers)
    store = open_corpora(corpus)
    resolved = settle(
        options, store, out, resume, say=say, began=began, fsdp=fsdp, prepare=lambda recipe: prepare(recipe, store)
    )
    before = RunFolder(out)
    finished = before.begun and before.state.get("finished")
    run = train(
        resolved,
        store,
        out,
        resume,
        start_from=options.start_from,
        workers=workers,
        allow_pickle=options.allow_pickle,
        loggers=loggers,
        fsdp=fsdp,
    )
    took = time.monotonic() - began
    if as_json:
        emit_json(summary(run, took))
        return
    spent = "" if finished else f", in {duration(took)}"
    tell(f"{out}: a model of {counted(resolved.training.steps, 'step')}{spent}")
    mask = store.tokenizer.names.get("mask", "[MASK]")
    fill = f'{program()} fill {out} "a text with {mask} in it"        '
    can_fill = "masked_token" in resolved.objectives and resolved.corruption.replace.mask > 0
    writes = {"next_token", "permuted_token"} & resolved.objectives.keys()
    use = f'{program()} generate {out} "a beginning"        ' if writes else fill if can_fill else ""
    say(f"next: {use}{program()} info {out}")


def train(
    resolved: Recipe,
    corpus: Corpora,
    out: Path,
    resume: bool = False,
    *,
    start_from: Path | None = None,
    workers: int = 0,
    allow_pickle: bool = False,
    loggers: Sequence[Logger] = (),
    fsdp: bool = False,
) -> Run:
    """Train with a live display."""
    from maskery.cli.live import Display
    from maskery.cli.output import say
    from maskery.train import machine
    from maskery.train.ranks import joined
    from maskery.train.run import pretrain as train_model

    resolved.require()
    machine.prepare()  # before the meter's products start torch's threads
    with joined() as ranks:
        shown = [Display(meter_of(resolved, corpus, ranks.world))] if ranks.first else []
    return train_model(
        resolved,
        corpus,
        out,
        resume,
        start_from=start_from,
        allow_pickle=allow_pickle,
        workers=workers,
        loggers=[*shown, *loggers],
        fsdp=fsdp,
        say=say,
    )


def meter_of(resolved: Recipe, corpus: Corpora, world: int = 1) -> Meter:
    """A meter that knows what a token costs in the first phase, and what this machine can do with each rank."""
    from maskery.cli.live import Meter
    from maskery.feed import Feed
    from maskery.model.cost import forward_flops
    from maskery.objectives.tokens import TokenObjective
    from maskery.train.build import first_rows
    from maskery.train.machine import matmul_peak
    from maskery.train.tokens import slots_per_row

    feed = Feed(resolved, corpus, resolved.training.seed)
    batch = first_rows(feed, 64)
    tokens = [each for each in feed.objectives.values() if isinstance(each, TokenObjective)]
    asked = sum(each.count(batch.asked_about(each.name)) for each in tokens)
    share, length = asked / max(1, batch.tokens), slots_per_row(feed, feed.phases[0])
    shape = resolved.model.shape(corpus.vocabulary, resolved.visibility.kind)
    small = resolved.model.generator_shape(corpus.vocabulary, resolved.visibility.kind)
    if small is None:
        forward = forward_flops(shape, length, share)
    else:  # tokens are asked of the generator, and the model at every slot
        forward = forward_flops(small, length, share) + forward_flops(shape, length)
    return Meter(resolved.training.steps, 3 * forward, world * matmul_peak())


def summary(run: Run, seconds: float) -> dict[str, Any]:
    """The end of a run, for scripts."""
    from maskery.train.folder import RunFolder

    lines = run.metrics
    last: dict[str, Any] = lines[-1] if lines else {}
    evaluated = {key.removeprefix("eval/"): value for key, value in last.items() if key.startswith("eval/")}
    return {
        "run": str(run.path),
        "steps": last.get("step", 0),
        "tokens": last.get("tokens", 0),
        "loss": last.get("loss"),
        "eval": evaluated,
        "frequencies": RunFolder(run.path).state.get("frequencies", []),
        "seconds": seconds,
    }
