"""A network with what makes one vector of each text: pooling, then steps. Used as it is, and trained as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from maskery.checkpoint.model import Model
from maskery.errors import ArgumentError
from maskery.model.stack import Inputs
from maskery.model.transformer import Hidden
from maskery.tasks.framing.frame import Frame, frame_of, longest_row, tokenizer_of
from maskery.text.tokenizer import Tokenizer
from maskery.vectors.pooling import Pooling
from maskery.vectors.rows import TextRows, rows_of_texts
from maskery.vectors.settings import VectorsConfig
from maskery.vectors.steps import width_after


class VectorModel(nn.Module):
    def __init__(self, model: Model, config: VectorsConfig, steps: Iterable[nn.Module] = ()) -> None:
        super().__init__()
        most = longest_row(model)
        if most is not None and config.length > most:
            raise ArgumentError(
                f"a length of {config.length}, and the model reads {most} slots", repair=f"a length of at most {most}"
            )
        self.model, self.config = model, config
        self.tokenizer: Tokenizer = tokenizer_of(model)
        self.frame: Frame = frame_of(model)
        self.pooling = Pooling(config.pool, model.config, has_pooler=model.network.pooler is not None)
        self.steps = nn.ModuleList(steps)
        self.dimensions = width_after(self.pooling.width, self.steps)
        self.eval()

    @property
    def device(self) -> torch.device:
        return self.model.network.embeddings.tokens.device

    def changed(self, config: VectorsConfig, steps: Iterable[nn.Module] | None = None) -> VectorModel:
        """The same network with another way to make vectors; a learned attention goes along."""
        made = VectorModel(self.model, config, list(self.steps) if steps is None else steps)
        if made.pooling.attention is not None and self.pooling.attention is not None:
            made.pooling.attention = self.pooling.attention
        return made.to(self.device)

    def rows(self, texts: Sequence[str], prompt: str = "") -> TextRows:
        return rows_of_texts(self.tokenizer, self.frame, texts, self.config.length, prompt)

    def forward(self, inputs: Inputs, skip: int = 0) -> Tensor:
        """(B,dimensions); `skip`: slots of the front that are a prompt's."""
        skip = 0 if self.config.pool_prompt else skip
        vectors: Tensor = self.pooling(self.read(inputs, skip), skip)
        for step in self.steps:
            vectors = step(vectors)
        return vectors

    def read(self, inputs: Inputs, skip: int = 0) -> Hidden:
        """What the network says, and no more of it than is pooled."""
        reads = None
        if self.pooling.needs_one_slot and not skip:
            reads = inputs.layout.order.new_empty(0)
            if self.model.network.pooler is None:
                places, source = inputs.layout.first_places(), inputs.layout.source
                reads = places if source is None else source.index_select(0, places)
        found: Hidden = self.model.network(inputs, layers=self.pooling.needs_layers, reads=reads)
        return found
