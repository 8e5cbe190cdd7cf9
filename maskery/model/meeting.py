"""Who meets whom in attention: for each group of rows its queries, its keys, their places and what is allowed.

Queries may be all slots of the rows, some of them, or a second stream; keys are the rows' own slots behind a past, or
the rows of another network. A predicate reads places and facts alone, so none of these needs a rule of its own.

Shapes: b rows of a group, Q queries, S keys (the past first), t slots of a row, m asked slots of a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from maskery.batches import Memory
from maskery.model.layout import Group, Layout
from maskery.model.past import BEFORE_ALL, Cache, filled
from maskery.model.positions import Places
from maskery.model.selection import Selection
from maskery.model.visibility import Predicate, Real, View, Visibility, Window, dense, facts_for


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
    reach: int | None = None
    """Set where all slots ask and see the slots up to so far on either side, and nothing else says who sees whom."""

    def of(self, asking: Group, slots: Tensor) -> Meeting:
        """The same where only some of the slots ask: (b,m) which."""
        allowed = self.allowed
        if allowed is not None:
            allowed = allowed.gather(2, slots[:, None, :, None].expand(-1, -1, -1, allowed.shape[3]))
        return replace(self, asking=asking, allowed=allowed, places=self.places.of(slots), reach=None)


@dataclass(frozen=True)
class Facts:
    """What is known of the keys in front of the rows, for all rows."""

    size: int
    real: Tensor
    """(B,size)"""
    positions: Tensor | None
    """(B,size); None: they go on backwards from each row's first."""
    segments: Tensor
    """(B,size)"""
    slots: Mapping[str, Tensor]


def facts_before(past: Memory | Cache | None, visibility: Visibility) -> Facts | None:
    if past is None:
        return None
    if isinstance(past, Cache):
        slots = facts_for(visibility, past.slots, past.positions)
        return Facts(past.size, filled(past.length, past.size), past.positions, past.segments, slots)
    real = filled(past.length, past.states[0].shape[1])
    plain = torch.zeros_like(real, dtype=torch.long)
    return Facts(real.shape[1], real, None, plain, remembered_facts(visibility, plain))


def remembered_facts(visibility: Visibility, like: Tensor) -> dict[str, Tensor]:
    """What predicates read of slots that are remembered."""
    return {name: torch.full_like(like, BEFORE_ALL if name == "order" else -1) for name in visibility.needs}


def positions_before(positions: Tensor, size: int) -> Tensor:
    """(b,t) -> (b,size) in front of them. Rows that are read from their end have falling positions, and what stands
    before them has higher ones."""
    first = positions[:, :1]
    back = torch.arange(size, 0, -1, device=positions.device)
    falling = positions[:, 1:2] < first if positions.shape[1] > 1 else torch.zeros_like(first, dtype=torch.bool)
    return first + torch.where(falling, back, -back)


def meetings(
    layout: Layout,
    visibility: Visibility,
    slots: Mapping[str, Tensor],
    positions: Tensor,
    segments: Tensor,
    past: Facts | None,
    selection: Selection | None = None,
    asks: bool = False,
    reach: int | None = None,
) -> tuple[Meeting, ...]:
    """For each group of rows: all its slots ask, or the selected ones; `asks`: they do so as a second stream; `reach`:
    they see no farther to either side."""
    return tuple(
        _meeting(layout, number, visibility, slots, positions, segments, past, selection, asks, reach)
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
    reach: int | None,
) -> Meeting:
    group = layout.groups[number]
    rows = layout.group_rows(group)
    place = torch.arange(group.length, device=positions.device).expand(group.rows, -1)
    chosen = place if selection is None else selection.slots[number]

    def own(fact: Tensor) -> Tensor:
        return of_group(layout, group, fact)

    def behind(before: Tensor | None, fact: Tensor) -> Tensor:
        return fact if before is None else torch.cat((before.index_select(0, rows), fact), 1)

    facts = {name: own(fact) for name, fact in facts_for(visibility, slots, positions).items()}
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
    window = reach if predicate.sees_all and past is None and selection is None else None
    if reach is not None:
        predicate = predicate & Window(reach).bind(view)
    if past is not None and not bool(past.real.all()):
        predicate = predicate & Real().bind(view)
    own_pos, own_seg = own(positions), own(segments)
    if past is not None and past.positions is None:
        k_pos = torch.cat((positions_before(own_pos, size), own_pos), 1)
    else:
        k_pos = behind(None if past is None else past.positions, own_pos)
    places = Places(
        q_pos=own_pos.gather(1, chosen),
        k_pos=k_pos,
        q_segment=own_seg.gather(1, chosen),
        k_segment=behind(None if past is None else past.segments, own_seg),
    )
    asking = group if selection is None else selection.groups[number]
    # Where predicates read nothing but places, all rows see alike, and one stands for all.
    alike = not visibility.needs and selection is None and (past is None or bool(past.real.all()))
    allowed = None if predicate.sees_all else dense(predicate, view.first() if alike else view)
    if allowed is not None and alike:
        allowed = allowed.expand(group.rows, -1, -1, -1)
    if allowed is not None and size and allowed.shape[2] == 1 and bool(allowed.all()):
        allowed = None  # one slot behind the whole of its past, as in writing
    return Meeting(asking, group, rows, predicate, allowed, places, None if predicate.sees_all else window)


def of_group(layout: Layout, group: Group, x: Tensor) -> Tensor:
    """(B,T) facts -> (b,t) of the group's rows, padding left out."""
    return layout.pack(x)[group.start : group.stop].view(group.rows, group.length)
