"""Rows in which distances go by slots: of one length, their positions counting up by one, or down by one.

All that ask in such rows are taken together: the rows' own slots, then those that ask alone, of a second stream or as
the only ones of the last layer.

Shapes: b rows and t slots of a part, m slots of a row that ask alone, Q = t + m or m, M slots of the past, S = M + t
keys, G segments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from maskery.model.layout import Group
from maskery.model.meeting import Meeting
from maskery.model.positions import Places

_WIDTH = 4
"""Columns for segments are made in multiples of this: products like even widths."""


@dataclass(frozen=True)
class Part:
    keys: Group
    """Where the slots of the group lie that these rows belong to."""
    rows: Tensor
    """(b,) the numbers of the rows in the batch."""
    members: Tensor | None
    """(b,) their numbers in the group; None: all of it."""
    down: bool
    """Whether positions count down."""
    own: bool
    """Whether the rows' own slots ask."""
    asking: Group
    """Where those lie that ask alone; there may be none."""
    slots: Tensor
    """(b,m) which slots they are."""
    before: int
    """M"""
    allowed: Tensor | None
    """(b,Q,S)"""
    segments: tuple[Tensor, Tensor] | None
    """(b,Q,G) 1 for all segments but the query's, and (b,S,G) 1 for that of the key; None where they do not differ."""

    @property
    def first(self) -> int:
        """How many slots of a row ask in the first stream."""
        return self.keys.length if self.own else 0

    @cached_property
    def hidden(self) -> Tensor | None:
        return None if self.allowed is None else ~self.allowed

    @cached_property
    def blind(self) -> Tensor | None:
        """(b,Q,1) who sees nothing; None where everybody sees something."""
        if self.hidden is None:
            return None
        blind = self.hidden.all(-1, keepdim=True)
        return blind if bool(blind.any()) else None

    @cached_property
    def columns(self) -> Tensor:
        """(b,m,S) which column of all distances, the key farthest back first, each key has for those that ask alone."""
        keys = torch.arange(self.before + self.keys.length, device=self.slots.device)
        return keys + (self.keys.length - 1 - self.slots).unsqueeze(-1)

    @cached_property
    def distances(self) -> int:
        """How many columns are needed: where nobody sees what comes later, none for that."""
        length = self.keys.length
        reach = self.before + length
        if self.allowed is None:
            return reach + length - 1
        own = torch.arange(self.first, device=self.slots.device).expand(len(self.slots), -1)
        place = torch.cat((own, self.slots), 1).unsqueeze(-1)
        later = torch.arange(-self.before, length, device=place.device) > place
        return reach + length - 1 if bool((self.allowed & later).any()) else reach


def parts_of(
    content: Sequence[Meeting],
    asked: Sequence[Meeting],
    slots: Sequence[Tensor],
    own: bool,
) -> tuple[Part, ...] | None:
    """None where some row's positions do neither count up nor down. `slots` (b,m) of each group are what `asked` says
    of whom; empty: nobody asks alone."""
    found: list[Part] = []
    for number, meeting in enumerate(content):
        steps = meeting.places.k_pos.diff(dim=1)
        down = (steps == -1).all(1) & (steps.shape[1] > 0)
        if not bool((down | (steps == 1).all(1)).all()):
            return None
        alone = asked[number] if asked else None
        which = slots[number] if asked else meeting.rows.new_zeros(len(meeting.rows), 0)
        found += _split(meeting, alone, which, down, own)
    return tuple(found)


def _split(meeting: Meeting, alone: Meeting | None, slots: Tensor, down: Tensor, own: bool) -> Iterator[Part]:
    streams = ([meeting] if own else []) + ([alone] if alone is not None else [])
    size = sum(each.asking.length for each in streams)
    if not size:
        return
    segments = _segments(streams, meeting.places)
    allowed = _allowed(streams)
    many = int(down.sum())
    for way in (False, True):
        if many == (0 if way else len(down)):
            continue
        members = None if many in (0, len(down)) else (down == way).nonzero().flatten()

        def of(x: Tensor, members: Tensor | None = members) -> Tensor:
            return x if members is None else x.index_select(0, members)

        group = meeting.keys
        yield Part(
            keys=group,
            rows=of(meeting.rows),
            members=members,
            down=way,
            own=own,
            asking=Group(group.first, group.rows, 0, 0) if alone is None else alone.asking,
            slots=of(slots),
            before=meeting.places.k_pos.shape[1] - group.length,
            allowed=None if allowed is None else of(allowed),
            segments=None if segments is None else (of(segments[0]), of(segments[1])),
        )


def _allowed(streams: Sequence[Meeting]) -> Tensor | None:
    if all(each.allowed is None for each in streams):
        return None
    grids = []
    for each in streams:
        rows, size = each.places.q_pos.shape
        every = torch.ones(rows, size, each.places.k_pos.shape[1], dtype=torch.bool, device=each.rows.device)
        grids.append(every if each.allowed is None else each.allowed[:, 0])
    return torch.cat(grids, 1)


def _segments(streams: Sequence[Meeting], places: Places) -> tuple[Tensor, Tensor] | None:
    theirs = places.k_segment
    mine = [each.places.q_segment for each in streams]
    if theirs is None or any(each is None for each in mine):
        return None
    kinds, number = torch.unique(theirs, return_inverse=True)
    if len(kinds) == 1:
        return None
    asking = torch.searchsorted(kinds, torch.cat([each for each in mine if each is not None], 1))
    columns = torch.arange(-(-len(kinds) // _WIDTH) * _WIDTH, device=kinds.device)
    return asking.unsqueeze(-1) != columns, number.unsqueeze(-1) == columns
