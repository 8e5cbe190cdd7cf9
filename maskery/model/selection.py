"""The slots whose last states somebody will read: the last layer computes only these.

A masked-token question reads 15 % of the slots, a pair question one slot a row. The last layer still needs keys and
values of every slot, but queries, output projection and feed-forward of the read ones only. The result is the same.

Shapes: N packed slots, M selected slots, b rows and t slots of one group, m selected slots a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from maskery.model.layout import Group, Layout


@dataclass(frozen=True)
class Selection:
    index: Tensor
    """(M,) the packed place of each selected slot. Rows that read fewer slots than their group's widest repeat their
    first slot; nobody reads the repetitions."""
    groups: tuple[Group, ...]
    """The layout's groups with m in place of t; m may be 0."""
    slots: tuple[Tensor, ...]
    """(b,m) the selected slots of each group's rows."""
    place: Tensor
    """(N,) where a packed place stands among the selected ones; 0 for those nobody reads."""


def select(layout: Layout, places: Tensor) -> Selection:
    """The selection of the given packed places (ascending, distinct)."""
    place = torch.zeros(layout.count, dtype=torch.long, device=places.device)
    index, groups, chosen = [], [], []
    start = 0
    for group in layout.groups:
        mine = places[(places >= group.start) & (places < group.stop)] - group.start
        row, slot = mine // group.length, mine % group.length
        counts = torch.bincount(row, minlength=group.rows)
        widest = int(counts.max())
        rank = torch.arange(len(mine), device=mine.device) - (counts.cumsum(0) - counts)[row]
        slots = torch.zeros(group.rows, widest, dtype=torch.long, device=mine.device)
        slots[row, rank] = slot
        place[mine + group.start] = start + row * widest + rank
        first = torch.arange(group.rows, device=mine.device).unsqueeze(1) * group.length + group.start
        index.append((first + slots).flatten())
        groups.append(Group(group.first, group.rows, widest, start))
        chosen.append(slots)
        start += group.rows * widest
    return Selection(torch.cat(index), tuple(groups), tuple(chosen), place)
