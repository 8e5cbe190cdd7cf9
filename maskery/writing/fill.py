"""`maskery.fill`: what a masked language model puts in the place of each [MASK], and of all of them together.

    found = maskery.fill("my-run", "Paris is the [MASK] of France.")
    found.masks[0].candidates[0].token, found.filled

A mask alone: P(x at mask i | the text, all masks masked). All masks together: along an order o, a text with the tokens
x_1 ... x_n has the probability P(x at o_1) P(x at o_2 | x at o_1) ... P(x at o_n | all others); each factor is read
with the tokens before it put in and the later ones masked. `order="left"` goes from left to right: these probabilities
sum to 1 over all texts. `order="any"` lets the search choose which mask comes next, and gives each text the largest
product that it found, with its order: these do not sum to 1. Both searches keep `beams` partial texts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from maskery import arguments
from maskery.arguments import checked
from maskery.checkpoint.load import AnyModel, model_of
from maskery.checkpoint.model import Model
from maskery.errors import ArgumentError, InputError, UnknownName
from maskery.text.tokenizer import Tokenizer

ORDERS = ("left", "any")
BEAMS = 8
_MOST = 4096
"""Partial texts that a search keeps."""
MOST_JOINT = 16
"""Masks that are filled together: each costs a pass over all partial texts."""


@dataclass(frozen=True)
class Guess:
    """A token in the place of one mask."""

    token: str
    id: int
    probability: float


@dataclass(frozen=True)
class Mask:
    """One mask of the text, and the most probable tokens in its place while all masks are masked."""

    slot: int
    candidates: tuple[Guess, ...]


@dataclass(frozen=True)
class Joint:
    """The text with all masks filled together."""

    text: str
    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    """In the order of the masks in the text."""
    order: tuple[int, ...]
    """The masks, counted from 1, in the order in which they were filled."""
    probability: float


@dataclass(frozen=True)
class Filled:
    """Candidates for each mask alone, and for all of them together where there are several."""

    text: str
    filled: str
    """The text with the best of `joint`, or with the best token of its only mask."""
    masks: tuple[Mask, ...]
    joint: tuple[Joint, ...]
    unknown: int
    """Tokens of the text that the vocabulary does not have."""

    def plain(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "filled": self.filled,
            "masks": [
                {"slot": mask.slot, "candidates": [vars(each) for each in mask.candidates]} for mask in self.masks
            ],
            "joint": [{**vars(each), "tokens": [*each.tokens], "ids": [*each.ids], "order": [*each.order]}
                      for each in self.joint],
            "unknown": self.unknown,
        }  # fmt: skip


@checked
def fill(model: AnyModel, text: str, *, top: int = 5, order: str = "left", beams: int = BEAMS) -> Filled:
    """The `top` most probable tokens at each mask of `text`; with several masks, also the most probable whole texts.

        maskery.fill("my-run", "The capital of France is [MASK].").masks

    A model with a generator (ELECTRA) is filled by it. Up to 16 masks are filled together, more only each alone.
    """
    arguments.text("text", text)
    arguments.count("top", top)
    arguments.count("beams", beams)
    if order not in ORDERS:
        raise UnknownName("order", str(order), ORDERS)
    reader = _Reader.of(model_of(model).answering("masked_token"), text)
    shares = reader.read([{}])[0]
    masks = tuple(_mask(reader, slot, line, top) for slot, line in zip(reader.slots, shares, strict=True))
    several = 1 < len(masks) <= MOST_JOINT
    if several and max(beams, top) > _MOST:
        raise ArgumentError(
            f"{'top' if top > beams else 'beams'} {max(beams, top):,} is too large for several masks: so many partial "
            "texts would be kept",
            repair=f"top and beams {_MOST:,} or less",
        )
    joint = _joint(reader, shares, order, max(beams, top), top) if several else ()
    best = joint[0].ids if joint else [mask.candidates[0].id for mask in masks]
    unknown = sum(number == reader.tokenizer.specials.unk for number in reader.ids)
    return Filled(text, reader.written(best), masks, joint, unknown)


def _mask(reader: _Reader, slot: int, shares: Tensor, top: int) -> Mask:
    best = shares.topk(min(top, len(shares)))
    numbers = best.indices.tolist()
    told = zip(reader.tokenizer.shown(numbers), numbers, best.values.tolist(), strict=True)
    return Mask(slot, tuple(Guess(*each) for each in told))


@dataclass(frozen=True)
class _Reader:
    """A text whose masks are to be filled, and who reads it."""

    model: Model
    tokenizer: Tokenizer
    ids: list[int]
    segments: list[int]
    slots: list[int]

    @staticmethod
    def of(model: Model, text: str) -> _Reader:
        tokenizer = _tokenizer(model)
        ids, segments = tokenizer.encode(text)
        slots = [slot for slot, number in enumerate(ids) if number == tokenizer.specials.mask]
        if not slots:
            name = tokenizer.names["mask"]
            raise InputError(f"the text has no {name}", repair=f'maskery fill MODEL "Paris is the {name} of France."')
        return _Reader(model, tokenizer, list(ids), list(segments), slots)

    def read(self, filled: Sequence[Mapping[int, int]]) -> Tensor:
        """(n,M,V) the shares of all tokens at each mask of each partial text, a mapping from masks to tokens."""
        rows = torch.tensor([self.with_tokens(each) for each in filled])
        # One text is one segment: all zeros, also where a tokenizer says otherwise and the model knows none.
        known = self.model.config.segments > max(self.segments)
        segments = torch.tensor([self.segments]).expand(rows.shape) if known else None
        places = torch.tensor(self.slots) + torch.arange(len(rows))[:, None] * rows.shape[1]
        with torch.inference_mode():
            states = self.model(rows, segments=segments).select(places.flatten())
            scores = self.model.heads["masked_token"](states, self.model.network.embeddings.tokens)
        if not bool(torch.isfinite(scores).all()):
            raise InputError(
                "the model's scores are not finite: its weights are damaged, or numbers grew too large",
                repair="fetch or save the model again",
            )
        shares: Tensor = scores.softmax(-1).view(len(rows), len(self.slots), -1)
        return shares

    def with_tokens(self, filled: Mapping[int, int]) -> list[int]:
        row = list(self.ids)
        for mask, token in filled.items():
            row[self.slots[mask]] = token
        return row

    def written(self, tokens: Sequence[int]) -> str:
        return self.tokenizer.decode(self.with_tokens(dict(enumerate(tokens))))


def _joint(reader: _Reader, first: Tensor, order: str, beams: int, top: int) -> tuple[Joint, ...]:
    """Beam search over the masks. A partial text is a mapping from masks to tokens in the order of filling; where two
    orders lead to the same one, the more probable is kept."""
    partial: list[tuple[float, dict[int, int]]] = [(0.0, {})]
    shares = first[None]
    for step in range(len(reader.slots)):
        if step:
            shares = reader.read([filled for _, filled in partial])
        longer: dict[frozenset[tuple[int, int]], tuple[float, dict[int, int]]] = {}
        for (so_far, filled), lines in zip(partial, shares, strict=True):
            open_masks = [mask for mask in range(len(reader.slots)) if mask not in filled]
            for mask in open_masks[:1] if order == "left" else open_masks:
                best = lines[mask].double().log().topk(min(beams, lines.shape[-1]))
                for more, token in zip(best.values.tolist(), best.indices.tolist(), strict=True):
                    made = {**filled, mask: token}
                    key = frozenset(made.items())
                    if key not in longer or longer[key][0] < so_far + more:
                        longer[key] = (so_far + more, made)
        partial = sorted(longer.values(), key=lambda each: (-each[0], *sorted(each[1].items())))[:beams]
    return tuple(_whole(reader, share, filled) for share, filled in islice(partial, top))


def _whole(reader: _Reader, log_probability: float, filled: Mapping[int, int]) -> Joint:
    ids = [filled[mask] for mask in range(len(reader.slots))]
    return Joint(
        text=reader.written(ids),
        tokens=tuple(reader.tokenizer.shown(ids)),
        ids=tuple(ids),
        order=tuple(mask + 1 for mask in filled),
        probability=math.exp(log_probability),
    )


def _tokenizer(model: Model) -> Tokenizer:
    if "masked_token" not in model.heads:
        held = ", ".join(model.heads) or "none"
        raise InputError(
            f"this model has no masked_token head (its heads: {held})",
            repair="give a model that was pretrained to fill masks",
        )
    if model.tokenizer is None:
        raise InputError(
            "the folder holds no tokenizer", repair="put its tokenizer.json or vocab.txt beside the weights"
        )
    if model.tokenizer.specials.mask is None:
        raise InputError("the tokenizer has no mask token", repair="give a model that was pretrained to fill masks")
    return model.tokenizer
