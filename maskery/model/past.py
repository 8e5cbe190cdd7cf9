"""What stands in front of a row: keys of earlier slots. Two kinds, both read as keys in front of a layer's own.

- `Memory` (maskery.batches): what each layer was given for the rows before. Each layer turns it into keys and values
  with its present weights; no gradient goes into it. Training state, kept with a checkpoint.
- `Cache`: the keys and values themselves, for writing token by token. Never kept.

Shapes: B rows, T slots, M remembered slots, S cached slots, H heads, K head width, D width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from maskery.batches import Memory
from maskery.model.layout import Layout

BEFORE_ALL = -(1 << 40)
"""The order of what is remembered: before anything that is asked."""


@dataclass(frozen=True, kw_only=True)
class Cache:
    keys: tuple[Tensor, ...]
    """One for each layer, (B,H,S,K), filled from the right."""
    values: tuple[Tensor, ...]
    length: Tensor
    """(B,) how many of the S are filled."""
    slots: Mapping[str, Tensor] = field(default_factory=dict)
    """(B,S) the facts of these slots that predicates read."""
    positions: Tensor
    """(B,S) their position numbers."""
    segments: Tensor
    """(B,S)"""

    @property
    def size(self) -> int:
        return int(self.positions.shape[1])

    def select(self, rows: Tensor) -> Cache:
        """The pasts of the given rows, which may repeat."""
        return replace(
            self,
            keys=tuple(each.index_select(0, rows) for each in self.keys),
            values=tuple(each.index_select(0, rows) for each in self.values),
            length=self.length[rows],
            slots={name: each[rows] for name, each in self.slots.items()},
            positions=self.positions[rows],
            segments=self.segments[rows],
        )

    def part(self, first: int, stop: int) -> Cache:
        """The slots from `first` to before `stop` of the S, as views."""
        behind = self.size - stop
        return replace(
            self,
            keys=tuple(each[:, :, first:stop] for each in self.keys),
            values=tuple(each[:, :, first:stop] for each in self.values),
            length=(self.length - behind).clamp(0, stop - first),
            slots={name: each[:, first:stop] for name, each in self.slots.items()},
            positions=self.positions[:, first:stop],
            segments=self.segments[:, first:stop],
        )


def filled(length: Tensor, size: int) -> Tensor:
    """(B,size) which of the slots of a past are filled."""
    return torch.arange(size, device=length.device) >= size - length.unsqueeze(1)


def from_the_right(layout: Layout, x: Tensor) -> Tensor:
    """(N,...) packed slots -> (B,T,...), the rows' last slots side by side, zeros in front."""
    if layout.source is None:
        return layout.unpack(x)
    out = x.new_zeros(layout.rows, layout.slots, *x.shape[1:])
    for group in layout.groups:
        rows = layout.group_rows(group)
        out[rows, layout.slots - group.length :] = x[group.start : group.stop].view(
            group.rows, group.length, *x.shape[1:]
        )
    return out


def lengths_of(layout: Layout, device: torch.device) -> Tensor:
    """(B,) real slots."""
    length = torch.zeros(layout.rows, dtype=torch.long, device=device)
    for group in layout.groups:
        length[layout.group_rows(group)] = group.length
    return length


def joined(before: Tensor, length: Tensor, after: Tensor, added: Tensor, axis: int = 1) -> Tensor:
    """Two stretches that are filled from the right -> one, without a gap between them; `length` and `added` (B,) tell
    how much of each is filled."""
    size = after.shape[axis]
    both = torch.cat((before, after), axis)
    if bool((added == size).all()):
        return both
    # Row b has a gap of size - added[b] in front of its new slots: what stands before it moves up.
    place = torch.arange(both.shape[axis], device=both.device).unsqueeze(0)
    old = before.shape[axis]
    moved = (place - (size - added).unsqueeze(1)).clamp(min=0)
    source = torch.where(place < both.shape[axis] - added.unsqueeze(1), moved % max(1, old), place)
    view = [1] * both.ndim
    view[0], view[axis] = source.shape
    return both.gather(axis, source.view(view).expand_as(both))


def remembered(memory: Memory | None, states: Sequence[Tensor], layout: Layout, size: int, first: int = 0) -> Memory:
    """What the next rows remember: the last `size` of what was remembered and of the first slots (all if 0) of what
    each layer was given now."""
    added = lengths_of(layout, states[0].device)
    dense = [from_the_right(layout, each.detach()) for each in states]
    if first and first < layout.slots:
        if layout.source is not None:
            raise AssertionError("rows of which the first slots are remembered are of one length")
        dense, added = [each[:, :first] for each in dense], added.clamp(max=first)
    if memory is not None:
        pairs = zip(memory.states, dense, strict=True)
        dense = [joined(old, memory.length, new, added) for old, new in pairs]
        added = added + memory.length
    return Memory(states=tuple(each[:, -size:] for each in dense), length=added.clamp(max=size))
