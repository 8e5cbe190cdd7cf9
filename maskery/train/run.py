"""`pretrain`: a recipe and a corpus in, a run folder out. Resuming goes on bitwise where a checkpoint left off."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from maskery import files
from maskery.batches import Batch
from maskery.checkpoint.folder import save_into
from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model
from maskery.corpus.store import Corpus
from maskery.errors import CheckpointError, ExistsError, InputError, RecipeError, RefusedError, Stopped
from maskery.feed import Feed
from maskery.phases import phases_of
from maskery.recipes.recipe import Recipe, diff
from maskery.system import System
from maskery.train import machine
from maskery.train.config import OPTIMIZERS
from maskery.train.evaluate import evaluate
from maskery.train.folder import RunFolder
from maskery.train.loop import Trainer, Update
from maskery.train.memory import choose_micro
from maskery.train.stop import stop_requests

Say = Callable[[str], None]
FREE = ("training.save_every", "training.keep", "training.eval_every", "training.eval_rows")
"""Keys that a resumed run may answer otherwise: they do not touch the weights."""


@dataclass(frozen=True)
class Run:
    """A finished run."""

    path: Path

    @property
    def metrics(self) -> list[dict[str, Any]]:
        return list(RunFolder(self.path).metrics())

    @property
    def recipe(self) -> Recipe:
        return RunFolder(self.path).recipe

    def model(self) -> Model:
        return load(self.path)


def say_on_stderr(text: str) -> None:
    print(text, file=sys.stderr)


def pretrain(
    recipe: Recipe,
    corpus: Corpus,
    out: str | Path,
    resume: bool = False,
    *,
    start_from: str | Path | None = None,
    allow_pickle: bool = False,
    workers: int = 0,
    on_update: Callable[[Update, dict[str, Any]], None] | None = None,
    say: Say = say_on_stderr,
) -> Run:
    """Train; `on_update` is called after each update with it and the line that went to metrics.jsonl."""
    recipe.require()
    corpus.verify()
    machine.prepare()
    folder = RunFolder(Path(out))
    source = None if start_from is None else str(Path(start_from).resolve())
    started = _open_folder(folder, recipe, corpus, resume, source, say)
    if started and folder.state.get("finished"):
        say(f"{out}: already finished at step {folder.state['step']}")
        return Run(folder.path)
    trainer = build_trainer(recipe, corpus, workers, say)
    _require_no_leak(trainer)
    if started:
        state = _restore(folder, trainer, allow_pickle, say)
    else:
        state = _begin(trainer, source, allow_pickle, say)
        folder.create(recipe, {**state, "finished": False})
    _train(folder, trainer, corpus, state, on_update, say)
    return Run(folder.path)


def occupied(path: Path, resume: bool) -> bool:
    """Whether something is at `path`, which only resuming allows."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return False
    if not resume:
        raise ExistsError("is already there", where=path, repair="choose another --out, or go on with --resume")
    return True


def _open_folder(folder: RunFolder, recipe: Recipe, corpus: Corpus, resume: bool, source: str | None, say: Say) -> bool:
    """Whether there is a run to go on with; what contradicts it is refused."""
    if not occupied(folder.path, resume):
        return False
    if not folder.begun:
        if _hardly_begun(folder.path):
            say(f"{folder.path}: the run was stopped before its first files were whole; starting anew")
            files.remove_leftovers(folder.path)
            return False
        raise CheckpointError(
            "is no run folder: recipe.toml or state.json is missing", where=folder.path, repair="choose another --out"
        )
    changed = {key: pair for key, pair in diff(folder.recipe, recipe).items() if key not in FREE}
    if source is not None and source != folder.state.get("from"):
        changed["--from"] = folder.state.get("from"), source
    if changed:
        lines = "; ".join(f"{key}: the run has {a!r}, asked is {b!r}" for key, (a, b) in changed.items())
        raise RecipeError(lines, where=folder.path, repair="resume with the same recipe, or choose another --out")
    if folder.state["corpus"] != corpus.fingerprint:
        raise RecipeError(
            f"corpus: the run was started on fingerprint {folder.state['corpus'][:12]}, "
            f"{corpus.path} has {corpus.fingerprint[:12]}",
            where=folder.path,
            repair="resume with the corpus it was started on",
        )
    left = [*files.remove_leftovers(folder.path), *files.remove_leftovers(folder.path / "checkpoints")]
    if left:
        say(f"removed what an interrupted write left behind: {', '.join(left)}")
    return True


def _hardly_begun(path: Path) -> bool:
    """Whether a run was killed before its first files were whole, so that nothing is lost with them."""
    left = {each.name for each in path.iterdir() if not files.is_leftover(each)}
    return left <= {"state.json", "checkpoints"} and not any((path / "checkpoints").glob("step-*"))


def build_trainer(recipe: Recipe, corpus: Corpus, workers: int, say: Say) -> Trainer:
    training, device = recipe.training, machine.device()
    system = System(recipe, corpus.vocabulary)
    system.initialise(training.seed)
    system.to(device)
    feed = Feed(recipe, corpus, training.seed)
    phases = phases_of(training)
    if training.phases and len(phases) < len(training.phases):
        say(f"{training.steps} steps leave no step to {len(training.phases) - len(phases)} of the recipe's phases")
    few = first_rows(feed, 8)
    parameters, available = sum(p.numel() for p in system.parameters()), machine.available_memory()
    asked = len(system.reads(few)) / max(1, few.tokens)
    micro = []
    for phase in phases:
        chosen = choose_micro(
            system.network.shape, parameters, phase.length, phase.batch, asked, available, training.micro
        )
        where = f" at length {phase.length}" if len(phases) > 1 else ""
        peak = f"about {chosen.bytes / 2**20:.0f} MiB at the peak"
        say(f"micro-batch: {chosen.rows} rows{where} ({chosen.reason}); {peak}")
        micro.append(chosen.rows)
    return Trainer(
        recipe=recipe,
        feed=feed,
        system=system,
        optimizer=OPTIMIZERS.get(training.optimizer)(system.named_parameters(), training),
        micro=micro,
        workers=workers,
        device=device,
    )


def first_rows(feed: Feed, rows: int) -> Batch:
    """The first rows of the first step: enough to see how a recipe's rows look."""
    phase, epochs, numbers = feed.numbers(0)
    return feed.make(0, phase, epochs[:rows], numbers[:rows])


def _require_no_leak(trainer: Trainer) -> None:
    try:
        trainer.system.require_no_leak(first_rows(trainer.feed, 2))
    except RefusedError as error:
        raise RefusedError(error.cause, where=f"recipe {trainer.recipe.name}", repair=error.repair) from None


def _start_from(system: System, corpus: Corpus, path: str | Path, allow_pickle: bool, say: Say) -> None:
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
    theirs, ours = model.network.state_dict(), system.network.state_dict()
    wrong = [name for name, value in ours.items() if name in theirs and theirs[name].shape != value.shape] + [
        name for name in ours if name not in theirs and not name.startswith("pooler")
    ]
    if wrong:
        raise InputError(
            f"the model's shape differs from the recipe's: {', '.join(wrong[:5])}",
            where=path,
            repair="give the recipe the same layers, width, vocabulary and positions (maskery info MODEL)",
        )
    system.network.load_state_dict({name: theirs[name] for name in ours if name in theirs}, strict=False)
    taken = []
    for name, head in system.heads.items():
        if name in model.heads:
            head.load_state_dict(model.heads[name].state_dict())
            taken.append(name)
    fresh = [name for name in system.heads if name not in taken]
    if system.network.pooler is not None and model.network.pooler is None:
        fresh.append("pooler")
    say(f"started from {path}; heads taken: {', '.join(taken) or 'none'}; new: {', '.join(fresh) or 'none'}")


def _begin(trainer: Trainer, source: str | None, allow_pickle: bool, say: Say) -> dict[str, Any]:
    """The state before the first update; the weights are new, or those of the model at `source`."""
    corpus = trainer.feed.corpus
    if source is not None:
        _start_from(trainer.system, corpus, source, allow_pickle, say)
    origin = {} if source is None else {"from": source}
    return {"step": 0, "tokens": 0, "corpus": corpus.fingerprint, "notes": [], **origin}


def _restore(folder: RunFolder, trainer: Trainer, allow_pickle: bool, say: Say) -> dict[str, Any]:
    """The newest checkpoint that is whole, or the beginning."""
    points = folder.checkpoints()
    if not points:
        folder.cut_metrics(0)
        say("no checkpoint yet: starting from the first step")
        return _begin(trainer, folder.state.get("from"), allow_pickle, say)
    _, newest = points[-1]
    try:
        state = folder.restore(newest, trainer.system, trainer.optimizer)
    except CheckpointError as error:
        before = f"go on from {points[-2][1].name}" if len(points) > 1 else "start anew"
        raise CheckpointError(
            error.cause, where=error.where, repair=f"rm -r {newest}, then {before} with --resume"
        ) from None
    folder.cut_metrics(state["step"])
    now, then = machine.facts(trainer.device, 1, trainer.micro), state["machine"]
    if then["micro"] != trainer.micro:
        say(f"micro-batches of {then['micro']} rows, as the run was started")
        trainer.micro = list(then["micro"])
    for name in sorted(now.keys() - {"micro"}):
        if now[name] != then.get(name):
            say(f"warning: {name} was {then.get(name)!r}, is {now[name]!r}: the run will not be bitwise the same")
    trainer.step = state["step"]
    say(f"resumed from {newest.name}")
    return state


def _train(
    folder: RunFolder,
    trainer: Trainer,
    corpus: Corpus,
    state: dict[str, Any],
    on_update: Callable[[Update, dict[str, Any]], None] | None,
    say: Say,
) -> None:
    training = trainer.recipe.training
    heldout = _heldout(trainer.feed, say)
    with stop_requests() as request, open(folder.metrics_file, "a", encoding="utf-8") as log:
        for update in trainer.updates():
            state["step"] = update.step
            state["tokens"] += update.tokens
            if update.note:
                state["notes"].append(update.note)
                say(update.note)
            line = _line(update, state)
            last = update.step == training.steps
            if heldout is not None and (last or _due(update.step, training.eval_every)):
                line |= evaluate(
                    trainer.system, heldout, update.step, training.eval_rows, min(trainer.micro), trainer.device
                )
            log.write(json.dumps(line) + "\n")
            log.flush()
            stop = request.signal_number
            if last or stop or _due(update.step, training.save_every):
                os.fsync(log.fileno())
                state["machine"] = machine.facts(trainer.device, 1, trainer.micro)
                folder.save(trainer.system, trainer.optimizer, corpus.tokenizer, state, training.keep)
                folder.write_state({**state, "finished": False})
            if on_update is not None:
                on_update(update, line)
            if stop and not last:
                raise Stopped(
                    f"stopped by a signal after step {update.step}; the state is saved",
                    signal_number=stop,
                    repair="go on with the same command and --resume",
                )
    save_into(folder.path, trainer.system.network, trainer.system.heads, corpus.tokenizer, say)
    folder.write_state({**state, "finished": True})


def _heldout(feed: Feed, say: Say) -> Feed | None:
    """The part set aside, or None where it cannot make rows of this kind: no reason not to train."""
    if not len(feed.corpus.documents("heldout")):
        say("nothing is held out in this corpus: no evaluation")
        return None
    heldout = replace(feed, split="heldout")
    try:
        for phase in heldout.phases:
            heldout.plan(phase)
    except InputError as error:
        say(f"no evaluation: {error.cause} (corpus build --heldout sets more aside)")
        return None
    return heldout


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0


def _line(update: Update, state: dict[str, Any]) -> dict[str, Any]:
    line: dict[str, Any] = {"step": update.step, "loss": update.loss}
    line |= {f"loss/{name}": value for name, value in update.losses.items()}
    return line | {
        "lr": update.lr,
        "gradient_norm": update.gradient_norm,
        "tokens": state["tokens"],
        "tokens_per_second": update.tokens / update.seconds,
    }
