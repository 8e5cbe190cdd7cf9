"""What all trainings of one run have in common: data, the model they begin with, baselines, what was already found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model
from maskery.tasks.adapt import FOLDER as ADAPTED
from maskery.tasks.adapt import taken
from maskery.tasks.base import Evaluation
from maskery.tasks.copies import Overlap
from maskery.tasks.defaults import Defaults
from maskery.tasks.examples import Examples
from maskery.tasks.folder import FINETUNE, Origins, fingerprint
from maskery.tasks.judge.baselines import MOST_ROWS, Baselines, baselines_of
from maskery.tasks.own_loss import OwnLoss, put_loss
from maskery.tasks.pace import sample_of
from maskery.tasks.plan import Part, Watching
from maskery.tasks.resolve import Splits
from maskery.tasks.run import Watch
from maskery.tasks.settings import TaskConfig
from maskery.tasks.together import Answering, models_of, opened
from maskery.train.loop import Update

Say = Callable[[str], None]
_BASELINE_ROWS = 200
"""Training rows that the TF-IDF baseline may count for each second of a budget."""


@dataclass
class Work:
    """What all trainings of a run have in common."""

    source: str | Path
    out: Path
    splits: Splits
    say: Say
    many: int = 1
    """Trainings."""
    watching: Watching | None = None
    loaded: Model | None = None
    """The model as it was read first: the first training takes it, every other one reads it again."""
    base: str = ""
    """Its fingerprint."""
    begun: int = 0
    loss: OwnLoss | None = None
    """A function of the user's own, where the settings name one."""
    evaluations: dict[Path, Evaluation] = field(default_factory=dict)
    """What the kept weights of finished trainings answered, so that nothing is read again."""
    samples: dict[int, Examples] = field(default_factory=dict)
    baselines: dict[int, Baselines] = field(default_factory=dict)
    overlap: Overlap = field(default_factory=Overlap)
    """Rows of dev and test that stand in train as well."""
    defaults: Defaults | None = None
    """How settings are chosen for a part of the data; None: they are those of all."""

    def dev(self, rows: int) -> Examples | None:
        """The development set, or its sample of so many examples: always the same object."""
        if self.splits.dev is None or not rows:
            return self.splits.dev
        if rows not in self.samples:
            self.samples[rows] = sample_of(self.splits.dev, rows)
        return self.samples[rows]

    def baselines_for(self, train: Examples, dev: Examples, seconds: float) -> Baselines:
        """Of a training set. A short budget has a small sample of it."""
        if id(train) not in self.baselines:
            most = min(MOST_ROWS, int(_BASELINE_ROWS * seconds)) if seconds else MOST_ROWS
            self.baselines[id(train)] = baselines_of(train, dev, most=most)
        return self.baselines[id(train)]

    def config_for(self, config: TaskConfig, train: Examples) -> TaskConfig:
        """The settings of a training on `train`."""
        if self.defaults is None or train is self.splits.train:
            return config
        return self.defaults.applied(config, len(train))

    def open_by_time(self, seconds: float) -> tuple[str, ...]:
        """Keys of task.toml left open by the user that a time budget may settle."""
        return ("training.batch",) if seconds and self.defaults is not None and self.defaults.open_batch else ()

    def model(self) -> Model:
        if self.loaded is not None:
            found, self.loaded = self.loaded, None
            return found
        found = load(self.source)
        if (self.out / ADAPTED).is_dir():
            taken(found, self.out / ADAPTED)
        return found

    def origins(self, splits: Splits) -> Origins:
        return Origins(kind=FINETUNE, data=fingerprint(splits.train, splits.dev), base=self.base)

    def opened(self, path: Path) -> Answering:
        """What a training wrote, with the loss by which it is judged."""
        found = opened(path)
        for each in models_of(found):
            put_loss(each.system, self.loss)
        return found

    def title(self, path: Path) -> str:
        if self.many == 1:
            return ""
        return f"training {self.begun} of {self.many}, {path.relative_to(self.out)}"

    def watch(self, part: Part) -> AbstractContextManager[Watch]:
        return nullcontext(_nobody) if self.watching is None else self.watching(part)


def _nobody(update: Update, line: Mapping[str, Any]) -> None:
    pass
