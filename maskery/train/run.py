"""`pretrain`: a recipe and a corpus in, a run folder out. Resuming goes on bitwise where a checkpoint left off."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from torch import Tensor

from maskery import arguments, files, hub
from maskery.checkpoint.folder import beside, save_into
from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model
from maskery.checkpoint.tensors import read_json
from maskery.corpus.mixture import AnyCorpora, Corpora, corpus_of
from maskery.errors import CheckpointError, DiskError, ExistsError, InputError, RecipeError, Stopped
from maskery.feed import Feed
from maskery.knowledge.load import fingerprints
from maskery.recipes.recipe import AnyRecipe, Recipe, diff, recipe_of
from maskery.system import System
from maskery.train import corpora, knowledge, longer, machine, precision
from maskery.train.build import Pretrainer, Say, begin_with, build_trainer, require_no_leak
from maskery.train.evaluate import evaluate
from maskery.train.fits import require_memory
from maskery.train.folder import STATE, RunFolder
from maskery.train.frequencies import against_frequencies
from maskery.train.lock import LOCK, locked
from maskery.train.loggers import Logger, Loggers
from maskery.train.loop import Update
from maskery.train.ranks import Ranks, joined, said_nowhere
from maskery.train.schedules import Longer
from maskery.train.similar import SIMILAR
from maskery.train.stop import stop_requests

FREE = ("training.save_every", "training.keep", "training.eval_every", "training.eval_rows")
"""Keys that a resumed run may answer otherwise: they do not touch the weights."""

_BEFORE = {LOCK, SIMILAR}
"""What may lie in a run's folder before the run is begun."""


@dataclass(frozen=True)
class Run:
    """A finished run of `maskery.pretrain`.

    run = maskery.pretrain("bert", "my-corpus", "my-run")
    run.metrics[-1]["loss"], run.recipe.training.steps, run.model()
    maskery.fill(run, "The [MASK] sat.")                  # a run stands wherever the path of its folder may
    """

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", arguments.path("path", self.path, "the path of a run folder"))

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """What was logged at each update, in order: step, loss, lr and the rest."""
        return list(RunFolder(self.path).metrics())

    @property
    def recipe(self) -> Recipe:
        """The recipe it was trained by, complete."""
        return RunFolder(self.path).recipe

    def model(self) -> Model:
        """The trained model, opened: `maskery.load` of the folder."""
        return load(self.path)


def say_on_stderr(text: str) -> None:
    print(text, file=sys.stderr)


def pretrain(
    recipe: AnyRecipe,
    corpus: AnyCorpora,
    out: str | Path,
    resume: bool = False,
    *,
    start_from: str | os.PathLike[str] | None = None,
    allow_pickle: bool = False,
    workers: int = 0,
    loggers: Sequence[Logger] = (),
    fsdp: bool = False,
    say: Say = say_on_stderr,
) -> Run:
    """Train on a corpus or a `Mixture` of several; `loggers` are told of each update.

    Started by torchrun, this is one rank of several, all of which have to call it. Copies of the weights are kept
    equal (DDP), or with `fsdp` each rank holds a part of them. The first rank writes, talks and logs.
    """
    recipe, corpus = recipe_of(recipe).require(), corpus_of(corpus)
    folder = RunFolder(arguments.path("out", out, "the path of a run folder"))
    workers = arguments.processes("workers", workers)
    arguments.call("say", say)
    require_memory(recipe, corpus.vocabulary, corpus.target_vocabulary, sharded=fsdp)
    corpus.verify()
    machine.prepare()
    begin = None if start_from is None else arguments.path("start_from", start_from, "the path of a model folder")
    source = None if begin is None else str(_source(begin))
    with joined(say) as ranks, _held(folder.path, ranks, resume):
        say = say if ranks.first else said_nowhere
        recipe = _with_precision(recipe, folder, ranks, resume, say)
        started, made_longer = ranks.from_first(lambda: _open_folder(folder, recipe, corpus, resume, source, say))
        if started and ranks.from_first(lambda: _is_finished(folder, say)):
            return Run(folder.path)
        trainer = build_trainer(recipe, corpus, workers, say, ranks, fsdp)
        require_no_leak(trainer)
        trainer.longer = made_longer
        state = _first_state(folder, trainer, started, source, allow_pickle, say)
        try:
            with Loggers(loggers if ranks.first else (), say) as told, files.writing(folder.path, reads=True):
                told.begin(folder.path, recipe, trainer.step)
                _train(folder, trainer, corpus, state, told, say)
        except DiskError as error:
            raise _to_be_resumed(error, folder) from None
        ranks.wait()
    return Run(folder.path)


def _source(given: Path) -> Path:
    """An absolute path, so that the run is resumed from any folder; that of the cache for a published name."""
    cached = None if given.exists() else hub.in_cache(str(given))
    return cached or given.resolve()


def _held(path: Path, ranks: Ranks, resume: bool) -> AbstractContextManager[None]:
    """The run's lock, which makes its folder; so whether there is a run to go on with is asked before."""
    ranks.from_first(lambda: require_run(path, resume))
    return locked(path) if ranks.first else nullcontext()


def _is_finished(folder: RunFolder, say: Say) -> bool:
    state = folder.state
    if state.get("finished"):
        say(f"{folder.path}: already finished at step {state['step']}")
    return bool(state.get("finished"))


def _with_precision(recipe: Recipe, folder: RunFolder, ranks: Ranks, resume: bool, say: Say) -> Recipe:
    """The recipe with a precision that this machine has; a resumed run keeps its own."""
    asked = recipe.training.precision
    resumed = asked == "auto" and ranks.from_first(lambda: resume and folder.begun)
    if resumed:
        asked = ranks.from_first(lambda: folder.recipe.training.precision)
    chosen = ranks.from_first(lambda: precision.choose(asked, machine.device()))
    say(f"precision: {chosen.precision} ({'as the run was started' if resumed else chosen.reason})")
    return recipe.changed({"training.precision": chosen.precision})


def _first_state(
    folder: RunFolder, trainer: Pretrainer, started: bool, source: str | None, allow_pickle: bool, say: Say
) -> dict[str, Any]:
    """The state to go on from, read by the first rank for all; weights and moments follow when training begins."""

    def read() -> tuple[dict[str, Any], int, list[int]]:
        if started:
            state = _restore(folder, trainer, allow_pickle, say)
        else:
            state = _begin(trainer, source, allow_pickle, say)
            folder.create(trainer.feed.recipe, {**state, "finished": False})
        return state, trainer.step, trainer.micro

    state, trainer.step, trainer.micro = trainer.ranks.from_first(read)
    state |= longer.facts(trainer.longer)
    trainer.memory.restore(trainer.ranks.from_first(lambda: _remembered(folder, trainer)), trainer.device)
    trainer.precision.restore(state.get("loss_scale", {}))
    return state


def _remembered(folder: RunFolder, trainer: Pretrainer) -> dict[str, Tensor]:
    """What the lanes of the checkpoint that a run goes on from remember; before the first update nothing is."""
    if not trainer.step:
        return {}
    return folder.memory(folder.checkpoints()[-1][1], trainer.system.network.shape)


def _to_be_resumed(error: DiskError, folder: RunFolder) -> DiskError:
    """A run that the disk stopped goes on from what was saved before."""
    steps = [step for step, _ in folder.checkpoints()]
    kept = f"the state after step {steps[-1]} is saved" if steps else "nothing is saved yet"
    return DiskError(
        f"{error.cause}; {kept}", where=error.where, repair=f"{error.repair}; then the same command with --resume"
    )


def require_run(path: Path, resume: bool) -> None:
    """Refuse to go on with what is not there: a mistyped --out would begin a long run anew, and look like the old."""
    if resume and not path.exists():
        files.require_writable(path)  # a file on the way is the nearer cause
        raise InputError(
            "there is no run to go on with", where=path, repair="begin one with the same command without --resume"
        )


def occupied(path: Path, resume: bool) -> bool:
    """Whether something is at `path`, which only resuming allows."""
    files.require_place(path)
    require_run(path, resume)
    if not path.exists() or (path.is_dir() and all(each.name in _BEFORE for each in path.iterdir())):
        return False
    if not resume:
        raise ExistsError("is already there", where=path, repair="choose another --out, or go on with --resume")
    return True


def _open_folder(
    folder: RunFolder, recipe: Recipe, corpus: Corpora, resume: bool, source: str | None, say: Say
) -> tuple[bool, tuple[Longer, ...]]:
    """Whether there is a run to go on with, and where it was made longer; what contradicts it is refused."""
    if not occupied(folder.path, resume):
        if resume:
            say(f"{folder.path}: the run was stopped before it had written anything; starting anew")
        return False, ()
    if not folder.begun:
        if _hardly_begun(folder.path):
            say(f"{folder.path}: the run was stopped before its first files were whole; starting anew")
            files.remove_leftovers(folder.path)
            return False, ()
        kind = read_json(folder.path / STATE).get("kind") if (folder.path / STATE).is_file() else None
        cause = "is no run folder: recipe.toml or state.json is missing"
        raise CheckpointError(
            f"is a run of maskery {kind}, not of maskery pretrain" if kind else cause,
            where=folder.path,
            repair="choose another --out, and no --resume",
        )
    free = (*FREE, longer.KEY) if recipe.training.steps > folder.recipe.training.steps else FREE
    changed = {key: pair for key, pair in diff(folder.recipe, recipe).items() if key not in free}
    if source is not None and source != folder.state.get("from"):
        changed["--from"] = folder.state.get("from"), source
    if changed:
        lines = "; ".join(f"{key}: the run has {a!r}, asked is {b!r}" for key, (a, b) in changed.items())
        raise RecipeError(lines, where=folder.path, repair=longer.repair(changed))
    corpora.require_same(folder.state, corpus, folder.path)
    knowledge.require_same(folder.state, recipe.knowledge, folder.path)
    left = [*files.remove_leftovers(folder.path), *files.remove_leftovers(folder.path / "checkpoints")]
    if left:
        say(f"removed what an interrupted write left behind: {', '.join(left)}")
    return True, longer.lengthened(folder, recipe, say)


def _hardly_begun(path: Path) -> bool:
    """Whether a run was killed before its first files were whole, so that nothing is lost with them."""
    left = {each.name for each in path.iterdir() if not files.is_leftover(each)} - _BEFORE
    return left <= {"state.json", "checkpoints"} and not any((path / "checkpoints").glob("step-*"))


def _begin(trainer: Pretrainer, source: str | None, allow_pickle: bool, say: Say) -> dict[str, Any]:
    """The state before the first update; the weights are new, or those of the model at `source`."""
    corpus = trainer.feed.corpus
    if source is not None:
        begin_with(trainer.system, corpus, source, allow_pickle, say)
    origin: dict[str, Any] = {} if source is None else {"from": source}
    if known := fingerprints(trainer.feed.recipe.knowledge):
        origin["knowledge"] = known
    return {"step": 0, "tokens": 0, **corpora.facts(corpus), "notes": [], **origin}


def _cut_metrics(folder: RunFolder, step: int, say: Say) -> None:
    if damaged := folder.cut_metrics(step):
        say(f"{folder.metrics_file}: {damaged} damaged lines are left out")


def _restore(folder: RunFolder, trainer: Pretrainer, allow_pickle: bool, say: Say) -> dict[str, Any]:
    """The newest checkpoint that is whole, or the beginning."""
    points = folder.checkpoints()
    if not points:
        _cut_metrics(folder, 0, say)
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
    _cut_metrics(folder, state["step"], say)
    now, then = machine.facts(trainer.device, trainer.ranks.world, trainer.micro), state["machine"]
    # A run made longer may have phases that were too short before: those have no micro-batch yet.
    if then["micro"] != trainer.micro and len(then["micro"]) == len(trainer.micro):
        say(f"micro-batches of {then['micro']} rows, as the run was started")
        trainer.micro = list(then["micro"])
    for difference in machine.differences(then, now):
        say(difference)
    trainer.step = state["step"]
    say(f"resumed from {newest.name}")
    return state


def _train(
    folder: RunFolder,
    trainer: Pretrainer,
    corpus: Corpora,
    state: dict[str, Any],
    loggers: Loggers,
    say: Say,
) -> None:
    training, ranks = trainer.training, trainer.ranks
    system: System | None = None
    heldout, remarks = corpora.heldout_of(trainer.feed)
    for remark in [*corpora.tell(trainer.feed), *knowledge.tell(trainer.feed), *remarks]:
        say(remark)
    with stop_requests(ranks.world > 1) as request, _log(folder) if ranks.first else nullcontext() as log:
        for update in trainer.updates():
            state["step"] = update.step
            state["tokens"] += update.tokens
            if update.note:
                state["notes"].append(update.note)
                say(update.note)
            state["rows"] = corpora.rows_read(trainer.feed, update.step - 1, state.get("rows", {}))
            line = _line(update, state)
            last = update.step == training.steps
            if heldout is not None and (last or _due(update.step, training.eval_every)):
                line |= _evaluated(trainer, heldout)
            if log is not None:
                log.write(json.dumps(line) + "\n")
                log.flush()
            stop = ranks.stop_asked(request.signal_number)
            if last or stop or _due(update.step, training.save_every):
                if log is not None:
                    os.fsync(log.fileno())
                system = _save(folder, trainer, corpus, state)
            loggers.log(update, line)
            if stop and not last:
                raise Stopped(
                    f"stopped by a signal after step {update.step}; the state is saved",
                    signal_number=stop,
                    repair="go on with the same command and --resume",
                )
    system = system or trainer.whole()[0]
    if ranks.first:
        heads = system.heads_of(system.network)
        save_into(folder.path, system.network, heads, corpus.tokenizer, say, beside(system), system.rows)
        found = [] if heldout is None else _against_frequencies(system, trainer, heldout, say)
        folder.write_state({**state, "finished": True, **({"frequencies": found} if found else {})})


def _against_frequencies(system: System, trainer: Pretrainer, heldout: Feed, say: Say) -> list[dict[str, Any]]:
    """What the model knows beyond how frequent each token is; said of the first question."""
    rows, device = trainer.training.eval_rows, next(system.parameters()).device
    found = against_frequencies(system, heldout, trainer.feed.corpus, trainer.step, rows, device)
    for each in found[:1]:
        say(each.sentence())
    return [each.plain() for each in found]


def _log(folder: RunFolder) -> IO[str]:
    return open(folder.metrics_file, "a", encoding="utf-8")


def _evaluated(trainer: Pretrainer, heldout: Feed) -> dict[str, float]:
    """Held-out figures; with shards every rank reads all rows, because all have to go through the network together."""
    rows, micro = trainer.training.eval_rows, min(trainer.micro)
    ranks = Ranks() if trainer.fsdp else trainer.ranks
    found = evaluate(trainer.system, heldout, trainer.step, rows, micro, trainer.device, ranks)
    if trainer.replicas is not None:
        trainer.replicas.after_reading()
    return found


def _save(folder: RunFolder, trainer: Pretrainer, corpus: Corpora, state: dict[str, Any]) -> System:
    """Write a checkpoint, by the first rank with the help of all; what it holds is returned."""
    system, moments = trainer.whole()
    memory = trainer.memory.whole(trainer.ranks)
    if trainer.ranks.first:
        state["machine"] = machine.facts(trainer.device, trainer.ranks.world, trainer.micro)
        if scale := trainer.precision.state():
            state["loss_scale"] = scale
        folder.save(system, moments, corpus.tokenizer, state, trainer.training.keep, memory)
        folder.write_state({**state, "finished": False})
    return system


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
        **{f"rows/{name}": number for name, number in state["rows"].items()},
    }
