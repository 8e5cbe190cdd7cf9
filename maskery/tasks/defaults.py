"""The one place that chooses the settings of a fine-tuning: by the model, the task and the number of rows.

`maskery finetune`, `maskery.finetune`, the estimators and every training of a plan take what is not given from here,
and print it with the reason; training of sentence vectors has its learning rate from here, too. The rules are
measured by benchmarks/finetune_defaults.py.

    learning rate   1.5e-4 at 10 million layer parameters, falling with size^0.65 (3.7e-5 at BERT base), 3e-4 at most
    epochs          3, of small models 5, of hardly trained ones 8; more for few rows, until there are enough updates
    batch           16 below 1,000 rows, 32 otherwise; halved, down to 4, where the epochs that are given, or a time
                    budget (`maskery/tasks/pace.py`), leave fewer than 75 updates
    pooling         that of a sentence-transformers folder; the mean where a base model is hardly trained
                    and has no pooler: its first slot was never trained to hold a text
    frozen          another learning rate and more epochs: only a head is trained
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from maskery.checkpoint.locate import locate
from maskery.checkpoint.model import Model
from maskery.checkpoint.pooling import folder_pooling
from maskery.checkpoint.tensors import read_json
from maskery.model.config import Architecture
from maskery.tasks.native import native_head
from maskery.tasks.settings import TaskConfig
from maskery.train.folder import STATE

Say = Callable[[str], None]
_REFERENCE, _RATE, _POWER = 10e6, 1.5e-4, 0.65
_HIGHEST_RATE, _LOWEST_RATE = 3e-4, 1e-5
_FROZEN_RATE, _FROZEN_EPOCHS = 1e-2, 10.0
_SMALL = 30e6
"""Layer parameters below which an epoch costs little and three are too few."""
_FEW_ROWS = 1000
ENOUGH_UPDATES, SMALLEST_BATCH = 75, 4
"""Where all that is read makes fewer updates, batches are halved: 300 rows of TREC read once by MiniLM give 43 % in
batches of 32, 54 % of 16, 75 % of 8, 83 % of 4."""
_UPDATES, _MOST_EPOCHS = 150, 20.0
"""Updates at least, as far as so many epochs reach."""
_EVALUATIONS = 10
_SHORT = 1_000_000_000
"""Tokens of a pretraining, below which a model counts as hardly trained: BERT read a hundred times as many."""
_POOLED = ("classify", "pair", "regress", "multilabel", "choice", "rank")
"""Tasks that read one vector a row."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the settings are chosen by."""

    task: str
    rows: int
    parameters: int
    """Of the layers: embeddings are large and hardly move."""
    epochs: float = 0.0
    """Given by the user; 0: open."""
    frozen: bool = False
    weak: bool = False
    """Hardly trained: no better than frequencies (`maskery/tasks/weak.py`), or a short run of our own."""
    pooling: str = ""
    """What the model's folder says; empty: nothing."""
    has_pooler: bool = False
    has_head: bool = False
    """The model comes with the head of the task: training goes on from it, so it is read as it was."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    lr: float
    epochs: float
    batch: int
    pool: str
    """"auto": the family's own."""
    evaluate_every: int
    why: Mapping[str, str]
    """The reason of each."""


def layer_parameters(shape: Architecture) -> int:
    """Numbers of all matrices of all layers; shared ones count in every layer that has them, for they act there."""
    width, inside = shape.width, shape.feedforward or 4 * shape.width
    decoder = shape.decoder * (8 * width**2 + 2 * width * inside)
    return shape.layers * (4 * width**2 + 2 * width * inside) + decoder


def rate_of(parameters: int) -> float:
    """The peak learning rate of a model of this size; two significant digits."""
    plain = _RATE * (_REFERENCE / max(1, parameters)) ** _POWER
    return float(f"{min(_HIGHEST_RATE, max(_LOWEST_RATE, plain)):.1e}")


def batch_for(rows: float, largest: int) -> int:
    """The largest batch, halved from `largest`, with which `rows` that are read make enough updates."""
    batch = largest
    while batch > SMALLEST_BATCH and rows / batch < ENOUGH_UPDATES:
        batch //= 2
    return batch


def chosen(facts: Facts) -> Chosen:
    usual_batch = 16 if facts.rows < _FEW_ROWS else 32
    batch = batch_for(facts.epochs * facts.rows, usual_batch) if facts.epochs else usual_batch
    size = f"{facts.parameters / 1e6:.3g} million layer parameters"
    if facts.frozen:
        lr, usual, why = _FROZEN_RATE, _FROZEN_EPOCHS, "the encoder is frozen"
    else:
        lr, why = rate_of(facts.parameters), size
        usual = 8.0 if facts.weak else 5.0 if facts.parameters < _SMALL else 3.0
    needed = float(math.ceil(_UPDATES * batch / max(1, facts.rows)))
    epochs = max(usual, min(_MOST_EPOCHS, needed))
    few = f"{facts.rows:,} rows need them for enough updates" if epochs > usual else ""
    weak = "the base model is hardly trained" if facts.weak and not facts.frozen else why
    pool, pooled = _pool(facts)
    return Chosen(
        lr=lr,
        epochs=epochs,
        batch=batch,
        pool=pool,
        evaluate_every=max(1, math.ceil(epochs / _EVALUATIONS)),
        why={
            "lr": why,
            "epochs": few or weak,
            "batch": f"{facts.rows:,} rows" + (", for enough updates" if batch < usual_batch else ""),
            "pool": pooled,
        },
    )


def _pool(facts: Facts) -> tuple[str, str]:
    if facts.task not in _POOLED or facts.has_head:
        return "auto", ""
    if facts.pooling in ("first", "mean", "max", "last"):
        return facts.pooling, "as the model's folder pools"
    if facts.weak and not facts.has_pooler:
        return "mean", "the base model is hardly trained and has no pooler"
    return "auto", ""


@dataclass(frozen=True)
class Defaults:
    """The choice for one model and task; a part of the rows has its own."""

    facts: Facts
    given: frozenset[str]
    """Keys of task.toml that the user has set: they win."""

    @property
    def open_batch(self) -> bool:
        return "training.batch" not in self.given

    def applied(self, config: TaskConfig, rows: int, say: Say | None = None) -> TaskConfig:
        """The settings with what is not given chosen; `say` prints it."""
        epochs = config.epochs if "epochs" in self.given else 0.0
        found = chosen(replace(self.facts, rows=rows, epochs=epochs))
        training = {key: getattr(found, key) for key in ("lr", "batch") if f"training.{key}" not in self.given}
        top: dict[str, Any] = {}
        if "epochs" not in self.given:  # with epochs of the user's own, each is evaluated
            top = {key: getattr(found, key) for key in ("epochs", "evaluate_every") if key not in self.given}
        read = {"pool": found.pool} if "read.pool" not in self.given and found.pool != "auto" else {}
        if say is not None:
            say(_line(found, training | top | read))
        return config.model_copy(
            update={
                **top,
                "training": config.training.model_copy(update=training),
                "read": config.read.model_copy(update=read),
            }
        )


def _line(found: Chosen, taken: Mapping[str, Any]) -> str:
    """Chosen: learning rate 2e-4 (10.6 million layer parameters), 5 epochs (...), ..."""
    words = {
        "lr": f"learning rate {found.lr:g}",
        "epochs": f"{found.epochs:g} epochs",
        "batch": f"batches of {found.batch}",
        "pool": f"pooling {found.pool}",
    }
    parts = [f"{text} ({found.why[key]})" for key, text in words.items() if key in taken]
    return f"chosen: {', '.join(parts)}" if parts else "settings: all as given"


def defaults_of(
    config: TaskConfig, given: Mapping[str, Any], model: Model, source: str | Path, rows: int, weak: bool
) -> Defaults:
    """`given`: the settings that somebody has set, as nested values."""
    facts = Facts(
        task=config.task,
        rows=rows,
        parameters=layer_parameters(model.config),
        frozen=config.read.frozen,
        weak=weak or short_run(source) is not None,
        pooling=folder_pooling(locate(Path(source))[0]) or "",
        has_pooler=model.network.pooler is not None,
        has_head=_has_head(model, config),
    )
    return Defaults(facts, frozenset(_keys(given)))


def short_run(source: str | Path) -> int | None:
    """The tokens that `source` has read, if it is a pretraining run of our own that has read little."""
    path = Path(source) / STATE
    state = read_json(path) if path.is_file() else {}
    tokens = None if "task" in state else state.get("tokens")  # fine-tuning and vector training have a task
    return tokens if isinstance(tokens, int) and tokens < _SHORT else None


def short_note(source: str | Path) -> str:
    """Names a base model of a short run before training begins; empty for others."""
    tokens = short_run(source)
    if tokens is None:
        return ""
    return f"the base model is hardly trained: its pretraining read {tokens:,} tokens, BERT's more than 100 billion"


def _has_head(model: Model, config: TaskConfig) -> bool:
    if config.task not in _POOLED:
        return False
    return native_head(model, config.task, config.head.dropout).name in model.heads


def _keys(given: Mapping[str, Any], before: str = "") -> list[str]:
    """{"training": {"lr": 1e-4}} -> training.lr"""
    found = []
    for key, value in given.items():
        found += _keys(value, f"{before}{key}.") if isinstance(value, Mapping) else [f"{before}{key}"]
    return found
