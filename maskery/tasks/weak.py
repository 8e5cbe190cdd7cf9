"""Is there a pretrained model at all? Asked before fine-tuning, of the task's own texts.

A model with a head over the vocabulary fills tokens of the training texts; its loss is compared with that of the
frequencies of the other training texts. A model that does no better has learnt no context, or that of other text. The
frequencies are estimated on few texts, so the comparison favours the model. Without such a head the norms tell it: they
begin with gains of 1 and biases of 0, and no training leaves all of them there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from maskery.batches import Batch, Targets
from maskery.checkpoint.model import Model
from maskery.model.heads import TokenHead
from maskery.model.linear import Norm
from maskery.model.transformer import inputs_of
from maskery.objectives.masked_token import MaskedToken
from maskery.objectives.next_token import NextToken
from maskery.objectives.tokens import TokenObjective
from maskery.randomness import keys, uniform
from maskery.tasks.batches import batch_of
from maskery.tasks.examples import Example, Examples
from maskery.tasks.framing.frame import frame_of, longest_row, tokenizer_of
from maskery.tasks.framing.make import make_rows
from maskery.tasks.framing.tokens import encode
from maskery.tasks.settings import TaskRowsConfig

_ASKED, _KNOWN, _LENGTH, _RATE = 64, 2000, 128, 0.15
"""Texts that are asked, further ones that give frequencies, slots of a row, share of masked tokens."""
_FEWEST = 30
"""Tokens that have to be asked; fewer tell nothing."""


@dataclass(frozen=True)
class Weak:
    """A model that knows no more of the task's texts than frequencies do, and how that was found."""

    why: str

    @property
    def note(self) -> str:
        return (
            f"warning: the base model is hardly trained, or on other text: {self.why}. Expect little more than a "
            "baseline; take a pretrained model, or pretrain it longer"
        )


def weakness(model: Model, train: Examples) -> Weak | None:
    """None: the model was trained, as far as it can be told."""
    if _norms_untouched(model):
        return Weak("its layer norms are as they are drawn at the start")
    asked = _objective(model)
    if asked is None:
        return None
    batch, frequencies = _batch(model, train, asked)
    label = batch.targets[asked.name].label
    if len(label) < _FEWEST:
        return None
    loss, by_frequency = _loss(model, asked, batch), float(-np.log(frequencies[label.numpy()]).mean())
    if loss < by_frequency:
        return None
    what = "hidden" if asked.name == "masked_token" else "next"
    told = f"its loss on {what} tokens of the training texts is {loss:.2f}"
    return Weak(f"{told}, that of their frequencies {by_frequency:.2f}")


def _norms_untouched(model: Model) -> bool:
    norms = [each for each in model.network.modules() if isinstance(each, Norm)]
    return bool(norms) and all(bool((each.weight == 1).all()) and not _moved(each.bias) for each in norms)


def _moved(bias: Tensor | None) -> bool:
    return bias is not None and bool((bias != 0).any())


def _objective(model: Model) -> TokenObjective | None:
    """What the model can be asked by itself: hidden tokens where it reads both sides, the next one from the left."""
    shape, mask = model.config, tokenizer_of(model).specials.mask
    if shape.decoder or shape.streams > 1:
        return None
    if shape.visibility == "full" and isinstance(model.heads.get("masked_token"), TokenHead) and mask is not None:
        return MaskedToken()
    if shape.visibility == "causal" and isinstance(model.heads.get("next_token"), TokenHead):
        return NextToken()
    return None


def _batch(
    model: Model, train: Examples, asked: TokenObjective
) -> tuple[Batch, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Rows of some texts with their targets, and the smoothed frequencies of tokens in further ones."""
    tokenizer = tokenizer_of(model)
    texts = list(dict.fromkeys(each.texts[0] for each in train.items[: _ASKED + _KNOWN] if each.texts[0].strip()))
    items = tuple(Example(guid=str(at), texts=(text,)) for at, text in enumerate(texts))
    every = Examples(task="classify", fields=("text",), items=items)
    counts = np.ones(tokenizer.vocabulary)
    others = replace(every, items=items[_ASKED:] or items)
    np.add.at(counts, encode(others, tokenizer).tokens.ids, 1.0)
    length = min(_LENGTH, longest_row(model) or _LENGTH)
    rows, _ = make_rows(
        encode(replace(every, items=items[:_ASKED]), tokenizer), frame_of(model), TaskRowsConfig(), length
    )
    batch = batch_of(rows, torch.arange(len(rows)), tokenizer.specials.pad, model.config.position_offset)
    return _asking(batch, asked, tokenizer.specials.ids, tokenizer.specials.mask), counts / counts.sum()


def _asking(batch: Batch, asked: TokenObjective, specials: tuple[int, ...], mask: int | None) -> Batch:
    width = batch.ids.shape[1]
    real = torch.arange(width) < batch.length[:, None]
    text = real & ~torch.isin(batch.ids, torch.tensor(specials))
    if asked.name == "next_token":
        index = (real[:, 1:] & text[:, 1:]).new_zeros(real.shape)
        index[:, :-1] = text[:, 1:]
        places = index.flatten().nonzero().squeeze(1)
        return replace(batch, targets={asked.name: Targets(index=places, label=batch.ids.flatten()[places + 1])})
    drawn = torch.from_numpy(uniform(keys(0, "weakness", np.arange(batch.ids.numel())), "hidden"))
    places = (text.flatten() & (drawn < _RATE)).nonzero().squeeze(1)
    ids = batch.ids.flatten().clone()
    label = ids[places].clone()
    ids[places] = mask  # type: ignore[assignment]
    return replace(batch, ids=ids.view(batch.ids.shape), targets={asked.name: Targets(index=places, label=label)})


@torch.no_grad()
def _loss(model: Model, asked: TokenObjective, batch: Batch) -> float:
    """The mean loss of a token, without dropout."""
    was = model.network.training
    model.network.eval()
    device = model.network.embeddings.tokens.device
    moved = batch.to(device)
    hidden = model.network(inputs_of(moved), reads=asked.reads(moved))
    total = asked.total(model.network, model.heads[asked.name], hidden, moved)
    model.network.train(was)
    return float(total) / asked.count(moved)
