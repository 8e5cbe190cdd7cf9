"""Where each real slot of a padded batch sits in the packed array that the network works on.

Shapes: B rows, T slots, N real slots. Rows are packed in order of their number of real slots, so the rows of equal
length lie beside each other and attention takes each such group as one view: no padding, no gather, no copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True)
class Group:
    """Rows of equal length: packed slots start .. start + rows * length."""

    first: int
    """Index of the group's first row in `Layout.order`."""
    rows: int
    length: int
    start: int

    @property
    def stop(self) -> int:
        return self.start + self.rows * self.length


@dataclass(frozen=True)
class Layout:
    rows: int
    slots: int
    order: Tensor
    """(B,) row numbers in packed order."""
    source: Tensor | None
    """(N,) the flat slot b*T+t of each packed slot; None when packed and padded are the same array."""
    groups: tuple[Group, ...]

    @property
    def count(self) -> int:
        return self.groups[-1].stop if self.groups else 0

    @cached_property
    def place(self) -> Tensor | None:
        """(B*T,) the packed place of each flat slot, 0 for padding; None when it is the identity."""
        if self.source is None:
            return None
        place = torch.zeros(self.rows * self.slots, dtype=torch.long, device=self.source.device)
        place[self.source] = torch.arange(self.count, device=self.source.device)
        return place

    def pack(self, x: Tensor) -> Tensor:
        """(B,T,...) -> (N,...)"""
        flat = x.reshape(self.rows * self.slots, *x.shape[2:])
        return flat if self.source is None else flat.index_select(0, self.source)

    def unpack(self, x: Tensor) -> Tensor:
        """(N,...) -> (B,T,...), zeros where there is padding."""
        if self.source is not None:
            flat = x.new_zeros(self.rows * self.slots, *x.shape[1:])
            x = flat.index_copy(0, self.source, x)
        return x.reshape(self.rows, self.slots, *x.shape[1:])

    def places(self, index: Tensor) -> Tensor:
        """Packed places of flat slots."""
        return index if self.place is None else self.place.index_select(0, index)

    @property
    def empty(self) -> int:
        """Rows without a real slot; they come first in `order`."""
        return self.groups[0].first if self.groups else self.rows

    def first_places(self) -> Tensor:
        """(B,) the packed place of each row's first real slot; a row without any gives place 0."""
        starts = torch.zeros(self.rows, dtype=torch.long, device=self.order.device)
        for group in self.groups:
            rows = self.order[group.first : group.first + group.rows]
            starts[rows] = torch.arange(group.rows, device=rows.device) * group.length + group.start
        return starts

    def last_places(self) -> Tensor:
        """(B,) the packed place of each row's last real slot; a row without any gives place 0."""
        last = self.first_places()
        for group in self.groups:
            last[self.group_rows(group)] += group.length - 1
        return last

    def group_rows(self, group: Group) -> Tensor:
        return self.order[group.first : group.first + group.rows]


def layout_of(mask: Tensor) -> Layout:
    """The layout of a batch whose real slots are where `mask` (B,T) is true, on any side."""
    rows, slots = mask.shape
    lengths = mask.sum(1)
    if rows and slots and bool((lengths == slots).all()):
        order = torch.arange(rows, device=mask.device)
        return Layout(rows, slots, order, None, (Group(0, rows, slots, 0),))
    order = torch.argsort(lengths, stable=True)
    source = (mask[order].flatten().nonzero().squeeze(1)).to(torch.long)
    source = order[source // slots] * slots + source % slots
    groups: list[Group] = []
    start = first = 0
    distinct, counts = torch.unique_consecutive(lengths[order], return_counts=True)
    for length, number in zip(distinct.tolist(), counts.tolist(), strict=True):
        if length:
            groups.append(Group(first, number, length, start))
            start += number * length
        first += number
    return Layout(rows, slots, order, source, tuple(groups))
