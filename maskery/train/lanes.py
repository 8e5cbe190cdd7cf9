"""What the lanes of a run remember, between one update and the next.

Slot b of every step is lane b, whichever rank and micro-batch reads it. A pass is given what its lanes remember, and
what it leaves behind waits until the update has moved the weights: a step that is redone reads what it read before.
Memory was made by older weights, so nothing can make it again: it is part of every checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from maskery.batches import Batch, Memory
from maskery.errors import CheckpointError
from maskery.train.ranks import Ranks

_LENGTH, _LANE = "length", "lane"


@dataclass
class LaneMemory:
    kept: Memory | None = None
    lane: Tensor | None = None
    """(n,) whose memory `kept` is, ascending."""
    _new: list[tuple[Tensor, Memory]] = field(default_factory=list)

    def begin(self) -> None:
        """The passes of an update begin, or begin again."""
        self._new = []

    def give(self, batch: Batch) -> Batch:
        """The batch with what its lanes remember; a fresh row remembers nothing."""
        if batch.lane is None or batch.fresh is None or self.kept is None or self.lane is None:
            return batch
        if bool(batch.fresh.all()):
            return batch
        place = torch.searchsorted(self.lane, batch.lane).clamp(max=len(self.lane) - 1)
        known = (self.lane[place] == batch.lane) & ~batch.fresh
        here = place.to(self.kept.length.device)
        length = self.kept.length[here] * known.to(here.device)
        return replace(batch, memory=Memory(states=tuple(each[here] for each in self.kept.states), length=length))

    def take(self, batch: Batch, left: Memory | None) -> None:
        """What a pass leaves to the next rows of its lanes."""
        if batch.lane is not None and left is not None:
            self._new.append((batch.lane, left))

    def commit(self) -> None:
        """The update has moved the weights: what its passes left is what is remembered."""
        if self._new:
            self.lane = torch.cat([lane for lane, _ in self._new])
            self.kept = below([left for _, left in self._new])
        self._new = []

    def whole(self, ranks: Ranks) -> dict[str, Tensor]:
        """What all lanes of all ranks remember, by name; every rank has to ask."""
        parts = ranks.gather(None if self.kept is None else (self.lane, self.kept.to("cpu")))
        known = [part for part in parts if part is not None]
        if not known:
            return {}
        kept = below([memory for _, memory in known])
        lanes = torch.cat([lane for lane, _ in known if lane is not None])
        named = {f"layer.{number}": states.contiguous() for number, states in enumerate(kept.states)}
        return {**named, _LENGTH: kept.length, _LANE: lanes}

    def restore(self, tensors: Mapping[str, Tensor], device: torch.device) -> None:
        """What a checkpoint remembers, of all lanes: each rank reads its own."""
        layers = sum(name.startswith("layer.") for name in tensors)
        states = tuple(tensors[f"layer.{number}"] for number in range(layers))
        self.kept = Memory(states=states, length=tensors[_LENGTH]).to(device) if states else None
        self.lane = tensors[_LANE] if states else None


def require_fit(tensors: Mapping[str, Tensor], layers: int, width: int, size: int) -> None:
    """Refuse what no run of this shape has left behind."""
    states = [f"layer.{number}" for number in range(layers)]
    if tensors.keys() == {*states, _LENGTH, _LANE} and tensors[_LENGTH].shape == tensors[_LANE].shape:
        lanes = len(tensors[_LANE])
        shapes = {tuple(tensors[name].shape) for name in states}
        if any(shapes == {(lanes, slots, width)} for slots in range(1, size + 1)):
            return
    raise CheckpointError(
        f"is not the memory of {layers} layers of width {width}, of at most {size} slots a lane",
        repair="go on from an earlier checkpoint, or start anew with another --out",
    )


def below(parts: list[Memory]) -> Memory:
    """The memories of several groups of lanes as one; shorter ones are filled up on the left."""
    if len(parts) == 1:
        return parts[0]
    size = max(part.states[0].shape[1] for part in parts)
    states = zip(*(part.states for part in parts), strict=True)
    return Memory(
        states=tuple(torch.cat([F.pad(each, (0, 0, size - each.shape[1], 0)) for each in layer]) for layer in states),
        length=torch.cat([part.length for part in parts]),
    )
