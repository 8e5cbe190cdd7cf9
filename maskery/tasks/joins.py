"""Examples that are several rows, whose vectors become one before the head. Rows of an example stand beside each other.

    towers      each field in a row of its own      u,v (concat), or u,v,|u-v| (difference; SBERT)
    orders      two fields as a-b and as b-a        the sum, so that exchanging them changes nothing (GPT's similarity)

Shapes: E examples, S rows of each, B = E*S rows of a batch, D width of a row's vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from maskery.batches import Batch, Targets
from maskery.errors import InputError
from maskery.objectives.next_token import NextToken
from maskery.tasks.settings import TaskConfig

Say = Callable[[str], None]
Orders = tuple[tuple[int, ...], ...]
"""The fields of each row of an example, in their order; empty: an example is one row, as its task has it."""
TOWERS = ("classify", "pair", "regress", "multilabel")
SIMILAR = ("pair", "regress")
"""Tasks whose two texts may be read in both orders."""
_WHY_NOT = {
    "tag": "every token is asked, so there is no vector of a text to join",
    "qa": "the answer is looked for while the question is read, in one row",
    "choice": "every choice is read together with its question",
    "rank": "every candidate is read together with its query",
    "seq2seq": "what is written looks at one row",
}
_SYMMETRIC = "openai-gpt"
"""The family that was published with both orders for similarity."""


def orders_of(config: TaskConfig) -> Orders:
    fields = range(len(config.columns.text))
    if config.rows.towers != "one_row":
        return tuple((field,) for field in fields)
    return (tuple(fields), tuple(reversed(fields))) if config.rows.orders == "both" else ()


def sides_of(config: TaskConfig) -> int:
    """Rows of one example that are read together."""
    return len(orders_of(config)) or 1


@dataclass(frozen=True)
class Join:
    """The vectors of an example's rows as one."""

    law: str
    sides: int

    def width(self, each: int) -> int:
        return each * {"concat": self.sides, "difference": 3, "sum": 1}[self.law]

    def split(self, vectors: Tensor) -> tuple[Tensor, ...]:
        """(B,D) -> S times (E,D)"""
        return tuple(vectors[side :: self.sides] for side in range(self.sides))

    def __call__(self, vectors: Sequence[Tensor]) -> Tensor:
        """S times (E,D) -> (E,width)"""
        if self.law == "sum":
            return torch.stack(tuple(vectors)).sum(0)
        apart = [(vectors[0] - vectors[1]).abs()] if self.law == "difference" else []
        return torch.cat([*vectors, *apart], 1)


def join_of(config: TaskConfig) -> Join | None:
    """None: an example is one row."""
    orders = orders_of(config)
    if not orders:
        return None
    law = "sum" if config.rows.orders == "both" else config.rows.join
    assert law != "auto", "the task is not resolved"
    return Join(law, len(orders))


def side_of(batch: Batch, side: int, sides: int) -> Batch:
    """Of every example the row with the given number, with what the language model is asked of it."""
    grids = ("rows", "ids", "length", "segments", "positions", "original", "edit")
    asked = batch.targets.get(NextToken.name)
    changes: dict[str, Any] = {name: getattr(batch, name)[side::sides] for name in grids}
    return replace(
        batch,
        **changes,
        slots={name: fact[side::sides] for name, fact in batch.slots.items()},
        targets={} if asked is None else {NextToken.name: _slots_of(asked, side, sides, batch.ids.shape[1])},
        decoder=None if batch.decoder is None else side_of(batch.decoder, side, sides),
    )


def _slots_of(targets: Targets, side: int, sides: int, width: int) -> Targets:
    """Flat slots of all rows -> those of one row of each example, numbered anew."""
    row = targets.index // width
    mine = row % sides == side
    index = row[mine] // sides * width + targets.index[mine] % width
    return replace(targets, index=index, label=targets.label[mine])


def with_sides(config: TaskConfig, family: str, say: Say) -> TaskConfig:
    """With `rows.join` and `rows.orders` settled and told; what does not go together is refused."""
    if config.rows.towers != "one_row":
        return _with_towers(config, say)
    if config.rows.join != "auto":
        raise InputError(
            "fields that stand in one row have nothing to join",
            where="rows.join",
            repair="set rows.towers to shared or apart (--towers), or leave rows.join out",
        )
    return _with_orders(config, family, say)


def _with_towers(config: TaskConfig, say: Say) -> TaskConfig:
    fields, rows = config.columns.text, config.rows
    for cause, repair in _against_towers(config):
        raise InputError(cause, where="rows.towers", repair=repair)
    join = rows.join if rows.join != "auto" else "difference" if len(fields) == 2 else "concat"
    if join == "difference" and len(fields) != 2:
        cause = f"the difference is of two fields, and there are {len(fields)}"
        raise InputError(cause, where="rows.join", repair='set it to "concat"')
    whose = "one encoder" if rows.towers == "shared" else "an encoder each"
    formula = "u,v,|u-v|" if join == "difference" else "side by side"
    say(f"towers: {', '.join(fields)} are read apart by {whose}; their vectors are joined: {join} ({formula})")
    return config.model_copy(update={"rows": rows.model_copy(update={"join": join, "orders": "one"})})


def _against_towers(config: TaskConfig) -> Iterator[tuple[str, str]]:
    """Why a task cannot have them, and what to do."""
    fields, rows = config.columns.text, config.rows
    if config.task not in TOWERS:
        yield (
            f"no towers for {config.task}: {_WHY_NOT.get(config.task)}",
            f"leave it out; it is for {', '.join(TOWERS)}",
        )
    if len(fields) < 2:
        yield f"towers read fields apart, and there is one: {fields[0]}", "name more with --text A,B, or leave it out"
    if rows.windows:
        cause = "a field in windows has several vectors, and towers join one of each field"
        yield cause, "leave out rows.windows: long texts are cut; or the towers, and long texts are read in windows"
    if rows.orders == "both":
        yield "a row of one field has no order", 'leave rows.orders at "one"'
    if config.read.frozen and rows.towers == "apart":
        yield "encoders that are frozen stay alike", 'set it to "shared": the same answers, with one encoder'


def _with_orders(config: TaskConfig, family: str, say: Say) -> TaskConfig:
    rows, two = config.rows, len(config.columns.text) == 2
    orders = rows.orders
    if orders == "both":
        _require_similar(config)
    if orders == "auto":
        similarity = family == _SYMMETRIC and config.task == "regress" and two
        orders = "both" if similarity and not rows.windows else "one"
        if similarity and rows.windows:
            say("both orders have no windows: the two texts are read in their own order alone")
        elif similarity:
            say(f"a score of two texts, read by {family}: as a similarity; rows.orders=one if their order matters")
    if orders == "both":
        say("both orders: every example is read as a-b and as b-a, and the two vectors are added")
    return config.model_copy(update={"rows": rows.model_copy(update={"orders": orders})})


def _require_similar(config: TaskConfig) -> None:
    fields = ", ".join(config.columns.text)
    if config.task not in SIMILAR or len(config.columns.text) != 2:
        raise InputError(
            f"both orders are for the two texts of {' or '.join(SIMILAR)}; this is {config.task} of {fields}",
            where="rows.orders",
            repair='leave it at "one"',
        )
    if config.rows.windows:
        raise InputError(
            "windows of the two orders do not show the same parts of the texts",
            where="rows.orders",
            repair='leave out rows.windows: long texts are cut; or leave rows.orders at "one"',
        )
