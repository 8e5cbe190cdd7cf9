"""Fine-tuning: a model, a task and examples in, a run folder with the best model out. Resuming goes on bitwise."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from maskery import files
from maskery.checkpoint.fingerprint import model_fingerprint
from maskery.errors import RecipeError, Stopped
from maskery.system import Trainable
from maskery.tasks.base import AnyTaskModel, Evaluation, UnitFeed
from maskery.tasks.examples import Examples
from maskery.tasks.folder import FINETUNE, Origins, TaskFolder, fingerprint, put_weights, require_kind, weights_of
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
    examples: Examples | None = None
    """Those of `dev`."""
    found: Evaluation | None = None
    """What the best weights answered; None: a resumed run has not yet found better ones."""

    @property
    def config(self) -> TaskConfig:
        return self.made.config

    def begin(self, of: Origins, resume: bool) -> None:
        """State and weights to go on from."""
        if resume and self.folder.begun:
            require_same(self.folder, of, self.config)
        if not resume or not self.folder.checkpoints():
            self.state = {
                "step": 0,
                "tokens": 0,
                **asdict(of),
                "examples": _number(self.trainer.feed.units),
                "task": _settings(self.config),
                "best": None,
                "stale": 0,
                "finished": False,
            }
            self.folder.write_state(self.state)
            self.folder.run.cut_metrics(0)
            return
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
        evaluated = self.made.evaluated(self.dev)
        metrics = evaluated.metrics
        found: dict[str, Any] = {"value": metrics[HEADLINES[self.config.task][0]]}
        found |= {"loss": metrics["loss"]} if "loss" in metrics else {}
        found |= {"threshold": self.config.threshold} if self.made.fits_threshold else {}
        if self._judge(found):
            self.found = evaluated
        return {f"eval/{name}": each for name, each in metrics.items()}

    def _judge(self, found: Mapping[str, Any]) -> bool:
        """Keep the weights if what was found, the headline's value first, is the best so far; whether it is."""
        before = self.state["best"]
        if before is None or _rank(found) > _rank(before):
            self.state |= {"best": {"step": self.state["step"], **found}, "stale": 0}
            self.best = weights_of(self.made.system)
            return True
        self.state["stale"] += 1
        return False

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
        if self.found is not None and self.examples is not None and self.found.predicted is not None:
            self.made.evaluation = self.examples, self.found
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


def require_same(folder: TaskFolder, of: Origins, config: TaskConfig, free: Collection[str] = ()) -> None:
    """Refuse a run of another command, other examples, another model, or other settings. `free`: keys that a plan has
    changed."""
    state = folder.state
    require_kind(folder, of.kind)
    for name, what, same in (("data", "other examples", "files"), ("base", "another base model", "model")):
        if state.get(name) != getattr(of, name):
            raise RecipeError(
                f"the run was started with {what}",
                where=folder.path,
                repair=f"resume with the same {same}, or choose another --out",
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
    made: AnyTaskModel,
    splits: Splits,
    out: Path,
    *,
    resume: bool = False,
    say: Say,
    watch: Watch = _nobody,
    base: str = "",
    sample: Examples | None = None,
) -> AnyTaskModel:
    """Train a model whose task is resolved (`resolve`); the best on the development set is written and returned.
    `base`: the fingerprint of the model that it began as, where that is not the model as it stands. `sample`: the part
    of the development set that is evaluated on; None: all of it."""
    machine.prepare()
    folder = TaskFolder(out)
    started = occupied(out, resume)
    data = fingerprint(splits.train, splits.dev)
    of = Origins(kind=FINETUNE, data=data, base=base or model_fingerprint(made.model))
    with locked(out), files.writing(out, reads=True):
        if started and folder.begun and folder.state.get("finished"):
            require_same(folder, of, made.config)
            say(f"{out}: already finished at step {folder.state['step']}")
            return TaskModel.load(out)
        tuning = tuning_of(made, splits if sample is None else replace(splits, dev=sample), folder, say)
        tuning.begin(of, started)
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
    return Tuning(made, folder, trainer, dev, say, examples=splits.dev)


def _told(made: AnyTaskModel, examples: Examples, say: Say) -> UnitFeed:
    notes: list[str] = []
    feed: UnitFeed = made.feed(examples, notes.append)
    for note in notes:
        say(f"dev: {note}")
    return feed


def _number(units: Any) -> int:
    """How many units are trained on; a feed of vectors has their rows."""
    return units if isinstance(units, int) else len(units)
