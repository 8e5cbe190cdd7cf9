"""What all layers share of a batch, made once before the first: who meets whom, where what is seen or kept goes.

Shapes: B rows, T slots, H heads, S keys, b rows and m asked slots of one group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from torch import Tensor

from maskery.batches import Memory
from maskery.model.blocks import Block, exact, near
from maskery.model.layout import Layout
from maskery.model.meeting import Meeting, facts_before, meetings
from maskery.model.parts import Part, parts_of
from maskery.model.past import Cache
from maskery.model.products import LayerProducts, Products
from maskery.model.rotary import Waves
from maskery.model.selection import Selection
from maskery.model.visibility import Visibility


@dataclass(frozen=True)
class AttentionPlan:
    """Everything about a batch that all layers share: made once, before the first layer."""

    layout: Layout
    content: tuple[Meeting, ...]
    """For each group of rows: its slots, and what they see."""
    second: tuple[Meeting, ...]
    """The same for the slots of a second stream; empty where there is none."""
    asked: tuple[Tensor, ...]
    """(b,m) for each group: the slots of the second stream."""
    dropout: float
    capture: bool
    past: Memory | Cache | None = None
    kept: list[tuple[Tensor, Tensor]] | None = field(default=None)
    """Where layers put the keys and values that a cache is made of, if one is wanted."""
    seen: list[Tensor] = field(default_factory=list)
    """Where layers put the weights (B,H,T,S) of a second stream, if they are captured."""
    products: Products | None = None
    """What layers multiply with instead of their own weights."""
    positions: Tensor | None = None
    """(N,) the position numbers of the packed slots."""
    waves: dict[float, Waves] = field(default_factory=dict)
    """Of these positions, by the base of their lengths: made once for all layers of one base (rotary)."""
    near: AttentionPlan | None = None
    """The same for layers of local attention, where these see less."""
    _blocks: dict[int, tuple[Block, ...]] = field(default_factory=dict)

    @property
    def allowed(self) -> tuple[Tensor | None, ...]:
        return tuple(each.allowed for each in self.content)

    def blocks(self, heads: int) -> tuple[Block, ...]:
        """What attention takes as one: made once for all layers."""
        if heads not in self._blocks:
            everybody = all(mask is None for mask in self.allowed)
            groups = self.layout.groups
            self._blocks[heads] = (
                near(groups, heads, self.layout.order.device) if everybody else exact(groups, self.allowed)
            )
        return self._blocks[heads]

    def of_layer(self, local: bool) -> AttentionPlan:
        """What a layer of local attention takes, or any other."""
        return self.near if local and self.near is not None else self

    def quick(self, layer: int) -> LayerProducts | None:
        return None if self.products is None else self.products[layer]

    @property
    def by_slots(self) -> bool:
        """Whether nobody wants weights or a cache, so that positions of Transformer-XL have their quick kernel."""
        return not self.capture and self.kept is None and not isinstance(self.past, Cache)

    @property
    def plain(self) -> bool:
        """Whether rows see nothing but themselves, in one stream."""
        return self.past is None and not self.second and self.kept is None

    @cached_property
    def counting(self) -> bool:
        """Whether the position numbers of every row count up by one, wherever they begin."""
        return all(bool((each.places.k_pos.diff(dim=1) == 1).all()) for each in self.content)

    @cached_property
    def parts(self) -> tuple[Part, ...] | None:
        """Both streams, where distances go by slots."""
        return parts_of(self.content, self.second, self.asked, own=True)

    def parts_alone(self, selection: Selection) -> tuple[Part, ...] | None:
        """Those that ask where the first stream does not: the second, or the selected slots."""
        if self.second:
            assert not len(selection.index), "of two streams the last layer computes the second alone, or both"
            return parts_of(self.content, self.second, self.asked, own=False)
        every = zip(self.content, selection.groups, selection.slots, strict=True)
        asking = [meeting.of(group, slots) for meeting, group, slots in every]
        return parts_of(self.content, asking, selection.slots, own=False)


def plan_attention(
    layout: Layout,
    visibility: Visibility,
    slots: Mapping[str, Tensor],
    positions: Tensor,
    segments: Tensor,
    *,
    dropout: float,
    capture: bool,
    past: Memory | Cache | None = None,
    second: Selection | None = None,
    keep: bool = False,
    products: Products | None = None,
    reach: int | None = None,
) -> AttentionPlan:
    """`reach`: how far layers of local attention see to either side."""
    before = facts_before(past, visibility)
    common = (layout, visibility, slots, positions, segments, before)

    def met(within: int | None) -> tuple[tuple[Meeting, ...], tuple[Meeting, ...]]:
        asking = () if second is None else meetings(*common, second, asks=True, reach=within)
        return meetings(*common, reach=within), asking

    content, asking = met(None)
    asked = () if second is None else second.slots
    plan = AttentionPlan(layout, content, asking, asked, dropout, capture, past, [] if keep else None)
    plan = replace(plan, products=products, positions=layout.pack(positions))
    size = 0 if before is None else before.size
    if reach is None or not layout.groups or layout.groups[-1].length + size <= reach + 1:
        return plan
    content, asking = met(reach)
    # Lists that layers write to are one and the same; blocks are made of who sees whom.
    return replace(plan, near=replace(plan, content=content, second=asking, _blocks={}))
