"""Heads by name: those of objectives, and those of tasks, whose number of classes the tensors tell.

A head of a task reads the pooled state of a row, the state of its first slot (then it has a layer more, whose
activation its name tells), that of its last (GPT), the mean of all, or every slot. Of a model with a decoder they read
what that makes of the row, shifted by one as if it were to be written again (BART).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from maskery.errors import InputError
from maskery.model.config import Shape
from maskery.model.heads import ClassHead, NormedHead, TokenHead, TwoLayerHead
from maskery.model.stack import Stack
from maskery.model.transformer import Hidden
from maskery.objectives.config import ASKED_OF_DECODER, OBJECTIVES, PAIR_OF

POOLED = ("sequence_class", "choice")
FIRST = {
    "sequence_class_gelu": "gelu",
    "sequence_class_relu": "relu",
    "choice_gelu": "gelu",
    "choice_relu": "relu",
}
"""Head -> its activation."""
NORMED = {
    "sequence_class_normed": "first",
    "choice_normed": "first",
    "sequence_class_mean": "mean",
    "choice_mean": "mean",
    "token_class_normed": "",
    "answer_span_normed": "",
}
"""Heads with a layer and a norm more (ModernBERT) -> what they read of a row; nothing: every slot."""
EVERY = ("token_class", "answer_span", *(name for name, read in NORMED.items() if not read))
LAST = ("sequence_class_last",)
"""Heads that read the last slot, and have no bias."""
WRITTEN = {"sequence_class_tanh": "tanh", "choice_tanh": "tanh"}
"""Head -> its activation: it reads the last slot of the row (XLNet), or of what a decoder makes of it (BART)."""
TASKS = (*POOLED, *FIRST, *LAST, *WRITTEN, *EVERY, *(name for name, read in NORMED.items() if read))
SAID = {
    name: 2 if name.startswith("answer_span") else 1 for name in TASKS if name.startswith(("answer_span", "choice"))
}
"""Heads whose number of scores is no choice: where a span begins and ends, how good an answer is."""


def names_of_heads(state: Mapping[str, Tensor]) -> list[str]:
    return list(dict.fromkeys(name.split(".")[1] for name in state if name.startswith("heads.")))


def build_head(name: str, shape: Shape, tensors: Mapping[str, Tensor]) -> nn.Module | None:
    """A head for `tensors` (named inside the head); None for a name that we do not know."""
    if name in TASKS:
        weight = tensors.get("answer.weight" if name in {**FIRST, **WRITTEN, **NORMED} else "dense.weight")
        return None if weight is None or weight.ndim != 2 else task_head(name, shape, int(weight.shape[0]))
    return OBJECTIVES.get(name)().head(shape) if name in OBJECTIVES.names() else None


def task_head(name: str, shape: Shape, classes: int) -> nn.Module:
    """A head of a task, its numbers not yet set."""
    classes = SAID.get(name, classes)
    if name in FIRST or name in WRITTEN:
        return TwoLayerHead(shape.width, classes, {**FIRST, **WRITTEN}[name])
    if name in NORMED:
        return NormedHead(shape, classes)
    return ClassHead(shape.width, classes, bias=name not in LAST)


def reads_decoder(name: str) -> bool:
    """Whether a head stands on the decoder, where the model has one."""
    return name in TASKS or name in ASKED_OF_DECODER


def scores_of(name: str, head: nn.Module, network: Stack, hidden: Hidden) -> Tensor:
    """(B,C) of a head that reads a row as a whole, (B,T,C) or (B,T) of one that reads its slots, zeros at padding."""
    if isinstance(head, TokenHead):
        return hidden.layout.unpack(head(hidden.packed, network.embeddings.tokens))
    if name in EVERY or name == "replaced_token":
        return hidden.layout.unpack(head(hidden.packed))
    if NORMED.get(name) == "mean":
        read = _means(hidden)
    elif name in FIRST or name in NORMED:
        read = hidden.packed.index_select(0, hidden.layout.first_places())
    elif name in LAST or name in WRITTEN:
        read = hidden.packed.index_select(0, hidden.layout.last_places())
    elif name not in (*POOLED, *PAIR_OF):
        raise InputError(
            f"the head {name} reads more than rows", repair=f"give it what it reads: model.heads[{name!r}](...)"
        )
    elif hidden.pooled is None:
        raise InputError(f"the head {name} reads pooled states, and this model has no pooler", repair="train one")
    else:
        read = hidden.pooled
    found: Tensor = head(read)
    return found


def _means(hidden: Hidden) -> Tensor:
    """(B,D) of all real slots; zeros for a row without any."""
    layout = hidden.layout
    rows = [hidden.packed.new_zeros(layout.empty, hidden.packed.shape[1])]
    rows += [
        hidden.packed[group.start : group.stop].view(group.rows, group.length, -1).mean(1) for group in layout.groups
    ]
    return torch.empty_like(found := torch.cat(rows)).index_copy(0, layout.order, found)
