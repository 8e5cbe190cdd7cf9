"""Rows of nearly the same length as one block, padded for attention alone.

Attention takes rows of one length as one operation. A batch of short texts has about as many lengths as rows, and then
most of its time goes into starting operations. Rows whose lengths are near each other are therefore laid into one grid,
and nobody sees its padding: a few more products, far fewer operations. The result is the same.

Shapes: n packed slots of a block, b rows and t slots of its grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from maskery.model.layout import Group

CELLS = 20_000
"""Scores more, over all heads, that cost as much as the operations of one more group: measured, forwards and back."""


@dataclass(frozen=True)
class Block:
    start: int
    """The first of its packed slots."""
    stop: int
    rows: int
    length: int
    place: Tensor | None = None
    """(n,) where each packed slot stands in the grid; None: all rows are as long as it."""
    source: Tensor | None = None
    """(b*t,) the packed slot, counted from `start`, of each slot of the grid; padding repeats the first."""
    allowed: Tensor | None = None
    """(b,1,t,t) or what spreads to it: who sees whom; None: everybody."""

    @cached_property
    def blind(self) -> bool:
        """Whether some query may see nothing."""
        return self.allowed is not None and not bool(self.allowed.any(-1).all())

    def spread(self, x: Tensor) -> Tensor:
        """(N,D) packed -> (b*t,D); what stands at padding is seen by nobody."""
        mine = x[self.start : self.stop]
        return mine if self.source is None else mine.index_select(0, self.source)

    def spread_gradient(self, x: Tensor) -> Tensor:
        """The same, and padding has no gradient."""
        mine = x[self.start : self.stop]
        if self.place is None:
            return mine
        return mine.new_zeros(self.rows * self.length, x.shape[1]).index_copy_(0, self.place, mine)

    def put(self, target: Tensor, x: Tensor, heads: int) -> None:
        """Write (b*H,t,K) into the packed slots of `target` (N,D), heads side by side."""
        by_head = x.view(self.rows, heads, self.length, -1).transpose(1, 2)
        mine = target[self.start : self.stop]
        if self.place is None:
            mine.view(self.rows, self.length, heads, -1).copy_(by_head)
        else:
            mine.copy_(by_head.reshape(self.rows * self.length, -1).index_select(0, self.place))


def room(like: Tensor, width: int, stop: int) -> Tensor:
    """(N,width) to be written up to `stop`, and zeros behind: slots of no row."""
    found = like.new_empty(len(like), width)
    found[stop:].zero_()
    return found


def exact(groups: Sequence[Group], allowed: Sequence[Tensor | None]) -> tuple[Block, ...]:
    """One block a group."""
    return tuple(
        Block(group.start, group.stop, group.rows, group.length, allowed=mask)
        for group, mask in zip(groups, allowed, strict=True)
    )


def near(groups: Sequence[Group], heads: int, device: torch.device) -> tuple[Block, ...]:
    """Groups of ascending length in which everybody sees everybody, as few blocks as pay."""
    return tuple(_joined(part, device) for part in _parts(groups, heads))


def asking_of(blocks: Sequence[Block], asks: Sequence[Group]) -> tuple[Group, ...] | None:
    """The asking slots of each block's rows, from those of each group's; None: rows of one block ask unequally."""
    found, number = [], 0
    for block in blocks:
        mine, rows = [], 0
        while rows < block.rows:
            mine.append(asks[number])
            rows, number = rows + asks[number].rows, number + 1
        if any(each.length != mine[0].length for each in mine):
            return None
        found.append(Group(mine[0].first, rows, mine[0].length, mine[0].start))
    return tuple(found)


def _parts(groups: Sequence[Group], heads: int) -> list[list[Group]]:
    """From the longest down: a group joins the block above it, unless its padding costs more than one of its own."""
    parts: list[list[Group]] = []
    for group in reversed(groups):
        if parts and heads * group.rows * (parts[0][-1].length ** 2 - group.length**2) <= CELLS:
            parts[0].insert(0, group)
        else:
            parts.insert(0, [group])
    return parts


def _joined(groups: Sequence[Group], device: torch.device) -> Block:
    first, last = groups[0], groups[-1]
    rows, length = sum(group.rows for group in groups), last.length
    if len(groups) == 1:
        return Block(first.start, first.stop, rows, length)
    lengths = torch.cat([torch.full((group.rows,), group.length) for group in groups])
    real = torch.arange(length) < lengths.unsqueeze(1)
    place = real.flatten().nonzero().squeeze(1)
    source = torch.zeros(rows * length, dtype=torch.long)
    source[place] = torch.arange(len(place))
    return Block(
        first.start,
        last.stop,
        rows,
        length,
        place=place.to(device),
        source=source.to(device),
        allowed=real[:, None, None].to(device),
    )
