"""What the network is fed: one frozen `Batch`, made on the CPU by one function (`maskery.feed`).

Shapes: B rows, T slots a row, n targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from maskery.arguments import checked
from maskery.edit import Edit as Edit
from maskery.errors import UnknownName

T = TypeVar("T", "Batch", "Targets")


@dataclass(frozen=True, kw_only=True)
class Targets:
    """What one objective asks of a batch."""

    index: Tensor
    """(n,) flat slots b*T+t, ascending; or row numbers for questions about a row."""
    label: Tensor
    """(n,)"""
    extra: Mapping[str, Tensor] = field(default_factory=dict)

    def to(self, device: torch.device | str) -> Targets:
        return _moved(self, device)


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What every layer read of the rows before: no gradient goes into it. Filled from the right."""

    states: tuple[Tensor, ...]
    """One for each layer, (B,M,D): what the layer was given."""
    length: Tensor
    """(B,) how many of the M are filled."""

    def to(self, device: torch.device | str) -> Memory:
        return Memory(states=tuple(each.to(device) for each in self.states), length=self.length.to(device))


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What the network reads in one step: ids, segments, positions, the text before corruption, targets by objective.

    batch = maskery.batch("bert", "my-corpus", step=0)
    batch.ids.shape, batch.targets["masked_token"].label
    """

    step: int
    rows: Tensor
    """(B,) row numbers of the plan."""
    ids: Tensor
    """(B,T) what the network reads, padded on the right."""
    length: Tensor
    """(B,) real slots."""
    segments: Tensor
    """(B,T)"""
    positions: Tensor
    """(B,T) position numbers: data, not an arange, for branches, offsets and decoders."""
    original: Tensor
    """(B,T) ids before corruption."""
    edit: Tensor
    """(B,T) uint8, an `Edit`."""
    slots: Mapping[str, Tensor] = field(default_factory=dict)
    """(B,T) named facts per slot that predicates read: document, word, order, branch."""
    targets: Mapping[str, Targets] = field(default_factory=dict)
    decoder: Batch | None = None
    """What a decoder reads and is asked, row by row beside this one."""
    asked: Tensor | None = None
    """(n,) flat slots, ascending, that have a second stream of states."""
    lane: Tensor | None = None
    """(B,) where rows continue each other: the walk through the text that a row is part of."""
    fresh: Tensor | None = None
    """(B,) whether a row begins its lane, so that nothing stands before it."""
    remember: int = 0
    """How many of a row's first slots the next row of its lane remembers; 0 = all."""
    memory: Memory | None = None
    """What the rows before left behind: put in by whoever runs the network."""
    views: Mapping[str, Batch] = field(default_factory=dict)
    """Further rows that an objective has made of these, by its name; the network reads them below the batch's own."""

    @property
    def size(self) -> int:
        """B, the number of rows."""
        return int(self.ids.shape[0])

    @property
    def tokens(self) -> int:
        """Real positions, decoder and views apart."""
        return int(self.length.sum())

    @checked
    def asked_about(self, name: str) -> Batch:
        """The rows that a question is asked about: these, or the decoder's."""
        return self if self.decoder is None or name in self.targets else self.decoder

    @checked
    def view_start(self, name: str) -> int:
        """The number of a view's first row, as the network counts them."""
        names = list(self.views)
        if name not in names:
            raise UnknownName("view", name, names)
        return self.size + sum(self.views[each].size for each in names[: names.index(name)])

    def to(self, device: torch.device | str) -> Batch:
        """The same on another device."""
        return _moved(self, device)

    @checked
    def one(self, row: int) -> Batch:
        """The given row alone, without padding and without targets: for pictures and analyses."""
        length = int(self.length[row])

        def cut(grid: Tensor) -> Tensor:
            return grid[row : row + 1, :length]

        return replace(
            self,
            rows=self.rows[row : row + 1],
            length=self.length[row : row + 1],
            ids=cut(self.ids),
            segments=cut(self.segments),
            positions=cut(self.positions),
            original=cut(self.original),
            edit=cut(self.edit),
            slots={name: cut(fact) for name, fact in self.slots.items()},
            targets={},
            views={},
            decoder=None if self.decoder is None else self.decoder.one(row),
            asked=self._asked_of(row),
            lane=None if self.lane is None else self.lane[row : row + 1],
            fresh=None if self.fresh is None else self.fresh[row : row + 1],
            memory=None,
        )

    def _asked_of(self, row: int) -> Tensor | None:
        if self.asked is None:
            return None
        width = self.ids.shape[1]
        return self.asked[self.asked // width == row] % width


def _moved(value: T, device: torch.device | str) -> T:
    changes: dict[str, Any] = {}
    for item in fields(value):
        content = getattr(value, item.name)
        if isinstance(content, (Tensor, Batch, Targets, Memory)):
            changes[item.name] = content.to(device)
        elif isinstance(content, Mapping):
            changes[item.name] = {name: inner.to(device) for name, inner in content.items()}
    return replace(value, **changes)
