"""The one Transformer: a stack of layers that reads, a pooler, and a decoder where the shape has one.

It works on packed slots; only attention knows rows. Shapes: B rows, T slots, N packed slots, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from maskery.batches import Batch, Memory
from maskery.model.config import VISIBILITIES, Shape
from maskery.model.embeddings import Embeddings
from maskery.model.layout import Layout, layout_of
from maskery.model.linear import Linear
from maskery.model.past import Cache, remembered
from maskery.model.selection import Selection, select
from maskery.model.source import Source, source_of
from maskery.model.stack import Inputs as Inputs
from maskery.model.stack import Run, Stack
from maskery.model.visibility import Causal, Mixed, Visibility


def visibility_of(batch: Batch) -> Visibility | None:
    """Rows that have a mode are read in it; None: as the network reads."""
    return Mixed() if "mode" in batch.slots else None


def inputs_of(batch: Batch) -> Inputs:
    """The batch's rows, then those of its views: flat slots of the batch stay what they are."""
    parts = [batch, *batch.views.values()]
    width = batch.ids.shape[1]
    slots = torch.arange(width, device=batch.ids.device)
    return Inputs(
        ids=_below(width, [part.ids for part in parts]),
        layout=layout_of(slots < torch.cat([part.length for part in parts]).unsqueeze(1)),
        segments=_below(width, [part.segments for part in parts]),
        positions=_below(width, [part.positions for part in parts]),
        slots={
            # A view of which a fact is not told is one document without an order, as in `facts_for`.
            name: _below(width, [part.slots.get(name, torch.zeros_like(part.ids)) for part in parts])
            for name in batch.slots
        },
        visibility=visibility_of(batch),
        past=batch.memory,
        remember=batch.remember,
        asked=batch.asked,
        decoder=None if batch.decoder is None else inputs_of(batch.decoder),
    )


def _below(width: int, grids: list[Tensor]) -> Tensor:
    """Grids of at most `width` columns, one under the other."""
    if len(grids) == 1:
        return grids[0]
    return torch.cat([F.pad(grid, (0, width - grid.shape[1])) for grid in grids])


@dataclass(frozen=True, kw_only=True)
class Hidden:
    """What the network says."""

    packed: Tensor
    """(N,D) the last layer's states of real slots."""
    layout: Layout
    selection: Selection | None = None
    """Set when only the slots that somebody reads were computed; `packed` then holds these."""
    pooled: Tensor | None = None
    """(B,D) of each row's first slot, where there is a pooler; zeros for a row without slots."""
    packed_layers: tuple[Tensor, ...] = ()
    """L+1 entries, embedding first, if asked for."""
    attentions: tuple[Tensor, ...] = ()
    """L entries (B,H,T,S), if asked for; keys of a past stand in front."""
    across: tuple[Tensor, ...] = ()
    """The same of what a decoder looks at, (B,H,T,S)."""
    predicted: Hidden | None = None
    """The second stream, where there is one: the states of the asked slots."""
    decoder: Hidden | None = None
    """What the decoder says, where there is one and it was given something to read."""
    memory: Memory | None = None
    """What the next rows may remember, where the network has a memory."""
    cache: Cache | None = None
    """What is needed to read on, if asked for."""
    source: Source | None = None
    """What the decoder looked at, if asked for: the next slots look at the same."""

    @property
    def last(self) -> Tensor:
        """(B,T,D), zeros at padding."""
        assert self.selection is None, "only selected slots were computed"
        return self.layout.unpack(self.packed)

    @property
    def layers(self) -> tuple[Tensor, ...]:
        return tuple(self.layout.unpack(layer) for layer in self.packed_layers)

    def select(self, index: Tensor) -> Tensor:
        """(n,) flat slots -> (n,D). One gather: quickest, and bitwise repeatable backwards."""
        places = self.layout.places(index)
        if self.selection is not None:
            places = self.selection.place.index_select(0, places)
        return self.packed.index_select(0, places)


class Network(Stack):
    def __init__(self, shape: Shape, *, pooler: bool, lender: Network | None = None) -> None:
        """`lender` owns the embeddings, if this is a second network that has them in common with it."""
        embeddings = Embeddings(shape, None if lender is None else lender.embeddings)
        super().__init__(shape, VISIBILITIES.get(shape.visibility)(), embeddings)
        self.pooler = Linear(shape.width, shape.width) if pooler else None
        self.decoder = _decoder(shape, self.embeddings) if shape.decoder else None

    def forward(
        self,
        inputs: Inputs,
        *,
        layers: bool = False,
        attentions: bool = False,
        reads: Tensor | None = None,
        keep: bool = False,
    ) -> Hidden:
        """The states of all slots, or of the flat slots `reads` alone where that saves work; `keep`: and all that is
        needed to read on behind them."""
        layout = inputs.layout
        second = None
        if inputs.asked is not None and self.shape.streams == 2:
            second = select(layout, layout.places(inputs.asked))
        selection = None if reads is None or layers or attentions else self._selection(inputs, reads, second)
        keeps = keep and self.decoder is None
        run = self.run(inputs, layers=layers, attentions=attentions, selection=selection, second=second, keep=keeps)
        memory = self._memory(inputs, run)
        predicted = None if second is None else _predicted(run, inputs, second)
        source, written = None, None
        if self.decoder is not None and inputs.decoder is not None:
            source = source_of(run.first, layout, keep=keep)
            written = self.write(inputs.decoder, source, layers=layers, attentions=attentions, keep=keep)
        return Hidden(
            packed=run.first,
            layout=layout,
            selection=selection,
            pooled=self._pool(run.first, layout, selection),
            packed_layers=run.states if layers else (),
            attentions=run.weights,
            predicted=predicted,
            memory=memory,
            cache=run.cache,
            decoder=written,
            source=source if keep else None,
        )

    def write(
        self, inputs: Inputs, source: Source, *, layers: bool = False, attentions: bool = False, keep: bool = False
    ) -> Hidden:
        """What the decoder says of its rows while it looks at the source."""
        assert self.decoder is not None
        captured = len(source.captured)
        run = self.decoder.run(inputs, layers=layers, attentions=attentions, source=source, keep=keep)
        return Hidden(
            packed=run.first,
            layout=inputs.layout,
            packed_layers=run.states if layers else (),
            attentions=run.weights,
            across=tuple(source.captured[captured:]),
            cache=run.cache,
        )

    def _memory(self, inputs: Inputs, run: Run) -> Memory | None:
        if not self.shape.memory:
            return None
        past = inputs.past if isinstance(inputs.past, Memory) else None
        given = run.states[: self.shape.layers]
        return remembered(past, given, inputs.layout, self.shape.memory, inputs.remember)

    def _selection(self, inputs: Inputs, reads: Tensor, second: Selection | None) -> Selection | None:
        """What the last layer has to compute; None when that is most of the slots."""
        layout = inputs.layout
        if self.decoder is not None:  # it looks at all of them
            return None
        places = layout.places(reads)
        if self.pooler is not None:
            places = torch.cat((places, layout.first_places()))
        places = torch.unique(places)
        if second is not None or inputs.past is not None:
            return select(layout, places) if not len(places) and second is not None else None
        return select(layout, places) if 0 < 2 * len(places) <= layout.count else None

    def _pool(self, x: Tensor, layout: Layout, selection: Selection | None) -> Tensor | None:
        if self.pooler is None:
            return None
        first = layout.first_places()
        if selection is not None:
            first = selection.place.index_select(0, first)
        if not layout.empty:
            return torch.tanh(self.pooler(x.index_select(0, first))).to(x.dtype)
        filled = layout.order[layout.empty :]
        pooled = torch.tanh(self.pooler(x.index_select(0, first[filled]))).to(x.dtype) if len(filled) else x
        return x.new_zeros(layout.rows, x.shape[1]).index_copy(0, filled, pooled)


def _predicted(run: Run, inputs: Inputs, second: Selection) -> Hidden | None:
    """What the second stream says."""
    if run.second is None or inputs.asked is None:
        return None
    asked = torch.zeros(inputs.ids.numel(), dtype=torch.bool, device=inputs.ids.device)
    asked[inputs.asked] = True
    unasked = ~asked.view(inputs.ids.shape)[:, None, :, None]  # rows that ask less than others repeat a slot
    return Hidden(
        packed=run.second,
        layout=inputs.layout,
        selection=second,
        packed_layers=run.second_states,
        attentions=tuple(each.masked_fill(unasked, 0.0) for each in run.second_weights),
    )


def _decoder(shape: Shape, embeddings: Embeddings) -> Stack:
    """A stack that reads what it has written so far, with the same tokens unless it has a vocabulary of its own."""
    own = shape.target_vocabulary
    changes = {"layers": shape.decoder, "decoder": 0, "segments": 0, "tasks": 0, "memory": 0, "streams": 1}
    mine = Shape(**(shape.plain() | changes | {"vocabulary": own or shape.vocabulary, "visibility": "causal"}))
    lent = () if own else ("tokens",)
    return Stack(mine, Causal(), Embeddings(mine, embeddings, lent), across=True)
