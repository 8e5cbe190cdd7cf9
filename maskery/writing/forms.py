"""How a prompt stands in a row, and where the next token is asked for: one `Form` for each kind of model.

| model | row | the next token is asked |
|---|---|---|
| gpt, gpt2, transformer-xl | prompt, text | of the last token |
| the same, trained on a source and its target | [CLS] prompt [SEP] text | of the last token |
| unilm as a prefix, shifted | [CLS] prompt [SEP] text | of the last token; the prompt is a source that all see |
| unilm as a prefix, masked | [CLS] prompt [SEP] text [MASK] | of the [MASK], in whose place it then comes |
| unilm from the left | [CLS] prompt text [MASK] | of the [MASK] |
| xlnet | prompt, text, one slot | of that slot's second stream, which knows the place alone |
| bart, mass, transformer | the prompt is read by the encoder, the text by the decoder | of the decoder's last token |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from maskery.checkpoint.model import Model
from maskery.errors import InputError
from maskery.model.config import Mode, Shape
from maskery.rows.config import MODE_SEGMENTS, SOURCES, UNFRAMED
from maskery.rows.modes import FIRST_SEGMENT
from maskery.text.tokenizer import Specials, Tokenizer

ROLES = ("source", "beginning")
"""What a prompt is to the text: its source, or its beginning."""


@dataclass(frozen=True, kw_only=True)
class Form:
    head: str
    """The head that is asked."""
    role: str
    """What the prompt is: one of `ROLES`."""
    visibility: str = "causal"
    front: tuple[int, ...] = ()
    """Tokens before the prompt."""
    back: tuple[int, ...] = ()
    """Tokens between a source and the text."""
    start: tuple[int, ...] = ()
    """Tokens with which a decoder begins; empty where there is none."""
    segments: tuple[int, int] = (0, 0)
    """Of the prompt and of the text."""
    probe: int | None = None
    """The token that stands where the next one will stand; None: the last token is asked."""
    second: bool = False
    """Whether the second stream is asked."""
    reach: int = 0
    """How many tokens before it a token sees; 0 = all."""
    limit: int | None = None
    """The most slots of a row; None: any number."""

    def framed(self, prompt: Sequence[int]) -> list[int]:
        """The row before anything is written."""
        return [*self.front, *prompt, *self.back]

    def room(self, prompt: Sequence[int]) -> int | None:
        """How many tokens can be written; None: any number. The last one need not be read."""
        if self.limit is None:
            return None
        taken = len(self.start) if self.start else len(self.framed(prompt))
        return self.limit - taken + (self.probe is None)


def form_of(model: Model, role: str | None = None, *, memory: int | None = None) -> Form:
    """How a model writes; a refusal with what it can do instead, where it cannot. `role`: what the prompt is, where
    the model leaves a choice; `memory`: how far back it sees, where it has a memory."""
    form = _form(model, role)
    if form is None:
        raise InputError(_why_not(model), repair=_instead(model))
    if role is not None and role != form.role:
        raise InputError(f"for this model a prompt is the {form.role} of the text", repair=f"leave {role!r} out")
    if memory is None:
        return form
    if not model.config.memory:
        raise InputError("this model has no memory", repair="leave the memory out, or use a transformer-xl")
    return replace(form, reach=memory)


def writes(model: Model) -> bool:
    """Whether the model has learnt to write from the left, in whatever form."""
    return _form(model, None) is not None


def _form(model: Model, role: str | None) -> Form | None:
    shape, heads = model.config, model.heads
    specials = tokenizer_of(model).specials
    limit = model.network.embeddings.positions.limit
    rows = None if limit is None else limit - shape.position_offset
    if shape.decoder:
        return _of_decoder(model, rows) if "next_token" in heads else None
    if shape.streams == 2 and "permuted_token" in heads:
        return Form(
            head="permuted_token",
            role="beginning",
            visibility="permuted",
            probe=specials.sep,
            second=True,
            limit=rows,
        )
    if "next_token" in heads and shape.visibility in ("causal", "packed_causal"):
        if model.rows is not None and model.rows.kind == SOURCES:
            return replace(_source("next_token", shape, specials, rows, None), visibility="causal", reach=shape.memory)
        # Which of the two makes no difference to a row that is one text.
        framed = model.rows is not None and model.rows.kind not in UNFRAMED
        front = (specials.cls,) if framed else ()
        return Form(head="next_token", role="beginning", front=front, reach=shape.memory, limit=rows)
    if "next_token" in heads and shape.visibility == "prefix":
        return _source("next_token", shape, specials, rows, None)
    modes = shape.visibility == "prefix" or (shape.visibility == "full" and shape.segments == MODE_SEGMENTS)
    if "masked_token" in heads and modes and specials.mask is not None:
        if role == "beginning" and shape.segments == MODE_SEGMENTS:
            mine = FIRST_SEGMENT[Mode.CAUSAL]
            return Form(
                head="masked_token",
                role="beginning",
                front=(specials.cls,),
                segments=(mine, mine),
                probe=specials.mask,
                limit=rows,
            )
        return _source("masked_token", shape, specials, rows, specials.mask)
    return None


def _source(head: str, shape: Shape, specials: Specials, limit: int | None, probe: int | None) -> Form:
    first = FIRST_SEGMENT[Mode.PREFIX] if shape.segments == MODE_SEGMENTS else 0
    return Form(
        head=head,
        role="source",
        visibility="prefix",
        front=(specials.cls,),
        back=(specials.sep,),
        segments=(first, first + 1 if shape.segments > 1 else first),
        probe=probe,
        limit=limit,
    )


def _of_decoder(model: Model, limit: int | None) -> Form:
    """The decoder begins with [CLS], or with [SEP] and then [CLS], which such models write before anything else."""
    specials = tokenizer_of(model).specials
    start = model.decoder_start()
    return Form(
        head="next_token",
        role="source",
        front=(specials.cls,),
        back=(specials.sep,),
        start=(start,) if start == specials.cls else (start, specials.cls),
        limit=limit,
    )


def tokenizer_of(model: Model) -> Tokenizer:
    if model.tokenizer is None:
        raise InputError(
            "the folder holds no tokenizer", repair="put its tokenizer.json or vocab.txt beside the weights"
        )
    return model.tokenizer


def target_tokenizer_of(model: Model) -> Tokenizer:
    """What the model writes with: its targets may have a vocabulary of their own."""
    return tokenizer_of(model).of_targets


def _why_not(model: Model) -> str:
    held = ", ".join(model.heads) or "none"
    if "masked_token" in model.answering("masked_token").heads:
        return "this model fills masks and has not learnt to write from the left"
    return f"this model cannot write: nothing in it tells the next token (its heads: {held})"


def _instead(model: Model) -> str:
    if "masked_token" in model.answering("masked_token").heads:
        return "--how gibbs --length 20 writes with it, by filling masks again and again"
    return "use a model pretrained with next_token, permuted_token or masked_token"
