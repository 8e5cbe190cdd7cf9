"""Who meets whom in attention: for each group of rows its queries, its keys, their places and what is allowed.

Queries may be all slots of the rows, some of them, or a second stream; keys are the rows' own slots behind a past, or
the rows of another network. A predicate reads places and facts alone, so none of these needs a rule of its own.

Shapes: b rows of a group, Q queries, S keys (the past first), t slots of a row, m asked slots of a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from maskery.batches import Memory
from maskery.model.layout import Group, Layout
from maskery.model.past import BEFORE_ALL, Cache, filled
from maskery.model.positions import Places
from maskery.model.selection import Selection
from maskery.model.visibility import Predicate, Real, View, Visibility, dense


@dataclass(frozen=True)
class Meeting:
    asking: Group
    """Where the queries lie among all that ask."""
    keys: Group
    """Where the rows' own keys lie among the packed slots."""
    rows: Tensor
    """(b,) the numbers of the rows."""
    predicate: Predicate
    allowed: Tensor | None
    """(b,1,Q,S); None where everything is visible."""
    places: Places


@dataclass(frozen=True)
class Facts:
    """What is known of the keys in front of the rows, for all rows."""

    size: int
    real: Tensor
    """(B,size)"""
    positions: Tensor
    """(B,size)"""
    segments: Tensor
    slots: Mapping[str, Tensor]


def facts_before(past: Memory | Cache | None, positions: Tensor, needs: tuple[str, ...]) -> Facts | None:
    """`positions` (B,T) are those of the rows."""
    if past is None:
        return None
    if isinstance(past, Cache):
        return Facts(past.size, filled(past.length, past.size), past.positions, past.segments, past.slots)
    _rows, size = past.states[0].shape[:2]
    places = positions[:, :1] - torch.arange(size, 0, -1, device=positions.device)
    plain = torch.zeros_like(places)
    slots = {name: torch.full_like(places, BEFORE_ALL if name == "order" else -1) for name in needs}
    return Facts(size, filled(past.length, size), places, plain, slots)


def meetings(
    layout: Layout,
    visibility: Visibility,
    slots: Mapping[str, Tensor],
    positions: Tensor,
    segments: Tensor,
    past: Facts | None,
    selection: Selection | None = None,
    asks: bool = False,
) -> tuple[Meeting, ...]:
    """For each group of rows: all its slots ask, or the selected ones; `asks`: they do so as a second stream."""
    return tuple(
        _meeting(layout, number, visibility, slots, positions, segments, past, selection, asks)
        for number in range(len(layout.groups))
    )


def _meeting(
    layout: Layout,
    number: int,
    visibility: Visibility,
    slots: Mapping[str, Tensor],
    positions: Tensor,
    segments: Tensor,
    past: Facts | None,
    selection: Selection | None,
    asks: bool,
) -> Meeting:
    group = layout.groups[number]
    rows = layout.group_rows(group)
    place = torch.arange(group.length, device=positions.device).expand(group.rows, -1)
    chosen = place if selection is None else selection.slots[number]

    def own(fact: Tensor) -> Tensor:
        return of_group(layout, group, fact)

    def behind(before: Tensor | None, fact: Tensor) -> Tensor:
        return fact if before is None else torch.cat((before.index_select(0, rows), fact), 1)

    # Rows of which nothing else is said have no order of their own: all slots see each other.
    facts = {name: own(slots.get(name, torch.zeros_like(positions))) for name in visibility.needs}
    size = 0 if past is None else past.size
    k_place = torch.cat((place[:, :1] - torch.arange(size, 0, -1, device=place.device), place), 1) if size else place
    view = View(
        q_pos=chosen,
        k_pos=k_place,
        q_slots={name: fact.gather(1, chosen) for name, fact in facts.items()},
        k_slots={name: behind(None if past is None else past.slots[name], fact) for name, fact in facts.items()},
        k_real=None if past is None else behind(past.real, torch.ones_like(place, dtype=torch.bool)),
        asks=asks,
    )
    predicate = visibility.bind(view)
    if past is not None and not bool(past.real.all()):
        predicate = predicate & Real().bind(view)
    own_pos, own_seg = own(positions), own(segments)
    places = Places(
        q_pos=own_pos.gather(1, chosen),
        k_pos=behind(None if past is None else past.positions, own_pos),
        q_segment=own_seg.gather(1, chosen),
        k_segment=behind(None if past is None else past.segments, own_seg),
    )
    asking = group if selection is None else selection.groups[number]
    allowed = None if predicate.sees_all else dense(predicate, view)
    return Meeting(asking, group, rows, predicate, allowed, places)


def of_group(layout: Layout, group: Group, x: Tensor) -> Tensor:
    """(B,T) facts -> (b,t) of the group's rows, padding left out."""
    return layout.pack(x)[group.start : group.stop].view(group.rows, group.length)
