"""Who sees whom in one row and what every layer knows: the facts behind the picture of a reading order.

A row has one side that reads, or two: encoder and decoder. A side has one matrix of sight or several: of the first
stream and of the second, of what is remembered in front of the row, of the source that a decoder looks at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from maskery.batches import Batch
from maskery.model.config import Architecture, Mode
from maskery.model.flow import (
    behind_memory,
    by_layer,
    reach,
    reach_one_stream,
    reach_source,
    reach_two_streams,
    visible_row,
)
from maskery.model.stack import Stack
from maskery.model.transformer import visibility_of
from maskery.model.visibility import Visibility
from maskery.objectives.tokens import TokenObjective
from maskery.system import System
from maskery.text.tokenizer import Tokenizer

REMEMBERED = 6
"""Remembered slots that are drawn, of however many."""


@dataclass(frozen=True)
class Sight:
    """A matrix of who sees whom: a line for each slot of its side, a column for each slot that may be read."""

    kind: str
    """own, query (the second stream), one_stream (what one stream would do in the place of two) or source."""
    read: tuple[str, ...]
    """Tokens of the columns, without those that are remembered."""
    visible: Tensor
    """(t,M+s)"""
    layers: tuple[Tensor, ...]
    """L+1 of (t,M+s): what is known before the first layer and after each."""

    @property
    def before(self) -> int:
        """M: columns in front that are remembered."""
        return int(self.visible.shape[1]) - len(self.read)

    @property
    def numbers(self) -> list[int]:
        """Of the columns; remembered ones are negative."""
        return list(range(-self.before, len(self.read)))

    def plain(self) -> dict[str, Any]:
        return {"visible": self.visible.int().tolist(), "layers": [known.int().tolist() for known in self.layers]}


@dataclass(frozen=True)
class Side:
    """Slots that read, and what they are asked."""

    name: str
    """encoder or decoder; "" where there is but one."""
    tokens: tuple[str, ...]
    asked: tuple[str, ...]
    """The answer that each slot is asked for; "" where none is."""
    order: tuple[int, ...] | None
    """The turn at which each slot becomes known, where the text's order is not the one."""
    sights: tuple[Sight, ...]
    first: int = 0
    """The number that the first slot has in pictures."""

    def sight(self, kind: str) -> Sight | None:
        return next((each for each in self.sights if each.kind == kind), None)

    @property
    def walk(self) -> list[list[int]]:
        """The slots of each turn, from the first turn to the last."""
        if self.order is None:
            return []
        return [[slot for slot, mine in enumerate(self.order) if mine == turn] for turn in sorted(set(self.order))]

    @property
    def asked_slots(self) -> list[int]:
        return [slot for slot, answer in enumerate(self.asked) if answer]

    def plain(self) -> dict[str, Any]:
        first, *others = self.sights
        told: dict[str, Any] = {"tokens": list(self.tokens), **first.plain(), "asked": list(self.asked)}
        if self.order is not None:
            told["order"] = list(self.order)
        if first.before:
            told["memory"] = first.before
        return told | {each.kind: each.plain() for each in others}


@dataclass(frozen=True)
class Drawn:
    """One row."""

    mode: str
    """How it is read; "" where all rows are read alike."""
    sides: tuple[Side, ...]
    memory: int = 0
    """Slots that are remembered, of which the nearest `REMEMBERED` are drawn."""

    @property
    def tokens(self) -> tuple[str, ...]:
        return self.sides[0].tokens

    @property
    def visible(self) -> Tensor:
        return self.sides[0].sights[0].visible

    def plain(self) -> dict[str, Any]:
        return self.sides[0].plain() | {side.name: side.plain() for side in self.sides[1:]}


@dataclass(frozen=True)
class Loss:
    """What one stream forgets that two streams keep; sums over the targets of a row."""

    wanted: int
    """Tokens that come before a target in the order."""
    kept: tuple[int, ...]
    """Of these, known after each layer in one stream."""
    kept_by_two: tuple[int, ...]


def loss_of(side: Side) -> Loss | None:
    """None where there are not two streams."""
    query, alone = side.sight("query"), side.sight("one_stream")
    if query is None or alone is None:
        return None
    asked = side.asked_slots
    wanted = query.visible[asked]

    def kept(sight: Sight) -> tuple[int, ...]:
        return tuple(int((known[asked] & wanted).sum()) for known in sight.layers[1:])

    return Loss(int(wanted.sum()), kept(alone), kept(query))


def two_streams(
    visibility: Visibility, one: Batch, tokens: Sequence[str], asked: Tensor, shape: Architecture, before: int = 0
) -> tuple[Sight, Sight, Sight]:
    """Of a single row: what content sees, what the query stream sees, and what one stream would make of it; `asked`
    are the slots that have a query."""
    content = visible_row(visibility, one, 0, before=before)
    query = visible_row(visibility, one, 0, asks=True, before=before)
    has_query = torch.zeros(len(tokens), dtype=torch.bool)
    has_query[asked] = True
    query = query & has_query.unsqueeze(1)
    layers = shape.layers
    square = [behind_memory(each) for each in by_layer(content, shape)]
    queries = by_layer(query, shape)
    wide = torch.cat((torch.zeros(before, dtype=torch.bool), has_query))
    alone = reach_one_stream(square, [behind_memory(each) for each in queries], wide, layers)
    read = tuple(tokens)
    seen = torch.where(has_query.unsqueeze(1), query, content)
    return (
        Sight("own", read, content, tuple(known[before:] for known in reach(square, layers))),
        Sight("query", read, query, tuple(reach_two_streams(square, queries, layers))),
        Sight("one_stream", read, seen, tuple(known[before:] for known in alone)),
    )


def drawn_row(system: System, batch: Batch, row: int, tokenizer: Tokenizer, theirs: Tokenizer) -> Drawn:
    """`theirs` is the tokenizer of what a decoder writes."""
    network, mode = system.network, batch.slots.get("mode")
    memory = network.shape.memory
    encoder = _side(system, network, batch, row, tokenizer, "encoder" if network.decoder else "")
    sides = [encoder]
    if network.decoder is not None and batch.decoder is not None:
        side = _side(system, network.decoder, batch.decoder, row, theirs, "decoder")
        sides.append(_looking_at(side, encoder, network.decoder.shape))
    return Drawn("" if mode is None else Mode(int(mode[row, 0])).kind, tuple(sides), memory)


def _side(system: System, stack: Stack, batch: Batch, row: int, tokenizer: Tokenizer, name: str) -> Side:
    one, layers = batch.one(row), stack.shape.layers
    tokens = tuple(tokenizer.shown(one.ids[0].numpy()))
    visibility = visibility_of(batch) or stack.visibility
    before = 0 if name == "decoder" else min(REMEMBERED, stack.shape.memory)
    order = one.slots.get("order")
    if stack.shape.streams == 2 and one.asked is not None:
        sights: tuple[Sight, ...] = two_streams(visibility, one, tokens, one.asked, stack.shape, before)
    else:
        visible = visible_row(visibility, one, 0, before=before)
        known = reach([behind_memory(each) for each in by_layer(visible, stack.shape)], layers)
        sights = (Sight("own", tokens, visible, tuple(each[before:] for each in known)),)
    return Side(
        name=name,
        tokens=tokens,
        asked=tuple(_answers(system, batch, row, tokenizer)[: len(tokens)]),
        order=None if order is None else tuple(order[0].tolist()),
        sights=sights,
    )


def _looking_at(side: Side, source: Side, shape: Architecture) -> Side:
    """A decoder that looks at all of its source."""
    own, last = by_layer(side.sights[0].visible, shape), source.sights[0].layers[-1]
    across = torch.ones(len(side.tokens), len(source.tokens), dtype=torch.bool)
    known = reach_source(own, across, last[:, last.shape[1] - len(source.tokens) :], shape.layers)
    sight = Sight("source", source.tokens, across, tuple(known))
    return Side(side.name, side.tokens, side.asked, side.order, (*side.sights, sight))


def _answers(system: System, batch: Batch, row: int, tokenizer: Tokenizer) -> list[str]:
    """For each slot the token that it is asked for, by the first question that asks it for one."""
    width = batch.ids.shape[1]
    told = [""] * width
    for name, targets in batch.targets.items():
        if not isinstance(system.objectives[name], TokenObjective):
            continue
        mine = targets.index // width == row
        for slot, answer in zip(
            (targets.index[mine] % width).tolist(), tokenizer.shown(targets.label[mine].numpy()), strict=True
        ):
            told[slot] = told[slot] or answer
    return told
