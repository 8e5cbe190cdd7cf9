"""What a run needs before its first update: networks, feed, optimiser, and micro-batches that fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from torch import nn

from maskery.batches import Batch
from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model
from maskery.corpus.mixture import Corpora
from maskery.errors import InputError, RefusedError
from maskery.feed import Feed
from maskery.model.config import Architecture, Shape
from maskery.model.transformer import Network
from maskery.phases import Phase, phases_of
from maskery.recipes.recipe import Recipe
from maskery.rows.config import MODE_SEGMENTS
from maskery.rows.modes import BEGINS_AS, with_every_mode
from maskery.system import System
from maskery.train import machine, precision
from maskery.train.config import OPTIMIZERS
from maskery.train.loop import Trainer
from maskery.train.memory import MicroBatch, choose_micro, lane_bytes
from maskery.train.ranks import Ranks

Say = Callable[[str], None]
Pretrainer = Trainer[System, Feed]


def build_trainer(
    recipe: Recipe, corpus: Corpora, workers: int, say: Say, ranks: Ranks | None = None, fsdp: bool = False
) -> Pretrainer:
    """A trainer at step 0. What is chosen is told."""
    training, device, ranks = recipe.training, machine.device(), ranks or Ranks()
    phases = phases_of(training)
    if fsdp and ranks.world == 1:
        say("--fsdp: there is one rank, which holds all weights")
    _require_rows(phases, ranks.world, fsdp)
    system = System(recipe, corpus.vocabulary, corpus.target_vocabulary)
    system.initialise(training.seed)
    system.to(device)
    feed = Feed(recipe, corpus, training.seed)
    if training.phases and len(phases) < len(training.phases):
        say(f"{training.steps} steps leave no step to {len(training.phases) - len(phases)} of the recipe's phases")
    chosen = [_micro(phase, system, feed, ranks, say) for phase in phases]
    return Trainer(
        training=training,
        feed=feed,
        system=system,
        optimizer=OPTIMIZERS.get(training.optimizer)(system.named_parameters(), training),
        micro=[each.rows for each in chosen],
        planned=max(each.bytes for each in chosen),
        workers=workers,
        device=device,
        ranks=ranks,
        precision=precision.Precision(precision.choose(training.precision, device).precision),
        fsdp=fsdp and ranks.world > 1,
    )


def _require_rows(phases: tuple[Phase, ...], world: int, fsdp: bool) -> None:
    """Every rank reads at least one row at every step, and with shards all read equally many."""
    least = min(phase.batch for phase in phases)
    if least < world:
        raise InputError(
            f"training.batch = {least} leaves some of {world} ranks without a row",
            repair=f"--batch {world} or more (or batch of a phase in training.phases), or fewer ranks",
        )
    uneven = [phase.batch for phase in phases if phase.batch % world]
    if fsdp and uneven:
        raise InputError(
            f"--fsdp: {uneven[0]} rows a step cannot be shared equally by {world} ranks",
            repair=f"--batch {uneven[0] // world * world}, or leave out --fsdp",
        )


def _micro(phase: Phase, system: System, feed: Feed, ranks: Ranks, say: Say) -> MicroBatch:
    """Rows of one forward pass, the same on every rank."""
    few, training = first_rows(feed, 8), feed.recipe.training
    parameters = sum(p.numel() for p in system.parameters())
    available = machine.available_memory() // (ranks.local_world if machine.device().type == "cpu" else 1)
    beside = 0 if few.asked is None else len(few.asked)  # of a second stream
    asked = (len(system.reads(few)) + beside) / max(1, few.tokens)
    besides = sum(view.tokens for view in few.views.values()) / max(1, few.tokens)
    rows, length = -(-phase.batch // ranks.world), round(phase.length * (1 + besides))
    available = max(0, available - 2 * rows * lane_bytes(system.network.shape))  # of this update and of the one before
    second = None
    if system.generator is not None:
        second = system.generator.shape, len(system.reads(few, system.generator)) / max(1, few.tokens)
    chosen = choose_micro(system.network.shape, parameters, length, rows, asked, available, training.micro, second)
    where = f" at length {phase.length}" if len(feed.phases) > 1 else ""
    peak = f"about {chosen.bytes / 2**20:.0f} MiB at the peak"
    each = f" of each of {ranks.world} ranks" if ranks.world > 1 else ""
    say(f"micro-batch: {chosen.rows} rows{where} ({chosen.reason}); {peak}{each}")
    return replace(chosen, rows=min(ranks.gather(chosen.rows)))


def first_rows(feed: Feed, rows: int) -> Batch:
    """The first rows of the first step: enough to see how a recipe's rows look."""
    phase, epochs, numbers = feed.numbers(0)
    return feed.make(0, phase, epochs[:rows], numbers[:rows])


def rows_of_every_mode(feed: Feed) -> Batch:
    """The first rows: two, or where rows differ in how they are read enough to have one of every mode among them."""
    visibility, phase = feed.recipe.visibility, feed.phases[0]
    some = np.arange(2 * len(visibility.shares), dtype=np.int64)
    epochs, numbers = feed.order(phase).visit(some)
    return feed.make(0, phase, epochs, numbers, with_every_mode(visibility, feed.modes(phase, epochs, numbers)))


def require_no_leak(trainer: Pretrainer) -> None:
    """Refuse a recipe whose targets can read their answers."""
    try:
        trainer.system.require_no_leak(rows_of_every_mode(trainer.feed))
    except RefusedError as error:
        raise RefusedError(error.cause, where=f"recipe {trainer.feed.recipe.name}", repair=error.repair) from None


def begin_with(system: System, corpus: Corpora, path: str | Path, allow_pickle: bool, say: Say) -> None:
    """Begin with another model's weights: the network's must fit, heads are taken where they do."""
    model = load(path, allow_pickle=allow_pickle)
    for line in model.report.lines():
        say(f"{path}: {line}")
    if model.tokenizer is not None and model.tokenizer.fingerprint != corpus.tokenizer.fingerprint:
        raise InputError(
            "the corpus was built with another tokenizer than the model's",
            where=path,
            repair=f"maskery corpus build FILES --tokenizer {path} --out DIR",
        )
    _give_modes(system.network, model, say)
    _require_fit(system.network, model, path)
    taken = _take(system, system.network, model)
    small = system.generator
    if small is not None and model.generator is not None:
        _require_fit(small, model.generator, path, generator=True)
        taken += ["generator", *_take(system, small, model.generator)]
    fresh = [name for name, head in system.heads.items() if name not in taken and head.state_dict()]
    if system.network.pooler is not None and model.network.pooler is None:
        fresh.append("pooler")
    if small is not None and model.generator is None:
        fresh.append("generator")
    say(f"started from {path}; heads taken: {', '.join(taken) or 'none'}; new: {', '.join(fresh) or 'none'}")


def _give_modes(network: Network, model: Model, say: Say) -> None:
    """A network whose segment ids tell modes may begin with a model that has the two of a pair (UniLM with BERT)."""
    ours, theirs = network.embeddings.segments, model.network.embeddings.segments
    if ours is None or theirs is None or len(ours) != MODE_SEGMENTS or len(theirs) != 2:
        return
    model.network.embeddings.segments = nn.Parameter(theirs.detach()[list(BEGINS_AS)])
    say(f"the model has 2 segment vectors; 2 to {MODE_SEGMENTS - 1} begin as copies of {BEGINS_AS[2:]}")


def _require_fit(network: Network, model: Model, path: str | Path, generator: bool = False) -> None:
    theirs, ours = model.network.state_dict(), network.state_dict()
    wrong = [name for name, value in ours.items() if name in theirs and theirs[name].shape != value.shape] + [
        name for name in ours if name not in theirs and not name.startswith("pooler")
    ]
    if wrong:
        have, want = model.network.shape, network.shape
        keys = [key for key in type(want).model_fields if getattr(have, key) != getattr(want, key)]
        differing = ", ".join(f"{key} {getattr(have, key)} for {getattr(want, key)}" for key in keys)
        raise InputError(
            f"the model's shape differs from the recipe's: {differing or ', '.join(wrong)}",
            where=path,
            repair=_settings_of(have, keys, generator),
        )


def _settings_of(have: Shape, keys: list[str], generator: bool) -> str:
    """What makes a recipe's network as the model's is."""
    if generator:
        return "give [model.generator] the width, layers, heads and feedforward of the model's generator"
    settings = [f"--set model.{key}={getattr(have, key)}" for key in keys if key in Architecture.model_fields]
    if "vocabulary" in keys or not settings:
        return "build the corpus with the model's vocabulary: maskery corpus build FILES --tokenizer DIR --out DIR"
    return f"give the recipe the model's: {' '.join(settings)}"


def _take(system: System, network: Network, model: Model) -> list[str]:
    """Put the model's weights into a network of the system; the names of the heads that were taken along."""
    theirs = model.network.state_dict()
    network.load_state_dict({name: theirs[name] for name in network.state_dict() if name in theirs}, strict=False)
    taken = [name for name in system.heads_of(network) if name in model.heads]
    for name in taken:
        system.heads[name].load_state_dict(model.heads[name].state_dict())
    return taken
