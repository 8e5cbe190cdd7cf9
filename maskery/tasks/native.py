"""The head that a family itself puts on top for a task: where a task needs no other, its folder opens as
`AutoModelFor...`, and one that Hugging Face tools have written opens here."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from maskery.checkpoint.families import FAMILIES
from maskery.checkpoint.heads import EVERY, FIRST, LAST, NORMED, TASKS, WRITTEN, task_head
from maskery.checkpoint.model import Model
from maskery.model.config import Shape
from maskery.model.heads import ClassHead, NormedHead, TwoLayerHead
from maskery.model.linear import Linear
from maskery.tasks.framing.frame import longest_row
from maskery.tasks.heads import Head
from maskery.tasks.settings import ColumnsConfig, HeadConfig, LayerConfig, ReadConfig, TaskConfig, TaskRowsConfig

KINDS = {
    "classify": "sequence_class",
    "pair": "sequence_class",
    "regress": "sequence_class",
    "multilabel": "sequence_class",
    "rank": "sequence_class",
    "choice": "choice",
    "tag": "token_class",
    "qa": "answer_span",
}
"""Task -> how the names of its heads begin."""
_TOLD = {"token_class": "tag", "answer_span": "qa", "choice": "choice"}
_PROBLEMS = {"regression": "regress", "multi_label_classification": "multilabel"}
"""Hugging Face's names of what else than one class of several a head may say."""
PROBLEMS = {task: name for name, task in _PROBLEMS.items()}
UNNAMED = "LABEL_"
"""Hugging Face's name of a class, its number behind it, where nobody gave it one."""
USUAL = 512
"""Slots of a row at most, where a model reads any number."""


@dataclass(frozen=True)
class Native:
    name: str
    pool: str
    layers: tuple[LayerConfig, ...] = ()
    bias: bool = True


def native_head(model: Model, task: str, dropout: float) -> Native:
    """The head of the model's family, that which the model has or its config.json tells where there are several; of a
    family without one, or of our own type, the nearest."""
    kind, shape = KINDS[task], model.config
    known = [each for each in _heads_of(model) if each.startswith(kind)]
    name = next((each for each in known if each in model.heads), known[0] if known else "")
    if not name:
        name = kind if model.network.pooler is not None or kind in EVERY else _without_pooler(kind, shape)
    return _described(name, shape, dropout)


def _heads_of(model: Model) -> list[str]:
    """Those of the family's classes; of the classes that config.json tells, first."""
    if model.family not in FAMILIES:
        return []
    config = {} if model.origin is None else model.origin.config
    classes = sorted(
        FAMILIES[model.family].classes,
        key=lambda each: any(config.get(key, value) != value for key, value in each.says.items()),
    )
    held = [each for every in classes for each in every.ours(model.config)]
    return list(dict.fromkeys(name.split(".")[1] for name in held if name.startswith("heads.")))


def _without_pooler(kind: str, shape: Shape) -> str:
    """A model that reads in an order has read everything at its last slot, any other at its first."""
    ordered = shape.visibility == "causal" or bool(shape.decoder)
    return f"{kind}_last" if ordered and kind == "sequence_class" else f"{kind}_tanh" if ordered else f"{kind}_gelu"


def _described(name: str, shape: Shape, dropout: float) -> Native:
    activations = {**FIRST, **WRITTEN}
    if name in activations:
        layer = LayerConfig(width=shape.width, activation=activations[name], dropout=dropout)
        return Native(name, "first" if name in FIRST else "last", (layer,))
    if name in NORMED:
        layer = LayerConfig(width=shape.width, activation=shape.activation, norm="after")
        return Native(name, NORMED[name] or "first", (layer,))
    if name in LAST:
        return Native(name, "last", bias=False)
    return Native(name, "pooler")


def is_native(config: TaskConfig, native: Native) -> bool:
    """Whether a task has nothing on top but its family's head."""
    head = HeadConfig(layers=native.layers, dropout=config.head.dropout)
    same = config.head.layers == head.layers and not config.head.crf and not config.meta.columns
    one_row = config.rows.towers == "one_row" and config.rows.orders != "both"
    return same and (config.task in ("tag", "qa") or config.read.pool == native.pool) and one_row


def told_task(model: Model) -> TaskConfig | None:
    """The task that a model's own head does, where its folder tells no more; None: it has no such head."""
    config = {} if model.origin is None else model.origin.config
    name = next((each for each in model.heads if each in TASKS), "")
    kind = next((kind for kind in KINDS.values() if name.startswith(kind)), "")
    if not kind:
        return None
    task = _TOLD.get(kind) or _PROBLEMS.get(str(config.get("problem_type")), "classify")
    labels = model.labels or _unnamed(model.heads[name])
    if kind == "sequence_class" and task == "classify" and len(labels) == 1:
        task = "regress"
    native = native_head(model, task, HeadConfig().dropout)
    most = longest_row(model) or USUAL
    return TaskConfig(
        task=task,
        labels=labels if task in ("classify", "multilabel", "tag") else (),
        columns=ColumnsConfig(text=("context", "question") if task in ("qa", "choice") else ("text",)),
        rows=TaskRowsConfig(length=min(most, USUAL)),
        read=ReadConfig(pool=native.pool) if task not in ("tag", "qa") else ReadConfig(),
        head=HeadConfig(layers=native.layers),
    )


def _unnamed(head: nn.Module) -> tuple[str, ...]:
    """Two classes that nobody named are not even written into config.json."""
    last = head.answer if isinstance(head, TwoLayerHead | NormedHead) else head.dense
    assert isinstance(last, Linear)
    return tuple(f"{UNNAMED}{number}" for number in range(last.weight.shape[0]))


def for_two_texts(config: TaskConfig) -> TaskConfig:
    """The told task of a head over a whole row, where the row is two texts: no folder tells how many there are."""
    task = "pair" if config.task == "classify" else config.task
    columns = config.columns.model_copy(update={"text": ("text_a", "text_b")})
    return config.model_copy(update={"task": task, "columns": columns})


def written_head(native: Native, shape: Shape, head: Head) -> nn.Module:
    """The head as the family's class has it."""
    made = task_head(native.name, shape, head.answer.weight.shape[0])
    if isinstance(made, TwoLayerHead):
        made.dense.load_state_dict(head.layers[0].dense.state_dict())  # type: ignore[union-attr]
        made.answer.load_state_dict(head.answer.state_dict())
    elif isinstance(made, NormedHead):
        made.dense.load_state_dict(head.layers[0].dense.state_dict())  # type: ignore[union-attr]
        made.norm.load_state_dict(head.layers[0].norm.state_dict())  # type: ignore[union-attr]
        made.answer.load_state_dict(head.answer.state_dict())
    else:
        assert isinstance(made, ClassHead), "whatever else there is would be written as it lay in memory"
        made.dense.load_state_dict(head.answer.state_dict())
    return made


def take_head(module: nn.Module, head: Head) -> None:
    """The numbers of a family's head into ours."""
    if isinstance(module, TwoLayerHead):
        head.layers[0].dense.load_state_dict(module.dense.state_dict())  # type: ignore[union-attr]
        head.answer.load_state_dict(module.answer.state_dict())
    elif isinstance(module, NormedHead):
        head.layers[0].dense.load_state_dict(module.dense.state_dict())  # type: ignore[union-attr]
        head.layers[0].norm.load_state_dict(module.norm.state_dict())  # type: ignore[union-attr]
        head.answer.load_state_dict(module.answer.state_dict())
    else:
        assert isinstance(module, ClassHead), "whatever else there is would not be taken"
        head.answer.load_state_dict(module.dense.state_dict())
