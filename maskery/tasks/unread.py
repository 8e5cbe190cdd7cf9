"""Settings that a task would not read. They are refused: who sets one expects it to matter."""

from __future__ import annotations

from typing import NamedTuple

from maskery.errors import InputError
from maskery.tasks.losses import FITTING
from maskery.tasks.settings import HeadConfig, TaskConfig, WriteConfig


class Unread(NamedTuple):
    where: str
    cause: str
    repair: str


def require_read(config: TaskConfig) -> None:
    """Refuse what has no effect. seq2seq refuses its own (maskery/tasks/seq2seq/rooms.py)."""
    for check in (_crf, _loss_beside_crf, _smoothing, _focus, _pool, _write):
        found = check(config)
        if found is not None:
            raise InputError(found.cause, where=found.where, repair=found.repair)


def _loss(config: TaskConfig) -> str:
    """The loss that is trained, by its name."""
    head, fitting = config.head, FITTING[config.task]
    return "crf" if head.crf else fitting[0] if head.loss == "auto" else head.loss


def _crf(config: TaskConfig) -> Unread | None:
    if not config.head.crf or config.task == "tag":
        return None
    return Unread("head.crf", f"--crf is for the task tag; this is {config.task}", "leave out --crf, or --task tag")


def _loss_beside_crf(config: TaskConfig) -> Unread | None:
    if not config.head.crf or config.head.loss == "auto":
        return None
    cause = f"a crf has a loss of its own, so {config.head.loss} would not be trained"
    return Unread("head.loss", cause, "leave out head.loss, or --crf")


def _smoothing(config: TaskConfig) -> Unread | None:
    if not config.head.smoothing or _loss(config) == "cross_entropy":
        return None
    repair = "leave it out" + (", or head.loss=cross_entropy" if "cross_entropy" in FITTING[config.task] else "")
    return Unread("head.smoothing", f"smoothing is of cross_entropy; the loss here is {_loss(config)}", repair)


def _focus(config: TaskConfig) -> Unread | None:
    if config.head.focus == HeadConfig().focus or _loss(config) == "focal":
        return None
    repair = "leave it out" + (", or head.loss=focal" if "focal" in FITTING[config.task] else "")
    return Unread("head.focus", f"focus is of the focal loss; the loss here is {_loss(config)}", repair)


def _pool(config: TaskConfig) -> Unread | None:
    if config.task not in ("tag", "qa") or config.read.pool == "auto":
        return None
    cause = f"{config.task} asks every token, so no vector of a text is read: --pool {config.read.pool} has no effect"
    return Unread("read.pool", cause, "leave out --pool")


def _write(config: TaskConfig) -> Unread | None:
    if config.write == WriteConfig():
        return None
    return Unread("write", f"{config.task} writes no text", "leave out write.*, or --task seq2seq")
