"""Fine-tuning: a model, a task and examples in, a run folder with the best model out. Resuming goes on bitwise."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from maskery import files
from maskery.errors import RecipeError, Stopped
from maskery.tasks.examples import Examples
from maskery.tasks.feed import TaskFeed
from maskery.tasks.folder import TaskFolder, fingerprint, put_weights, weights_of
from maskery.tasks.judge.measure import HEADLINES, measure
from maskery.tasks.model import TaskModel
from maskery.tasks.resolve import Splits, evaluations
from maskery.tasks.settings import TaskConfig
from maskery.tasks.system import TaskSystem
from maskery.train import machine
from maskery.train.config import OPTIMIZERS
from maskery.train.lock import locked
from maskery.train.loop import Trainer, Update
from maskery.train.memory import choose_micro
from maskery.train.run import occupied
from maskery.train.stop import stop_requests

Say = Callable[[str], None]
Watch = Callable[[Update, Mapping[str, Any]], None]


@dataclass
class Tuning:
    """A fine-tuning under way."""

    made: TaskModel
    folder: TaskFolder
    trainer: Trainer[TaskSystem, TaskFeed]
    dev: TaskFeed | None
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
        if self.folder.state.get("data") != data:
            raise RecipeError(
                "the run was started with other examples",
                where=self.folder.path,
                repair="resume with the same files, or choose another --out",
            )
        other = sorted(key for key in task if self.folder.state.get("task", {}).get(key) != task[key])
        if other:
            raise RecipeError(
                f"the run was started with another {other[0]}",
                where=self.folder.path,
                repair="resume with the same settings, or choose another --out",
            )
        _, newest = self.folder.checkpoints()[-1]
        self.state, self.best = self.folder.restore(newest, self.made.system, self.trainer.optimizer)
        self.trainer.step = self.state["step"]
        if self.state["machine"]["micro"] != self.trainer.micro:
            self.trainer.micro = list(self.state["machine"]["micro"])
            self.say(f"micro-batches of {self.trainer.micro[0]}, as the run was started")
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
        found = self.made.answers(self.dev)
        question = self.dev.question
        metrics = measure(
            self.config.task,
            question.gold,
            found.answers,
            labels=self.config.labels,
            probabilities=found.probabilities,
            groups=found.groups,
        )
        self._judge(metrics[HEADLINES[self.config.task][0]])
        return {f"eval/{name}": each for name, each in metrics.items()}

    def _judge(self, value: float) -> None:
        """Keep the weights if they are the best so far."""
        before = self.state["best"]
        if before is None or _rank(value) > _rank(before["value"]):
            self.state |= {"best": {"step": self.state["step"], "value": value}, "stale": 0}
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
        self.made.system.eval()
        self.made.save(self.folder.path, self.say)


def _rank(value: float) -> float:
    """A figure that could not be computed (the rank correlation of equal numbers) is worse than any other."""
    return -math.inf if math.isnan(value) else value


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
    made: TaskModel, splits: Splits, out: Path, *, resume: bool = False, say: Say, watch: Watch = _nobody
) -> TaskModel:
    """Train a model whose task is resolved (`resolve`); the best on the development set is written and returned."""
    machine.prepare()
    folder = TaskFolder(out)
    started = occupied(out, resume)
    with locked(out), files.writing(out, reads=True):
        if started and folder.begun and folder.state.get("finished"):
            say(f"{out}: already finished at step {folder.state['step']}")
            return TaskModel.load(out)
        tuning = _tuning(made, splits, folder, say)
        tuning.begin(fingerprint(splits.train, splits.dev), started)
        tuning.train(watch)
        tuning.finish()
        folder.write_state({**tuning.state, "finished": True})
    return made


def _tuning(made: TaskModel, splits: Splits, folder: TaskFolder, say: Say) -> Tuning:
    config, device = made.config, machine.device()
    made.system.to(device)
    feed = made.feed(splits.train, say)
    dev = None if splits.dev is None else _told(made, splits.dev, say)
    trained = [(name, each) for name, each in made.system.named_parameters() if each.requires_grad]
    parameters = sum(each.numel() for _, each in trained)
    longest = int(feed.rows.length.max(initial=1))
    available = machine.available_memory()
    training = config.training
    micro = choose_micro(made.model.config, parameters, longest, training.batch, 1.0, available, training.micro)
    units = max(1, micro.rows // (1 if training.micro else feed.largest_unit))
    say(f"micro-batch: {units} {'rows' if feed.largest_unit == 1 else 'questions'} ({micro.reason})")
    optimizer = OPTIMIZERS.get(training.optimizer)(trained, training)
    trainer = Trainer(training, feed, made.system, optimizer, [units], device=device, planned=micro.bytes)
    return Tuning(made, folder, trainer, dev, say)


def _told(made: TaskModel, examples: Examples, say: Say) -> TaskFeed:
    notes: list[str] = []
    feed = made.feed(examples, notes.append)
    for note in notes:
        say(f"dev: {note}")
    return feed
