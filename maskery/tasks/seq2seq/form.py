"""How a source and its target stand before a model, and what has to change so that it can write at all.

bart, mass, transformer     the encoder reads the source, the decoder writes
gpt, gpt2, transformer-xl   [CLS] source [SEP] target [SEP] in one row that is read from the left
unilm                       the same; all see the source, the target is read from the left
bert and its like           become such a model: who sees whom is changed, and the head that fills masks writes
"""

from __future__ import annotations

from collections.abc import Callable

from maskery.checkpoint.model import Model
from maskery.errors import InputError
from maskery.model.transformer import Network
from maskery.rows.config import MODE_SEGMENTS, SOURCES, RowsConfig
from maskery.tasks.framing.frame import Frame, Mark
from maskery.writing.forms import Form, form_of, tokenizer_of

Say = Callable[[str], None]
_FROM_THE_LEFT = ("causal", "packed_causal")


def writing_form(model: Model, say: Say) -> Form:
    """How the model writes for a source. What it has to become for that is done, and told; once is enough."""
    shape, heads = model.config, model.heads
    if not shape.decoder and shape.visibility in _FROM_THE_LEFT and "next_token" in heads:
        _take_sources(model, say)
    elif not shape.decoder and shape.visibility == "full" and shape.segments != MODE_SEGMENTS:
        _see_sources(model, say)
    elif shape.streams == 2 or not heads.keys() & {"next_token", "masked_token"}:
        raise InputError(
            f"a model of family {model.family} (heads: {', '.join(heads) or 'none'}) does not write for a source",
            where="task seq2seq",
            repair="take a model with a decoder (bart), a gpt2, or one that fills masks (bert, unilm)",
        )
    return form_of(model, "source")


def _take_sources(model: Model, say: Say) -> None:
    if model.rows is not None and model.rows.kind == SOURCES:
        return
    model.rows = RowsConfig(kind=SOURCES)
    names = tokenizer_of(model).names
    say(f"a row is {names['cls']} source {names['sep']} target {names['sep']}, read from the left")


def _see_sources(model: Model, say: Say) -> None:
    """A model that reads both ways: the target is read from the left, and the head that fills masks says its tokens."""
    if "masked_token" not in model.heads or tokenizer_of(model).specials.mask is None:
        raise InputError(
            f"this model has no head that says tokens (its heads: {', '.join(model.heads) or 'none'})",
            where="task seq2seq",
            repair="take its masked language model (a BertForMaskedLM), a gpt2, or a model with a decoder (bart)",
        )
    old = model.network
    model.network = Network(model.config.model_copy(update={"visibility": "prefix"}), pooler=old.pooler is not None)
    model.network.load_state_dict(old.state_dict())
    model.eval()
    say("all see the source, and the target is read from the left, as in UniLM: until now the model read both ways")


def source_frame(model: Model, form: Form) -> Frame:
    """The source by itself; where it has several fields, the mark that ends it parts them."""
    front, back = (tuple(Mark(each, 0) for each in marks) for marks in (form.front, form.back))
    parting = (Mark(tokenizer_of(model).specials.sep, 0),)
    return Frame(
        name="source", front=front, between=parting, back=back, back_alone=back, second=0, reads="first"
    )  # fmt: skip
