"""Information flow: which slots' contents a state can depend on, layer by layer, and whether a question leaks.

Reachability is boolean matrix algebra over visibility. After layer l a query knows the union of what the keys it sees
knew after layer l-1, and (through the residual sum) what it knew itself. It equals the non-zero pattern of the
network's Jacobian. A question leaks when the asked slot can reach a slot that shows the answer. Layers may see
differently (local attention): what is visible is then a list, one matrix a layer.

Shapes: T slots; R[q, s] says that the state of q depends on the content of s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from maskery.batches import Batch, Edit
from maskery.model.config import Architecture
from maskery.model.meeting import remembered_facts
from maskery.model.stack import Stack
from maskery.model.transformer import Network, inputs_of, visibility_of
from maskery.model.visibility import View, Visibility, dense, facts_for

Seen = Tensor | Sequence[Tensor]
"""Who sees whom: in all layers, or in each."""


def at(visible: Seen, layer: int) -> Tensor:
    """In one layer, counted from 0."""
    return visible if isinstance(visible, Tensor) else visible[layer]


def by_layer(visible: Tensor, shape: Architecture) -> list[Tensor]:
    """(t,M+t) -> the same for each layer; those of local attention see a window of it."""
    before = visible.shape[1] - visible.shape[0]
    place = torch.arange(-before, visible.shape[0])
    near = (place[before:, None] - place).abs() <= shape.reach
    return [visible & near if shape.is_local(layer) else visible for layer in range(shape.layers)]


def _through(visible: Tensor, known: Tensor) -> Tensor:
    return (visible.float() @ known.float()) > 0


def reach(visible: Seen, layers: int, *, residual: bool = True, start: Tensor | None = None) -> list[Tensor]:
    """What each slot knows before layer 1 and after each layer: layers + 1 matrices (T,T)."""
    known = torch.eye(at(visible, 0).shape[-1], dtype=torch.bool) if start is None else start
    steps = [known]
    for layer in range(layers):
        seen = _through(at(visible, layer), known)
        known = seen | known if residual else seen
        steps.append(known)
    return steps


def reach_two_streams(content: Seen, query: Seen, layers: int) -> list[Tensor]:
    """What the query stream knows after each layer, when it reads a content stream and nobody reads it."""
    states = reach(content, layers)
    known = torch.zeros_like(at(query, 0))
    steps = [known]
    for layer in range(layers):
        known = known | _through(at(query, layer), states[layer])
        steps.append(known)
    return steps


def reach_one_stream(content: Seen, query: Seen, asked: Tensor, layers: int) -> list[Tensor]:
    """What is known where one stream does both: slots that are `asked` see what their queries see, and nothing of their
    own is left to them, not even by the residual sum. What they pass on is then no longer their own token."""
    visible = [torch.where(asked.unsqueeze(1), at(query, layer), at(content, layer)) for layer in range(layers)]
    return reach(visible, layers, residual=False)


def reach_source(own: Seen, across: Tensor, source: Tensor, layers: int) -> list[Tensor]:
    """What a decoder knows of the slots that it looks at: `source` is what these know in their last layer."""
    known = torch.zeros(across.shape[0], source.shape[1], dtype=torch.bool)
    steps = [known]
    for layer in range(layers):
        known = known | _through(at(own, layer), known)
        known = known | _through(across, source)
        steps.append(known)
    return steps


def behind_memory(visible: Tensor) -> Tensor:
    """(t,M+t) -> (M+t,M+t): what is remembered sees itself, and nothing of the row."""
    before = visible.shape[1] - visible.shape[0]
    return torch.cat((torch.eye(before, visible.shape[1], dtype=torch.bool), visible))


def visible_row(visibility: Visibility, batch: Batch, row: int, *, asks: bool = False, before: int = 0) -> Tensor:
    """(t,before+t) who sees whom among the real slots of one row; `asks`: what the second stream of each would see;
    `before`: remembered slots in front."""
    length = int(batch.length[row])
    places = torch.arange(length).unsqueeze(0)
    one = {name: fact[row : row + 1, :length] for name, fact in batch.slots.items()}
    facts = facts_for(visibility, one, places)
    past = remembered_facts(visibility, torch.zeros(1, before, dtype=torch.long))
    view = View(
        q_pos=places,
        k_pos=torch.arange(-before, length).unsqueeze(0),
        q_slots=facts,
        k_slots={name: torch.cat((past[name], fact), 1) for name, fact in facts.items()},
        asks=asks,
    )
    return dense(visibility.bind(view), view)[0, 0]


@dataclass(frozen=True)
class Leak:
    """A target that can read its own answer."""

    row: int
    asked: int
    answer: int
    layer: int
    path: tuple[int, ...]
    """The slots between the asked one and the answer, in the order of reading back."""

    def text(self) -> str:
        if self.layer == 0:
            return f"position {self.asked} holds its own answer in the input"
        slots = " and ".join(map(str, self.path))
        way = f"through position{'s' * (len(self.path) > 1)} {slots}" if self.path else "directly"
        answer = "" if self.asked == self.answer else f" (the answer stands at position {self.answer})"
        return f"position {self.asked} reaches its own answer in layer {self.layer} {way}{answer}"


@dataclass(frozen=True)
class Reading:
    """What the targets of one question can read of their answers."""

    targets: int
    leak: Leak | None
    """The first target whose answer stands, for no reason, where it can read it."""
    kept: int
    """Targets whose answer corruption chose and left in the input on purpose, where they can read it."""


def read_answers(network: Stack, batch: Batch, asked: Tensor, answer: Tensor, *, second: bool = False) -> Reading:
    """`asked` and `answer` are flat slots: a target, and where what it is asked for stands. `second`: the second stream
    is asked, for which nothing is ever left in sight on purpose."""
    kept = batch.edit.flatten()[answer] == Edit.KEEP
    return Reading(
        targets=len(asked),
        leak=find_leak(network, batch, asked, answer, second=second),
        kept=0 if second else int(_reached(network, batch, asked[kept], answer[kept], second).sum()),
    )


def find_leak(network: Stack, batch: Batch, asked: Tensor, answer: Tensor, *, second: bool = False) -> Leak | None:
    """The first target whose answer stands in a slot that corruption left as it was and that it can reach."""
    edit = batch.edit.flatten()[answer]
    shown = (edit == Edit.NONE) | (edit == Edit.KEEP) if second else edit == Edit.NONE
    asked, answer = asked[shown], answer[shown]
    found = _reached(network, batch, asked, answer, second).nonzero().flatten().tolist()
    if not found:
        return None
    row, query = divmod(int(asked[found[0]]), batch.ids.shape[1])
    return _ways(network, batch, row, second).trace(row, query, int(answer[found[0]]) % batch.ids.shape[1])


def _reached(network: Stack, batch: Batch, asked: Tensor, answer: Tensor, second: bool) -> Tensor:
    """(n,) whether the last state of a target depends on the slot of its answer."""
    slots = batch.ids.shape[1]
    found = torch.zeros(len(asked), dtype=torch.bool)
    for row in torch.unique(asked // slots).tolist():
        mine = asked // slots == row
        found[mine] = _ways(network, batch, row, second).known[-1][asked[mine] % slots, answer[mine] % slots]
    return found


@dataclass(frozen=True)
class _Ways:
    """Which ways information can take in one row."""

    known: list[Tensor]
    """What those that are asked know after each layer."""
    seen: list[Tensor]
    """What they see in each layer."""
    states: list[Tensor]
    """What the states that they see know after each layer."""
    visible: list[Tensor]
    """What these see in each layer."""

    def trace(self, row: int, asked: int, answer: int) -> Leak:
        """The shortest way from the asked slot back to the answer."""
        layer = next(number for number, known in enumerate(self.known) if bool(known[asked, answer]))
        path: list[int] = []
        place, seen = asked, self.seen
        for depth in range(layer, 1, -1):
            place = int((seen[depth - 1][place] & self.states[depth - 1][:, answer]).nonzero()[0])
            path.append(place)
            seen = self.visible
        return Leak(row, asked, answer, layer, tuple(path))


def _ways(network: Stack, batch: Batch, row: int, second: bool) -> _Ways:
    visibility, layers = visibility_of(batch) or network.visibility, network.shape.layers
    visible = by_layer(visible_row(visibility, batch, row), network.shape)
    states = reach(visible, layers)
    if not second:
        return _Ways(states, visible, states, visible)
    seen = by_layer(visible_row(visibility, batch, row, asks=True), network.shape)
    return _Ways(reach_two_streams(visible, seen, layers), seen, states, visible)


def jacobian_pattern(network: Network, batch: Batch, row: int) -> Tensor:
    """(t,t) where the last state of q really depends on the input vector of s: the measured side of `reach`."""
    one = batch.one(row)
    embedded: list[Tensor] = []

    def keep(_module: object, _inputs: object, output: Tensor) -> Tensor:
        leaf = output.detach().requires_grad_()
        embedded.append(leaf)
        return leaf

    hook = network.embeddings.register_forward_hook(keep)
    try:
        packed = network(inputs_of(one)).packed
    finally:
        hook.remove()
    weights = torch.linspace(0.5, 1.5, packed.shape[1])
    rows = [torch.autograd.grad((state * weights).sum(), embedded[0], retain_graph=True)[0] for state in packed]
    return torch.stack([gradient.abs().amax(1) > 0 for gradient in rows])
