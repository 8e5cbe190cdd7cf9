"""Losses by name. Each is a sum, and its count is known from the targets alone; only the loop divides.

    cross_entropy   one class of C; `smoothing` gives all classes a share     count: targets
    focal           the same, (1-p)^focus times: what is sure counts less     count: targets
    binary          each class yes or no; a target's loss is their mean       count: targets
    mse, mae        a number                                                  count: targets
    listwise        softmax over the candidates of a question, against their shares of its relevance
                                                                              count: questions with a relevant one
    pairwise        of two candidates of a question the better scores higher  count: such pairs
    choice          listwise with the number of the right one                 count: questions
    span            beginning and end among the slots of a row, their mean    count: rows

    own:NAME        a function of the user's own (maskery/tasks/own_loss.py)  count: targets

A correlation (Pearson) is no sum over targets: as a loss it would depend on how a batch is cut. It is a metric.

Shapes: n targets, C classes, Q questions, K candidates at most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from maskery.errors import InputError, UnknownName
from maskery.tasks.ragged import grid_of, items_of, widest
from maskery.tasks.settings import HeadConfig

_NEVER = float("-inf")
OWN = "own:"
"""How the name of a function of the user's own begins: nothing here knows the function itself."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    label: Tensor
    """(n,) classes or numbers, (n,C) 0 and 1 (binary), (n,) relevance (listwise, pairwise), (Q,) the right candidate
    (choice), (Q,2) first and last slot (span)."""
    sizes: Tensor | None = None
    """(Q,) how many candidates, or slots, each question has; they lie end to end in the scores."""

    @property
    def groups(self) -> Tensor:
        if self.sizes is None:
            raise InputError("the loss compares candidates of a question", repair="say how many each question has")
        return self.sizes


@dataclass(frozen=True)
class Loss:
    total: Callable[[Tensor, Wanted], Tensor]
    """Scores (n,C), or (n,) or (n,1) where there is one each, and targets -> the summed loss."""
    count: Callable[[Wanted], int]


def cross_entropy(scores: Tensor, wanted: Wanted, smoothing: float = 0.0) -> Tensor:
    return F.cross_entropy(scores, wanted.label, reduction="sum", label_smoothing=smoothing)


def focal(scores: Tensor, wanted: Wanted, focus: float = 2.0) -> Tensor:
    right = F.log_softmax(scores, 1).gather(1, wanted.label.unsqueeze(1)).squeeze(1)
    unsure = -torch.expm1(right)  # 1-p, exact also where p is near 1
    # The gradient of 0^focus is infinite below 1: what is sure to the last bit counts nothing anyway.
    return -(unsure.clamp_min(torch.finfo(unsure.dtype).tiny) ** focus * right).sum()


def binary(scores: Tensor, wanted: Wanted) -> Tensor:
    each = F.binary_cross_entropy_with_logits(scores, wanted.label.to(scores.dtype), reduction="none")
    return each.mean(1).sum()


def mse(scores: Tensor, wanted: Wanted) -> Tensor:
    return (single(scores) - wanted.label).square().sum()


def mae(scores: Tensor, wanted: Wanted) -> Tensor:
    return (single(scores) - wanted.label).abs().sum()


def single(scores: Tensor) -> Tensor:
    """(n,1) or (n,) -> (n,)"""
    return scores.squeeze(1) if scores.dim() == 2 else scores


def log_shares(scores: Tensor, sizes: Tensor) -> Tensor:
    """(n,) -> (Q,K) the log of the softmax over each question's candidates; -inf where there is none."""
    grid = grid_of(single(scores), sizes, _NEVER)
    there = grid_of(torch.ones_like(single(scores)), sizes) > 0
    # A question without candidates would divide by nothing.
    return torch.log_softmax(grid.masked_fill(~there.any(1, keepdim=True), 0.0), 1).masked_fill(~there, _NEVER)


def choice_probabilities(scores: Tensor, sizes: Tensor) -> Tensor:
    """(n,) of the candidates of questions that lie end to end; each question's sum is 1."""
    return items_of(log_shares(scores, sizes).exp(), sizes)


def listwise(scores: Tensor, wanted: Wanted) -> Tensor:
    if not widest(wanted.groups):
        return single(scores).sum()
    relevance = grid_of(wanted.label.to(scores.dtype), wanted.groups)
    mass = relevance.sum(1, keepdim=True)
    share = relevance / mass.masked_fill(mass == 0, 1.0)
    found = log_shares(scores, wanted.groups)
    return -(share * found.masked_fill(share == 0, 0.0)).sum()


def choice(scores: Tensor, wanted: Wanted) -> Tensor:
    if not len(wanted.groups):
        return single(scores).sum()
    return -log_shares(scores, wanted.groups).gather(1, wanted.label.unsqueeze(1)).sum()


def pairwise(scores: Tensor, wanted: Wanted) -> Tensor:
    grid = grid_of(single(scores), wanted.groups)
    better = _better(wanted)
    margin = grid.unsqueeze(2) - grid.unsqueeze(1)
    return F.softplus(-margin.masked_fill(~better, 0.0)).mul(better).sum()


def _better(wanted: Wanted) -> Tensor:
    """(Q,K,K) whether the first of two candidates is more relevant than the second."""
    grid = grid_of(wanted.label, wanted.groups)
    there = grid_of(torch.ones_like(wanted.label), wanted.groups) > 0
    return (grid.unsqueeze(2) > grid.unsqueeze(1)) & there.unsqueeze(2) & there.unsqueeze(1)


def span(scores: Tensor, wanted: Wanted) -> Tensor:
    """Scores (n,2) of the slots of rows end to end."""
    ends = [choice(scores[:, way], Wanted(label=wanted.label[:, way], sizes=wanted.sizes)) for way in (0, 1)]
    return (ends[0] + ends[1]) / 2


def of_targets(wanted: Wanted) -> int:
    return len(wanted.label)


def _relevant(wanted: Wanted) -> int:
    return int((grid_of(wanted.label, wanted.groups).sum(1) > 0).sum())


LOSSES: dict[str, Callable[[HeadConfig], Loss]] = {
    "cross_entropy": lambda config: Loss(lambda s, w: cross_entropy(s, w, config.smoothing), of_targets),
    "focal": lambda config: Loss(lambda s, w: focal(s, w, config.focus), of_targets),
    "binary": lambda _: Loss(binary, of_targets),
    "mse": lambda _: Loss(mse, of_targets),
    "mae": lambda _: Loss(mae, of_targets),
    "listwise": lambda _: Loss(listwise, _relevant),
    "pairwise": lambda _: Loss(pairwise, lambda wanted: int(_better(wanted).sum())),
    "choice": lambda _: Loss(choice, of_targets),
    "span": lambda _: Loss(span, of_targets),
}

FITTING: dict[str, tuple[str, ...]] = {
    "classify": ("cross_entropy", "focal"),
    "pair": ("cross_entropy", "focal"),
    "regress": ("mse", "mae"),
    "multilabel": ("binary",),
    "tag": ("cross_entropy", "focal"),
    "qa": ("span",),
    "choice": ("choice",),
    "rank": ("listwise", "pairwise"),
}
"""Task -> the losses that fit its targets, its own first. seq2seq is asked as a language model is."""
ONE_EACH = ("classify", "pair", "regress", "multilabel", "tag")
"""Tasks whose targets have a loss each, whatever stands beside them: a function of the user's own fits them."""


def loss_of(task: str, config: HeadConfig) -> Loss:
    """The loss that `config` names; "auto" is the task's own."""
    if config.loss.startswith(OWN):
        return _unknown(task, config.loss)
    if config.loss not in ("auto", *LOSSES):
        raise UnknownName("loss", config.loss, ("auto", *LOSSES), where="head.loss")
    fitting = FITTING.get(task, ())
    name = fitting[0] if config.loss == "auto" and fitting else config.loss
    if name not in fitting:
        raise InputError(
            f"{name} is no loss for {task}",
            where="head.loss",
            repair=f"choose among {', '.join(fitting)}" if fitting else "leave it out: the task has a loss of its own",
        )
    return LOSSES[name](config)


def _unknown(task: str, name: str) -> Loss:
    """A function that nobody gave: what is trained or judged by it refuses, what predicts does not need it."""
    if task not in ONE_EACH:
        raise InputError(
            f"a loss of your own is a number for each target, and {task} compares several",
            where="head.loss",
            repair=f"choose among {', '.join(FITTING.get(task, ('auto',)))}",
        )

    def total(scores: Tensor, wanted: Wanted) -> Tensor:
        raise InputError(
            f"{name} is code of yours, and a folder holds none",
            where="head.loss",
            repair="give it again: settings={'head': {'loss': function}}, or --set head.loss=FILE.py:FUNCTION",
        )

    return Loss(total, of_targets)
