"""The public object: a network with its heads and its tokenizer, as a folder holds them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import cast

from torch import Tensor, nn

from maskery import arguments
from maskery.arguments import checked
from maskery.checkpoint.calls import prepare, shifted, with_decoder
from maskery.checkpoint.families import OWN, Choice, choose
from maskery.checkpoint.finite import guard
from maskery.checkpoint.folder import Beside, Saved, held_by, save_model
from maskery.checkpoint.heads import reads_decoder, scores_of
from maskery.checkpoint.parts import parameters_by_part
from maskery.checkpoint.state import LoadReport, Origin
from maskery.errors import InputError
from maskery.model.config import Shape
from maskery.model.heads import TokenHead
from maskery.model.transformer import Hidden, Network
from maskery.objectives.config import ASKED_OF_DECODER
from maskery.rows.config import RowsConfig
from maskery.text.tokenizer import Tokenizer

_STARTS = {"bart": {"decoder_start_token_id": 2}}
"""What a config.json means that does not say it."""


class Model(nn.Module):
    """A network with its heads and its tokenizer, as a folder holds them; a torch module.

    model = maskery.load("my-run")
    ids = torch.tensor([model.tokenizer.encode("The cat sat.")[0]])
    model(ids).last, model.logits(ids)                    # (B,T,D) states, (B,T,V) scores of tokens
    model.save("my-model")                                # a folder of Hugging Face, where a type expresses it
    """

    @checked
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
        for name, head in heads.items():
            if not isinstance(head, nn.Module):
                raise arguments.wrong(f"heads[{name!r}]", head, "a module of torch")
        self.network = network
        self.head_modules = nn.ModuleDict(dict(heads))
        self.tokenizer = tokenizer
        self.origin = origin
        self.report = report or LoadReport()
        self.note = note
        """Which of several models of a folder this is, and why; empty when there was no choice."""
        self.generator = generator
        """The network that filled gaps while this one was trained (ELECTRA); its embeddings are this one's."""
        self.rows: RowsConfig | None = None
        """The rows that it was trained with, where its folder is that of a run."""
        self.labels: tuple[str, ...] = _labels_of(origin)
        """The names of the classes of a task, in the order of its scores."""
        guard([network, *self.heads.values()])
        self.eval()

    @property
    def heads(self) -> Mapping[str, nn.Module]:
        """The heads by the names of what they answer, such as masked_token."""
        return dict(self.head_modules.items())

    @property
    def config(self) -> Shape:
        """The shape of the network: layers, width, heads, positions and the rest."""
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
        return choose(self.config, held_by(self.network, self.heads), pad)

    @checked
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
        decoder_mask: Tensor | None = None,
        decoder_positions: Tensor | None = None,
        visibility: str | None = None,
        tasks: Tensor | None = None,
    ) -> Hidden:
        """(B,T) ids -> states. `mask` is 1 or True at real slots; padding may stand on any side. `visibility` says who
        sees whom where that is not the model's own: a model of several modes (UniLM) reads in full otherwise. `tasks`
        are the numbers of tasks, one a slot (ERNIE 2.0). `decoder_ids` (B,S) are what a decoder has written so far:
        what it says of them is the result's `decoder`, and without them only the encoder reads."""
        inputs = prepare(self.network, ids, mask, segments, positions, visibility, tasks)
        inputs = with_decoder(self.network, inputs, decoder_ids, decoder_mask, decoder_positions)
        hidden: Hidden = self.network(inputs, layers=layers, attentions=attentions)
        return hidden

    @checked
    def logits(
        self,
        ids: Tensor,
        mask: Tensor | None = None,
        segments: Tensor | None = None,
        *,
        visibility: str | None = None,
        decoder_ids: Tensor | None = None,
        decoder_mask: Tensor | None = None,
    ) -> Tensor:
        """(B,T,V) scores of the token head; zeros at padding. Of a decoder (B,S,V), for each of the `decoder_ids` what
        comes behind it."""
        written = {"decoder_ids": decoder_ids, "decoder_mask": decoder_mask}
        hidden: Hidden = self(ids, mask, segments, visibility=visibility, **written)
        name = self._token_head(of_decoder=hidden.decoder is not None)
        stack = self.network if hidden.decoder is None else self.network.decoder
        assert stack is not None
        return scores_of(name, self.heads[name], stack, hidden.decoder or hidden)

    @checked
    def scores(self, head: str, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """What the named head says: (B,C) of one that reads rows as a whole, (B,T,C) or (B,T) of one that reads slots,
        zeros at padding. Each choice of a question is a row: `model.scores("choice", ...).view(-1, choices)`."""
        if head not in self.heads:
            held = ", ".join(self.heads) or "none"
            raise InputError(f"this model has no head {head!r}", repair=f"its heads: {held}")
        if self.network.decoder is None or not reads_decoder(head):
            return scores_of(head, self.heads[head], self.network, self(ids, mask, segments))
        read = shifted(ids, mask, self.decoder_start())
        hidden: Hidden = self(ids, mask, segments, decoder_ids=read, decoder_mask=mask)
        assert hidden.decoder is not None
        return scores_of(head, self.heads[head], self.network.decoder, hidden.decoder)

    def decoder_start(self) -> int:
        """The token that the decoder reads first: as its rows tell, or its config.json."""
        if self.rows is not None and self.tokenizer is not None:
            specials = self.tokenizer.specials
            return specials.sep if self.rows.decoder_start == "end" else specials.cls
        config = {} if self.origin is None else {**_STARTS.get(self.origin.model_type, {}), **self.origin.config}
        if not isinstance(config.get("decoder_start_token_id"), int):
            raise InputError(
                "nothing tells the token with which its decoder begins",
                repair="give decoder_ids yourself, or write decoder_start_token_id into config.json",
            )
        return int(config["decoder_start_token_id"])

    def token_head(self) -> TokenHead:
        """The head over the vocabulary that stands on what is read."""
        return cast(TokenHead, self.heads[self._token_head(of_decoder=False)])

    def _token_head(self, *, of_decoder: bool) -> str:
        tells = [name for name, head in self.heads.items() if isinstance(head, TokenHead)]
        apart = () if self.network.decoder is None else ASKED_OF_DECODER
        found = [name for name in tells if (name in apart) == of_decoder]
        if found:
            return found[0]
        if tells:
            other = "give decoder_ids, what it has written so far" if not of_decoder else "leave decoder_ids out"
            raise InputError(f"this model says tokens with its {'encoder' if of_decoder else 'decoder'}", repair=other)
        held = ", ".join(self.heads) or "none"
        raise InputError(
            f"this model has no head over the vocabulary (its heads: {held})",
            repair="model.generator has one"
            if self.generator is not None
            else "use a model pretrained with masked_token or next_token",
        )

    def parameters_by_part(self) -> dict[str, int]:
        """How many parameters each part has; `total` is that of all, shared ones counted once."""
        return parameters_by_part(self.network, self.heads, self.generator)

    @checked
    def answering(self, question: str) -> Model:
        """The network that has learnt a question: the generator, where only it has the head."""
        if question in self.heads or self.generator is None or question not in self.generator.heads:
            return self
        return self.generator

    @checked
    def save(self, path: str | os.PathLike[str], *, replace: bool = False) -> Saved:
        """Write the folder; what is worth telling stands in the result's `notes`."""
        arguments.path("path", path, "the path of the folder to write")
        second = self.generator
        return save_model(
            path,
            self.network,
            self.heads,
            self.tokenizer,
            origin=self.origin,
            generator=None if second is None else Beside(second.network, second.heads, second.origin),
            replace=replace,
            rows=self.rows,
            labels=() if self.labels == _labels_of(self.origin) else self.labels,
        )


def _labels_of(origin: Origin | None) -> tuple[str, ...]:
    """As config.json names them; nothing where it does not, or where numbers are missing."""
    names = None if origin is None else origin.config.get("id2label")
    if not isinstance(names, dict) or {str(key) for key in names} != {str(each) for each in range(len(names))}:
        return ()
    plain = {str(key): str(name) for key, name in names.items()}
    return tuple(plain[str(each)] for each in range(len(plain)))
