"""A loss of the user's own: a function of scores and labels that gives one number for each target.

    def soft(scores, labels):                    # (n,C) or (n,), (n,) -> (n,)
        return F.cross_entropy(scores, labels, reduction="none", label_smoothing=0.2)

`head.loss` is the function itself in Python, or FILE.py:FUNCTION on the command line. The sum of its numbers is the
total, and the targets are counted before it is called, so micro-batches add up whatever it does. A folder holds no
code: task.toml keeps the function's name (and eight letters of its file's hash), by which resuming knows it again.
Predicting needs no loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from maskery.errors import InputError, UnknownName
from maskery.system import Trainable
from maskery.tasks.losses import OWN, Loss, Wanted, loss_of, of_targets, single
from maskery.tasks.read.code import file_and_name, module_of, own_code
from maskery.tasks.settings import TaskConfig
from maskery.tasks.system import TaskSystem

Function = Callable[[Tensor, Tensor], Tensor]
_FLAG = "head.loss"
_GIVES = "it has to give one number for each target: no mean, no sum (reduction='none')"


@dataclass(frozen=True)
class OwnLoss:
    function: Function
    name: str
    file: Path | None = None

    @property
    def loss(self) -> Loss:
        return Loss(self._total, of_targets)

    def _total(self, scores: Tensor, wanted: Wanted) -> Tensor:
        given = scores if scores.shape[-1] > 1 or wanted.label.dim() == 2 else single(scores)
        label = wanted.label if wanted.label.dim() == 1 else wanted.label.to(scores.dtype)
        if not len(label):
            return given.sum()
        with self._watched():
            each = self.function(given, label)
        return self._checked(each, len(label)).sum()

    def require_fit(self, task: str, classes: int) -> None:
        """Try it on two made-up targets of the task, before anything is written."""
        kind = torch.float32 if task in ("regress", "multilabel") else torch.int64
        label = torch.zeros((2, classes) if task == "multilabel" else (2,), dtype=kind)
        total = self._total(torch.zeros((2, classes), requires_grad=True), Wanted(label=label))
        if not total.requires_grad:
            where = _FLAG if self.file is None else self.file
            raise InputError("the loss has no gradient", where=where, repair="compute it from the scores, in torch")

    def _watched(self) -> AbstractContextManager[None]:
        """What fails in a file is told with its line; in Python the user's own traceback is the best there is."""
        return nullcontext() if self.file is None else own_code(self.file, "the loss")

    def _checked(self, each: Any, targets: int) -> Tensor:
        if isinstance(each, Tensor) and each.shape == (targets,):
            return each
        what = f"a tensor of shape {tuple(each.shape)}" if isinstance(each, Tensor) else f"a {type(each).__name__}"
        where = _FLAG if self.file is None else self.file
        raise InputError(f"the loss gave {what} for {targets} targets", where=where, repair=_GIVES)


def taken_loss(settings: Mapping[str, Any], say: Callable[[str], None]) -> tuple[dict[str, Any], OwnLoss | None]:
    """The settings with a name in the place of a function, and the function; `say` is told what was run."""
    head = settings.get("head", {})
    given = head.get("loss") if isinstance(head, Mapping) else None
    own = _own(given)
    if own is None:
        return dict(settings), None
    if own.file is not None:
        say(f"{given}: the code of this file was run")
    return {**settings, "head": {**head, "loss": own.name}}, own


def _own(given: Any) -> OwnLoss | None:
    if isinstance(given, str):
        return _of_file(given) if ".py" in given and not given.startswith(OWN) else None
    if not callable(given):
        return None
    return OwnLoss(given, f"{OWN}{getattr(given, '__name__', type(given).__name__)}")


def _of_file(spec: str) -> OwnLoss:
    file, wanted = file_and_name(spec, _FLAG, "function")
    found = vars(module_of(file))
    if not callable(found.get(wanted)):
        raise UnknownName("function", wanted, [name for name, value in found.items() if callable(value)], where=file)
    function: Function = found[wanted]
    return OwnLoss(function, f"{OWN}{wanted}@{sha256(file.read_bytes()).hexdigest()[:8]}", file)


def require_loss(config: TaskConfig, classes: int, own: OwnLoss | None) -> None:
    """Refuse a loss that does not fit the task, and a name without its function."""
    loss = loss_of(config.task, config.head)
    if own is not None:
        own.require_fit(config.task, classes)
    elif config.head.loss.startswith(OWN):
        loss.total(torch.zeros(0, classes), Wanted(label=torch.zeros(0)))  # says what is missing


def put_loss(system: Trainable, own: OwnLoss | None) -> None:
    """Let a system that was made with the name train, and be judged, by the function."""
    if own is not None and isinstance(system, TaskSystem):
        system.loss = own.loss
