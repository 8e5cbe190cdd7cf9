"""Training of an encoder: a model, a loss and texts in, a run folder with the best encoder out.

    encoder = train_encoder("bert", loss="simcse", train="lines.txt", dev="STSB.dev.tsv", out="run")

metrics.jsonl, state.json and checkpoints/ are those of every run here. Resuming goes on bitwise; Ctrl-C leaves the best
encoder so far at the top of the folder.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from maskery import files
from maskery.checkpoint.fingerprint import model_fingerprint
from maskery.errors import ArgumentError
from maskery.tasks.folder import VECTORS, Origins, TaskFolder, require_kind
from maskery.tasks.run import Say, Tuning, Watch, require_same
from maskery.tasks.settings import TaskConfig
from maskery.train import machine
from maskery.train.config import OPTIMIZERS
from maskery.train.lock import locked
from maskery.train.loop import Trainer, Update
from maskery.train.memory import choose_micro
from maskery.train.precision import of_tuning
from maskery.train.run import occupied
from maskery.vectors.encoder import Encoder, say_on_stderr
from maskery.vectors.learn.batches import VectorFeed
from maskery.vectors.learn.copies import copies_in
from maskery.vectors.learn.data import TextSet, fitted
from maskery.vectors.learn.defaults import scaled
from maskery.vectors.learn.dev import DevSet, dev_set
from maskery.vectors.learn.folder import put_encoder, put_writer
from maskery.vectors.learn.prepare import Source, feed_of, opened, require_model, resolved, system_of
from maskery.vectors.learn.read import texts_given
from maskery.vectors.learn.settings import LearnConfig, learn_config
from maskery.vectors.learn.system import VectorSystem

Texts = TextSet | str | os.PathLike[str] | Iterable[str | Mapping[str, Any]]
"""A file, rows (a table or dicts), texts alone, or what was read before."""


def _nobody(update: Update, line: Mapping[str, Any]) -> None:
    """Whom nothing has to be told."""


@dataclass(frozen=True)
class Learner:
    """What is trained, as `Tuning` handles it."""

    config: LearnConfig
    system: VectorSystem

    def save(self, folder: Path, say: Say) -> None:
        put_encoder(self.system.made, folder, say)
        if self.system.writes is not None:
            put_writer(self.system.made, self.system.writes, folder)


@dataclass
class Learning(Tuning):
    """A training under way: as fine-tuning goes, judged by vectors."""

    made: Any
    dev: Any

    @property
    def config(self) -> Any:
        return self.made.config

    def _asked(self) -> list[int]:
        """Every so many updates, or at the end of every epoch; and at the end of training."""
        config, feed = self.made.config, cast(VectorFeed, self.trainer.feed)
        last, every = config.training.steps, config.eval_every or len(feed.units) / config.training.batch
        times = int(last / every)
        return sorted({*(min(last, max(1, round(number * every))) for number in range(1, times + 1)), last})

    def _evaluate(self) -> dict[str, Any]:
        """Ask the development set; without one the last weights are the best."""
        if self.dev is None:
            self.best = {}
            return {}
        figures = self.dev.judge(self.made.system)
        self._judge({"value": figures[self.dev.headline]})
        return {f"eval/{name}": each for name, each in figures.items()}

    def _settle(self) -> None:
        """An encoder has nothing that only the end of training tells."""

    def judge_start(self) -> None:
        """The encoder before training is a candidate, too: what makes it worse is not kept."""
        if self.dev is not None and not self.state["step"]:
            value = self.dev.judge(self.made.system)[self.dev.headline]
            self.state["start"] = value
            self._judge({"value": value})
            self.folder.write_state(self.state)
            self.say(f"dev: {self.dev.headline} {value:.4f} before training, {len(self.dev.texts):,} units")

    def tell_end(self) -> None:
        """Whether training was worth it."""
        best = self.state["best"]
        if best is None or best["step"] or not math.isfinite(best["value"]):
            return
        self.say(
            f"worse than before: no evaluation reached {self.dev.headline} {best['value']:.4f} of the start, which is "
            "kept. Try a lower learning rate (--lr), other data or another loss"
        )


def train_encoder(
    model: Source,
    *,
    loss: str,
    train: Texts,
    out: str | os.PathLike[str],
    dev: Texts | None = None,
    settings: Mapping[str, Any] | LearnConfig | None = None,
    resume: bool = False,
    say: Say = say_on_stderr,
    watch: Watch = _nobody,
) -> Encoder:
    """Train an encoder and return the best on the development set, which is also written to `out`; the start counts
    as a candidate.

        train_encoder("bert", loss="cosent", train=pandas.read_csv("pairs.csv"), out="run")

    `train` and `dev` are each the path of a file, a pandas DataFrame, a `datasets.Dataset`, a list or generator of
    dicts, of texts alone (simcse), or a `TextSet`. `model` is a folder, an `Encoder` or a `VectorModel`, which is
    trained in place. `settings` are keys of `LearnConfig`; what is not given is chosen by the loss, the model's size
    and the data (a whole `LearnConfig` leaves nothing to choose). `watch` sees every update with its metrics.
    """
    config = settings if isinstance(settings, LearnConfig) else learn_config(loss, settings)
    if config.loss != loss:
        raise ArgumentError(f"the loss {loss}, and settings of {config.loss}", repair=f'learn_config("{loss}", ...)')
    out = Path(out)
    started = occupied(out, resume)
    folder = TaskFolder(out)
    if started:
        require_kind(folder, VECTORS)
    require_model(model)
    texts = _read(train, config, say)
    machine.prepare()
    made = opened(model, config, say)
    if not isinstance(settings, LearnConfig):
        config = scaled(config, settings or {}, made.model.config, len(texts), say)
    config = resolved(config, texts, made, say)
    judged = None if dev is None else _dev(dev, config, say)
    for note in copies_in(texts, None if judged is None else judged.texts):
        say(note)
    data = texts.fingerprint + ("" if judged is None else judged.texts.fingerprint)
    beside = {name: each for name, each in made.state_dict().items() if not name.startswith("model.")}
    of = Origins(kind=VECTORS, data=data, base=model_fingerprint(made.model, beside))
    if started and folder.state.get("finished"):
        require_same(folder, of, cast(TaskConfig, config))
        say(f"{out}: already finished at step {folder.state['step']}")
        return Encoder(out, say=say)
    with locked(out), files.writing(out, reads=True):
        learning = _learning(Learner(config, system_of(made, config, say)), texts, judged, folder, say)
        learning.begin(of, started)
        learning.judge_start()
        learning.train(watch)
        learning.tell_end()
        learning.finish()
        folder.write_state({**learning.state, "finished": True})
    return Encoder(learning.made.system.made, device=learning.trainer.device, say=say)


def _read(train: Texts, config: LearnConfig, say: Say) -> TextSet:
    found = texts_given("train", train, config.loss, config.columns)
    found = fitted(found, config.loss, positive=config.positive, labels=config.labels)
    for note in found.notes:
        say(note)
    return found


def _dev(dev: Texts, config: LearnConfig, say: Say) -> DevSet:
    found = dev_set(dev, config)
    for note in found.texts.notes:
        say(f"dev: {note}")
    return found


def _learning(learner: Learner, texts: TextSet, dev: DevSet | None, folder: TaskFolder, say: Say) -> Learning:
    config, system, device = learner.config, learner.system, machine.device()
    system.to(device)
    feed = feed_of(system.made, texts, config, say)
    training, trained, rows = config.training, system.trained, feed.largest_unit
    parameters = sum(each.numel() for _, each in trained)
    asked = training.batch * rows, training.micro * rows
    shape, memory = system.made.model.config, machine.available_memory()
    micro = choose_micro(shape, parameters, feed.longest, asked[0], 1.0, memory, asked[1])
    units = max(1, micro.rows // rows)
    cached = ", gradients cached" if system.loss.whole_batch and units < training.batch else ""
    say(f"micro-batch: {units} of {training.batch} units{cached} ({micro.reason})")
    optimizer = OPTIMIZERS.get(training.optimizer)(trained, training)
    precision = of_tuning(training.precision, device, say)
    trainer: Trainer[VectorSystem, VectorFeed] = Trainer(
        training, feed, system, optimizer, [units], device=device, planned=micro.bytes, precision=precision
    )
    return Learning(learner, folder, trainer, dev, say)  # type: ignore[arg-type]
