"""The public object: a network with its heads and its tokenizer, as a folder holds them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from torch import Tensor, nn

from maskery.checkpoint.calls import prepare
from maskery.checkpoint.families import OWN, Choice, choose
from maskery.checkpoint.folder import Beside, Saved, save_model, state_of
from maskery.checkpoint.heads import scores_of
from maskery.checkpoint.parts import parameters_by_part
from maskery.checkpoint.state import LoadReport, Origin
from maskery.errors import InputError
from maskery.model.config import Shape
from maskery.model.heads import TokenHead
from maskery.model.transformer import Hidden, Network
from maskery.text.tokenizer import Tokenizer


class Model(nn.Module):
    def __init__(
        self,
        network: Network,
        heads: Mapping[str, nn.Module],
        tokenizer: Tokenizer | None = None,
        *,
        origin: Origin | None = None,
        report: LoadReport | None = None,
        note: str = "",
        generator: Model | None = None,
    ) -> None:
        super().__init__()
        self.network = network
        self.head_modules = nn.ModuleDict(dict(heads))
        self.tokenizer = tokenizer
        self.origin = origin
        self.report = report or LoadReport()
        self.note = note
        """Which of several models of a folder this is, and why; empty when there was no choice."""
        self.generator = generator
        """The network that filled gaps while this one was trained (ELECTRA); its embeddings are this one's."""
        self.eval()

    @property
    def heads(self) -> Mapping[str, nn.Module]:
        return dict(self.head_modules.items())

    @property
    def config(self) -> Shape:
        return self.network.shape

    @property
    def family(self) -> str:
        """The model_type of the folder it came from, or of the one it would be saved as."""
        return self._choice.name if self.origin is None else self.origin.model_type

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why no type of Hugging Face can express it, where that is so."""
        return self._choice.reasons if self.family == OWN else ()

    @property
    def _choice(self) -> Choice:
        pad = None if self.tokenizer is None else self.tokenizer.specials.pad
        return choose(self.config, state_of(self.network, self.heads), pad)

    def forward(
        self,
        ids: Tensor,
        mask: Tensor | None = None,
        segments: Tensor | None = None,
        *,
        layers: bool = False,
        attentions: bool = False,
        positions: Tensor | None = None,
        decoder_ids: Tensor | None = None,
        visibility: str | None = None,
        tasks: Tensor | None = None,
    ) -> Hidden:
        """(B,T) ids -> states. `mask` is 1 or True at real slots; padding may stand on any side. `visibility` says who
        sees whom where that is not the model's own: a model of several modes (UniLM) reads in full otherwise. `tasks`
        are the numbers of tasks, one a slot (ERNIE 2.0)."""
        if decoder_ids is not None:
            raise InputError("decoder_ids given to a model without a decoder", repair="leave decoder_ids out")
        inputs = prepare(self.network, ids, mask, segments, positions, visibility, tasks)
        hidden: Hidden = self.network(inputs, layers=layers, attentions=attentions)
        return hidden

    def logits(
        self,
        ids: Tensor,
        mask: Tensor | None = None,
        segments: Tensor | None = None,
        *,
        visibility: str | None = None,
    ) -> Tensor:
        """(B,T,V) scores of the token head; zeros at padding."""
        head = self.token_head()
        hidden: Hidden = self(ids, mask, segments, visibility=visibility)
        scores: Tensor = head(hidden.packed, self.network.embeddings.tokens)
        return hidden.layout.unpack(scores)

    def scores(self, head: str, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """What the named head says: (B,C) of one that reads rows as a whole, (B,T,C) or (B,T) of one that reads slots,
        zeros at padding. Each choice of a question is a row: `model.scores("choice", ...).view(-1, choices)`."""
        if head not in self.heads:
            held = ", ".join(self.heads) or "none"
            raise InputError(f"this model has no head {head!r}", repair=f"its heads: {held}")
        return scores_of(head, self.heads[head], self.network, self(ids, mask, segments))

    def token_head(self) -> TokenHead:
        for head in self.heads.values():
            if isinstance(head, TokenHead):
                return head
        held = ", ".join(self.heads) or "none"
        raise InputError(
            f"this model has no head over the vocabulary (its heads: {held})",
            repair="model.generator has one"
            if self.generator is not None
            else "use a model pretrained with masked_token or next_token",
        )

    def parameters_by_part(self) -> dict[str, int]:
        return parameters_by_part(self.network, self.heads, self.generator)

    def answering(self, question: str) -> Model:
        """The network that has learnt a question: the generator, where only it has the head."""
        if question in self.heads or self.generator is None or question not in self.generator.heads:
            return self
        return self.generator

    def save(self, path: str | os.PathLike[str], *, replace: bool = False) -> Saved:
        """Write the folder; what is worth telling stands in the result's `notes`."""
        second = self.generator
        return save_model(
            path,
            self.network,
            self.heads,
            self.tokenizer,
            origin=self.origin,
            generator=None if second is None else Beside(second.network, second.heads, second.origin),
            replace=replace,
        )
