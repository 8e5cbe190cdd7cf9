"""Models as writers: a prompt is read, and after every token the scores of the next one are told.

All of them go on from what they have read by one kind of past, keys and values of every layer (`maskery.model.past`).
`keep=False` reads everything anew at every step: the plain meaning of writing, and what the cache is measured against.

Shapes: B rows, T slots that are read now, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from maskery.checkpoint.model import Model
from maskery.model.config import VISIBILITIES
from maskery.model.layout import layout_of
from maskery.model.past import Cache
from maskery.model.source import Source
from maskery.model.stack import Inputs, Stack
from maskery.model.transformer import Hidden, Network
from maskery.model.visibility import Recent, Visibility
from maskery.writing.forms import Form


class Writer(Protocol):
    form: Form

    def begin(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """(B,V) scores of the first token behind each prompt."""
        ...

    def step(self, tokens: Tensor) -> Tensor:
        """(B,) the tokens that were chosen -> (B,V) scores of the next."""
        ...

    def select(self, rows: Tensor) -> None:
        """Go on with the given rows alone, which may repeat."""
        ...


def writer_of(model: Model, form: Form, *, keep: bool = True) -> Writer:
    head = model.heads[form.head]
    kind = DecoderWriter if form.start else RowWriter
    return kind(model.network, head, form, keep=keep)


class _Rows:
    """What is common: the rows so far, as lists, where they are read anew at every step."""

    def __init__(self, network: Network, head: nn.Module, form: Form, *, keep: bool = True) -> None:
        self.network, self.head, self.form, self.keep = network, head, form, keep
        self.device = network.embeddings.tokens.device
        self.cache: Cache | None = None
        self.prompt = torch.zeros(0, dtype=torch.long)
        """(B,) the length of each framed prompt."""
        self.place = torch.zeros(0, dtype=torch.long)
        """(B,) where the next token will stand."""
        self.rows: list[list[int]] = []
        self._tokens: Tensor | None = None

    def _numbers(self, values: Sequence[int] | Sequence[Sequence[int]]) -> Tensor:
        return torch.tensor(values, dtype=torch.long, device=self.device)

    def _grid(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """(B,T) ids, padded on the right, and (B,) lengths."""
        width = max(map(len, rows))
        padded = [[*row, *[0] * (width - len(row))] for row in rows]
        return self._numbers(padded), self._numbers([len(row) for row in rows])

    def _scores(self, stack: Stack, states: Tensor) -> Tensor:
        if self._tokens is None:
            # (V,E) laid out by columns: few states meet all tokens in half the time.
            self._tokens = stack.embeddings.tokens.t().contiguous().t()
        scores: Tensor = self.head(states, self._tokens)
        return scores.float()


class RowWriter(_Rows):
    """Prompt and text stand in one row."""

    @torch.inference_mode()
    def begin(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        self.rows = [self.form.framed(prompt) for prompt in prompts]
        self.cache = None
        self.prompt = self._numbers([len(row) for row in self.rows])
        self.place = self.prompt.clone()
        return self._read(self.rows)

    @torch.inference_mode()
    def step(self, tokens: Tensor) -> Tensor:
        new = tokens.tolist()
        self.place = self.place + 1
        if self.keep:
            return self._read([[token] for token in new])
        self.rows = [[*row, token] for row, token in zip(self.rows, new, strict=True)]
        return self._read(self.rows)

    @torch.inference_mode()
    def select(self, rows: Tensor) -> None:
        self.prompt, self.place = self.prompt[rows], self.place[rows]
        if self.cache is not None:
            self.cache = self.cache.select(rows)
        if not self.keep:
            self.rows = [list(self.rows[row]) for row in rows.tolist()]

    def _read(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """The last stretch of each row, behind what was kept."""
        probe = [] if self.form.probe is None else [self.form.probe]
        ids, length = self._grid([[*row, *probe] for row in rows])
        last = torch.arange(len(rows), device=self.device) * ids.shape[1] + length - 1
        inputs = self._inputs(ids, length, last)
        reads = None if self.keep else last
        hidden: Hidden = self.network(inputs, keep=self.keep, reads=reads)
        self._remember(hidden.cache, len(probe))
        if self.form.second:
            assert hidden.predicted is not None
            hidden = hidden.predicted
        return self._scores(self.network, hidden.select(last))

    def _inputs(self, ids: Tensor, length: Tensor, last: Tensor) -> Inputs:
        first = self.place + (self.form.probe is not None) - length
        slot = torch.arange(ids.shape[1], device=self.device)
        place = first.unsqueeze(1) + slot
        return inputs_of_places(
            self.network, self.form, ids, slot < length.unsqueeze(1), place, self.prompt, self.cache, last
        )

    def _remember(self, cache: Cache | None, probes: int) -> None:
        """A probe is not part of the text; and what lies beyond the reach is forgotten."""
        if cache is None:
            return
        stop = cache.size - probes
        first = max(0, stop - self.form.reach) if self.form.reach else 0
        self.cache = cache.part(first, stop) if first or probes else cache


def inputs_of_places(
    network: Network,
    form: Form,
    ids: Tensor,
    real: Tensor,
    place: Tensor,
    prompt: Tensor,
    past: Cache | None = None,
    asked: Tensor | None = None,
) -> Inputs:
    """What a row is, told by (B,T) where its slots stand and (B,) how long its prompt is."""
    text = place >= prompt.unsqueeze(1)
    visibility = _visibility(form)
    facts = {
        "document": text.long() if form.role == "source" else torch.zeros_like(place),
        # A prompt is known as a whole; what is written becomes known one after the other.
        "order": (place - prompt.unsqueeze(1) + 1).clamp(min=0),
    }
    before, behind = form.segments
    return Inputs(
        ids=ids,
        layout=layout_of(real),
        segments=torch.where(text, behind, before),
        positions=place + network.shape.position_offset,
        slots={name: facts[name] for name in visibility.needs},
        visibility=visibility,
        past=past,
        asked=asked if form.second else None,
    )


def _visibility(form: Form) -> Visibility:
    return Recent(form.reach + 1) if form.reach else VISIBILITIES.get(form.visibility)()


class DecoderWriter(_Rows):
    """The prompt is read once by the encoder; the decoder writes."""

    source: Source | None = None

    @torch.inference_mode()
    def begin(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        self.prompts = [self.form.framed(prompt) for prompt in prompts]
        self.rows = [list(self.form.start) for _ in prompts]
        self.place = self._numbers([len(self.form.start)] * len(prompts))
        self.cache = None
        return self._read_all()

    @torch.inference_mode()
    def step(self, tokens: Tensor) -> Tensor:
        self.place = self.place + 1
        if not self.keep:
            self.rows = [[*row, token] for row, token in zip(self.rows, tokens.tolist(), strict=True)]
            return self._read_all()
        assert self.source is not None
        hidden = self.network.write(self._written(tokens.unsqueeze(1)), self.source, keep=True)
        return self._told(hidden)

    @torch.inference_mode()
    def select(self, rows: Tensor) -> None:
        self.place = self.place[rows]
        if self.cache is not None and self.source is not None:
            self.cache, self.source = self.cache.select(rows), self.source.select(rows)
        if not self.keep:
            self.rows = [list(self.rows[row]) for row in rows.tolist()]
            self.prompts = [self.prompts[row] for row in rows.tolist()]

    def _read_all(self) -> Tensor:
        ids, length = self._grid(self.prompts)
        slot = torch.arange(ids.shape[1], device=self.device)
        inputs = Inputs(
            ids=ids,
            layout=layout_of(slot < length.unsqueeze(1)),
            segments=torch.zeros_like(ids),
            positions=(slot + self.network.shape.position_offset).expand_as(ids),
            decoder=self._written(self._numbers(self.rows)),
        )
        hidden: Hidden = self.network(inputs, keep=self.keep)
        assert hidden.decoder is not None
        self.source = hidden.source
        return self._told(hidden.decoder)

    def _written(self, ids: Tensor) -> Inputs:
        """(B,T) the newest tokens of the decoder; its rows are always of one length."""
        slot = torch.arange(ids.shape[1], device=self.device) - ids.shape[1]
        return Inputs(
            ids=ids,
            layout=layout_of(torch.ones_like(ids, dtype=torch.bool)),
            segments=torch.zeros_like(ids),
            positions=self.place.unsqueeze(1) + slot + self.network.shape.position_offset,
            past=self.cache,
        )

    def _told(self, hidden: Hidden) -> Tensor:
        decoder = self.network.decoder
        assert decoder is not None
        self.cache = hidden.cache
        return self._scores(decoder, hidden.last[:, -1])
