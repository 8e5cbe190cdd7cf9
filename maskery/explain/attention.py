"""Attention weights of a text, and what they say in numbers: how wide a head looks, and where.

Shapes: L layers, H heads, T tokens; weights[l, h, q, k] is how much of what token q takes comes from token k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from maskery.checkpoint.model import Model
from maskery.errors import InputError
from maskery.text.tokenizer import Tokenizer

LONGEST = 128
"""Tokens that a person can look at, and a page can carry."""
STRONGEST = 3


@dataclass(frozen=True)
class Attention:
    tokens: list[str]
    segments: list[int]
    """0 for the first text and its frame, 1 for the second."""
    weights: Tensor
    """(L,H,T,T) of the layers that were asked for."""
    layers: list[int]
    """Their numbers, from 1."""
    separators: list[int]
    """Positions of the tokens that end a text."""
    frame: list[int]
    """Positions of everything that the tokenizer put around the text, separators included."""
    unknown: int
    """Tokens that the vocabulary does not have."""

    @property
    def paired(self) -> bool:
        return 1 in self.segments

    def heads(self) -> list[dict[str, Any]]:
        """One entry for each head: shares from 0 to 1, averaged over the tokens that read."""
        found = []
        for place, layer in enumerate(self.layers):
            for head in range(self.weights.shape[1]):
                found.append({"layer": layer, "head": head + 1, **self._measures(self.weights[place, head].double())})
        return found

    def _measures(self, weights: Tensor) -> dict[str, Any]:
        entropy = -(weights * weights.clamp(min=1e-30).log()).sum(-1)
        return {
            "entropy": float(entropy.mean()),
            "self": float(weights.diagonal().mean()),
            "previous": _mean(weights.diagonal(-1)),
            "next": _mean(weights.diagonal(1)),
            "first": float(weights[:, 0].mean()),
            "separator": float(weights[:, self.separators].sum(-1).mean()),
            "strongest": self._strongest(weights),
        }

    def _strongest(self, weights: Tensor) -> list[dict[str, Any]]:
        """The largest weights between two different tokens of the text: what goes to its frame is a share above."""
        plain = weights.clone()
        plain.fill_diagonal_(-1.0)
        plain[:, self.frame] = -1.0
        plain[self.frame, :] = -1.0
        best = plain.flatten().sort(descending=True, stable=True)
        size = weights.shape[-1]
        return [
            {"from": place // size, "to": place % size, "weight": weight}
            for weight, place in zip(best.values[:STRONGEST].tolist(), best.indices[:STRONGEST].tolist(), strict=True)
            if weight >= 0
        ]


def attend(model: Model, text: str, pair: str | None = None, layers: Sequence[int] | None = None) -> Attention:
    """Run the model over a text, or over two in its own frame, and keep the attention of the given layers."""
    tokenizer = _tokenizer(model)
    ids, types = tokenizer.encode(text, pair)
    first = len(ids) if pair is None else len(tokenizer.encode(text)[0])
    segments = [int(place >= first) for place in range(len(ids))]
    chosen = _layers(layers, model.config.layers)
    _require_short(len(ids), model)
    with torch.inference_mode():
        fits = model.config.segments > max(types)
        hidden = model(torch.tensor([ids]), segments=torch.tensor([types]) if fits else None, attentions=True)
    special = tokenizer.specials
    return Attention(
        tokens=tokenizer.shown(ids),
        segments=segments,
        weights=torch.stack([hidden.attentions[number - 1][0] for number in chosen]).float().cpu(),
        layers=chosen,
        separators=[place for place, number in enumerate(ids) if number == special.sep],
        frame=[place for place, number in enumerate(ids) if number in (special.cls, special.sep)],
        unknown=sum(number == special.unk for number in ids),
    )


def _tokenizer(model: Model) -> Tokenizer:
    if model.tokenizer is None:
        raise InputError("the model has no tokenizer", repair="put its tokenizer.json or vocab.txt beside the weights")
    return model.tokenizer


def _layers(layers: Sequence[int] | None, there: int) -> list[int]:
    chosen = list(range(1, there + 1)) if layers is None else list(dict.fromkeys(layers))
    wrong = [number for number in chosen if not 1 <= number <= there]
    if wrong or not chosen:
        told = f"layer {wrong[0]}: the model has layers 1 to {there}" if wrong else "no layer is given"
        raise InputError(told, repair=f"layers from 1 to {there}")
    return chosen


def _require_short(tokens: int, model: Model) -> None:
    most = min(LONGEST, model.config.max_length or LONGEST)
    if tokens > most:
        why = "the model's rows end" if most < LONGEST else "a picture that can be looked at ends"
        raise InputError(f"the text has {tokens} tokens; {why} at {most}", repair="give a shorter text")


def _mean(values: Tensor) -> float:
    return float(values.mean()) if values.numel() else 0.0
