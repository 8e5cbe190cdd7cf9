"""Fine-tuning: a model, a task and examples in, a run folder with the best model out. Resuming goes on bitwise."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from maskery import files
from maskery.errors import RecipeError, Stopped
from maskery.system import Trainable
from maskery.tasks.base import AnyTaskModel, UnitFeed
from maskery.tasks.examples import Examples
from maskery.tasks.folder import TaskFolder, fingerprint, put_weights, weights_of
from maskery.tasks.judge.measure import HEADLINES
from maskery.tasks.model import TaskModel
from maskery.tasks.no_answer import EVEN, is_open
from maskery.tasks.resolve import Splits, evaluations
from maskery.tasks.settings import TaskConfig
from maskery.train import machine
from maskery.train.config import OPTIMIZERS
from maskery.train.lock import locked
from maskery.train.loop import Trainer, Update
from maskery.train.memory import choose_micro
from maskery.train.precision import of_tuning
from maskery.train.run import occupied
from maskery.train.stop import stop_requests

Say = Callable[[str], None]
Watch = Callable[[Update, Mapping[str, Any]], None]


@dataclass
class Tuning:
    """A fine-tuning under way."""

    made: AnyTaskModel
    folder: TaskFolder
    trainer: Trainer[Trainable, UnitFeed]
    dev: UnitFeed | None
    say: Say
    state: dict[str, Any] = field(default_factory=dict)
    best: dict[str, Tensor] = field(default_factory=dict)
    """The weights that did best on the development set; none before it was first asked."""

    @property
    def config(self) -> TaskConfig:
        return self.made.config

    def begin(self, data: str, resume: bool) -> None:
        """State and weights to go on from; `data` is the fingerprint of all examples."""
        task = _settings(self.config)
        if not resume or not self.folder.checkpoints():
            self.state = {
                "step": 0,
                "tokens": 0,
                "data": data,
                "task": task,
                "best": None,
                "stale": 0,
                "finished": False,
            }
            self.folder.write_state(self.state)
            self.folder.run.cut_metrics(0)
            return
        require_same(self.folder, data, self.config)
        _, newest = self.folder.checkpoints()[-1]
        self.state, self.best = self.folder.restore(newest, self.made.system, self.trainer.optimizer)
        self.trainer.step = self.state["step"]
        then = self.state["machine"]
        if then["micro"] != self.trainer.micro:
            self.trainer.micro = list(then["micro"])
            self.say(f"micro-batches of {self.trainer.micro[0]}, as the run was started")
        for difference in machine.differences(then, machine.facts(self.trainer.device, 1, self.trainer.micro)):
            self.say(difference)
        self.folder.run.cut_metrics(self.trainer.step)
        self.say(f"resumed from {newest.name}")

    def train(self, watch: Watch) -> None:
        asked = self._asked()
        with stop_requests() as request, open(self.folder.run.metrics_file, "a", encoding="utf-8") as log:
            if self._gave_up:
                return
            for update in self.trainer.updates():
                self.state["step"] = update.step
                self.state["tokens"] += update.tokens
                line = _line(update, self.state)
                if update.step in asked:
                    line |= self._evaluate()
                log.write(json.dumps(line) + "\n")
                log.flush()
                watch(update, line)
                every = self.config.training.save_every
                due = every and (update.step in asked or update.step % every == 0)  # 0: nobody will resume
                if due or request.signal_number:
                    os.fsync(log.fileno())
                    self._save()
                if request.signal_number and update.step < self.config.training.steps:
                    self.finish()
                    raise Stopped(
                        f"stopped by a signal after step {update.step}; the state and the best model so far are saved",
                        signal_number=request.signal_number,
                        repair="go on with the same command and --resume",
                    )
                if self._gave_up:
                    self.say(f"ended early: {self.config.patience} evaluations brought nothing better")
                    return

    def _asked(self) -> list[int]:
        """The steps after which the development set is asked."""
        return evaluations(self.config, self.trainer.feed.units)

    @property
    def _gave_up(self) -> bool:
        return bool(self.config.patience) and self.state["stale"] >= self.config.patience

    def _evaluate(self) -> dict[str, Any]:
        """Ask the development set; keep the weights if they did best. Without one the last are the best."""
        if self.dev is None:
            self.best = {}
            return {}
        metrics = self.made.metrics(self.dev)
        found: dict[str, Any] = {"value": metrics[HEADLINES[self.config.task][0]]}
        found |= {"loss": metrics["loss"]} if "loss" in metrics else {}
        found |= {"threshold": self.config.threshold} if self.made.fits_threshold else {}
        self._judge(found)
        return {f"eval/{name}": each for name, each in metrics.items()}

    def _judge(self, found: Mapping[str, Any]) -> None:
        """Keep the weights if what was found, the headline's value first, is the best so far."""
        before = self.state["best"]
        if before is None or _rank(found) > _rank(before):
            self.state |= {"best": {"step": self.state["step"], **found}, "stale": 0}
            self.best = weights_of(self.made.system)
        else:
            self.state["stale"] += 1

    def _save(self) -> None:
        self.state["machine"] = machine.facts(self.trainer.device, 1, self.trainer.micro)
        moments = self.trainer.optimizer.state()
        self.folder.save(self.made.system, self.best, moments, self.state)
        self.folder.write_state({**self.state, "finished": False})

    def finish(self) -> None:
        """Put the best weights into the model and write it at the top of the folder."""
        if self.best:
            put_weights(self.made.system, self.best)
        self._settle()
        self.made.system.eval()
        self.made.save(self.folder.path, self.say)

    def _settle(self) -> None:
        """The threshold is that which dev told of the best weights; before it was asked, no answer has to be just
        better."""
        if not self.made.fits_threshold:
            return
        best = self.state["best"]
        value, why = EVEN, "dev was not asked yet"
        if best is not None:
            value, why = best["threshold"], "the best F1 on dev, whose figures flatter it a little"
        self.made.config = self.config.model_copy(update={"threshold": value})
        self.say(f"no answer is given where that scores better by more than {value:.4g}: {why}")


def _rank(found: Mapping[str, float]) -> tuple[float, float]:
    """A figure that could not be computed (the rank correlation of equal numbers) is worse than any other. Of equal
    ones the lower loss is better, where the loss is known: texts may long be all wrong while they get nearer."""
    return -math.inf if math.isnan(found["value"]) else found["value"], -found.get("loss", 0.0)


def require_same(folder: TaskFolder, data: str, config: TaskConfig, free: Collection[str] = ()) -> None:
    """Refuse a run of other examples, or of other settings. `free`: keys that a plan has changed."""
    state = folder.state
    if state.get("data") != data:
        raise RecipeError(
            "the run was started with other examples",
            where=folder.path,
            repair="resume with the same files, or choose another --out",
        )
    before, now = _flat(state.get("task", {})), _flat(_settings(config))
    other = sorted(key for key in now if before.get(key) != now[key] and key not in free)
    if other:
        raise RecipeError(
            f"the run was started with another {other[0]}: {before.get(other[0])!r}, now {now[other[0]]!r}",
            where=folder.path,
            repair="resume with the same settings, or choose another --out",
        )


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """{"rows": {"length": 8}} -> {"rows.length": 8}"""
    tables = {key: value for key, value in settings.items() if isinstance(value, dict)}
    plain = {key: value for key, value in settings.items() if key not in tables}
    return plain | {f"{table}.{key}": each for table, value in tables.items() for key, each in value.items()}


def _settings(config: TaskConfig) -> dict[str, Any]:
    """As they stand in state.json; the model's own numbers are in the checkpoints."""
    plain: dict[str, Any] = json.loads(config.model_dump_json(exclude={"model"}))
    return plain


def _line(update: Update, state: Mapping[str, Any]) -> dict[str, Any]:
    line: dict[str, Any] = {"step": update.step, "loss": update.loss}
    line |= {f"loss/{name}": value for name, value in update.losses.items()} if len(update.losses) > 1 else {}
    pace = update.tokens / max(update.seconds, 1e-9)
    return line | {"lr": update.lr, "tokens": state["tokens"], "tokens_per_second": pace, "time": time.time()}


def _nobody(update: Update, line: Mapping[str, Any]) -> None:
    pass


def tune(
    made: AnyTaskModel, splits: Splits, out: Path, *, resume: bool = False, say: Say, watch: Watch = _nobody
) -> AnyTaskModel:
    """Train a model whose task is resolved (`resolve`); the best on the development set is written and returned."""
    machine.prepare()
    folder = TaskFolder(out)
    started = occupied(out, resume)
    with locked(out), files.writing(out, reads=True):
        if started and folder.begun and folder.state.get("finished"):
            require_same(folder, fingerprint(splits.train, splits.dev), made.config)
            say(f"{out}: already finished at step {folder.state['step']}")
            return TaskModel.load(out)
        tuning = tuning_of(made, splits, folder, say)
        tuning.begin(fingerprint(splits.train, splits.dev), started)
        tuning.train(watch)
        tuning.finish()
        folder.write_state({**tuning.state, "finished": True})
    return made


def tuning_of(made: AnyTaskModel, splits: Splits, folder: TaskFolder, say: Say) -> Tuning:
    config, device = made.config, machine.device()
    made.system.to(device)
    feed: UnitFeed = made.feed(splits.train, say)
    dev = None if splits.dev is None else _told(made, splits.dev, say)
    trained = [(name, each) for name, each in made.system.named_parameters() if each.requires_grad]
    parameters = sum(each.numel() for _, each in trained)
    longest = feed.longest
    available = machine.available_memory()
    training = config.training
    each = feed.largest_unit
    asked = training.batch * each, training.micro * each
    micro = choose_micro(made.model.config, parameters, longest, asked[0], 1.0, available, asked[1])
    units = max(1, micro.rows // each)
    say(f"micro-batch: {units} {feed.unit_name} ({micro.reason})")
    made.fits_threshold = is_open(config, splits.train)
    optimizer = OPTIMIZERS.get(training.optimizer)(trained, training)
    precision = of_tuning(training.precision, device, say)
    trainer: Trainer[Trainable, UnitFeed] = Trainer(
        training, feed, made.system, optimizer, [units], device=device, planned=micro.bytes, precision=precision
    )
    return Tuning(made, folder, trainer, dev, say)


def _told(made: AnyTaskModel, examples: Examples, say: Say) -> UnitFeed:
    notes: list[str] = []
    feed: UnitFeed = made.feed(examples, notes.append)
    for note in notes:
        say(f"dev: {note}")
    return feed
