"""XLNet as Hugging Face names it: matrices parted by heads, every layer with its own vectors of places and segments.

Classifiers read the last token, which is <cls>, through a layer of its width with tanh. Where config.json has no memory
(`mem_len` null, as the published ones), neither has our shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maskery.checkpoint.bert import TOKEN_CLASS, answer_span
from maskery.checkpoint.family import FIXED, Family, HuggingFaceClass
from maskery.checkpoint.rules import Rule, both, same, tied
from maskery.errors import CheckpointError
from maskery.model.config import Shape

_ATTENTION, _FORWARD = "layer.{layer}.rel_attn", "layer.{layer}.ff"
_EVERY = "layer.{every}.rel_attn"

ENCODER: tuple[Rule, ...] = (
    same("embeddings.tokens", "word_embedding.weight"),
    Rule("embeddings.start", ("mask_emb",), "vector"),
    Rule("embeddings.positions.distances", (f"{_EVERY}.r",), "heads_stack"),
    Rule("embeddings.positions.content", (f"{_EVERY}.r_w_bias",), "stack"),
    Rule("embeddings.positions.place", (f"{_EVERY}.r_r_bias",), "stack"),
    Rule("embeddings.positions.segment", (f"{_EVERY}.r_s_bias",), "stack"),
    Rule("embeddings.positions.segments", (f"{_EVERY}.seg_embed",), "stack"),
    Rule("layers.{layer}.attention.inputs", (f"{_ATTENTION}.q", f"{_ATTENTION}.k", f"{_ATTENTION}.v"), "heads3"),
    Rule("layers.{layer}.attention.output.weight", (f"{_ATTENTION}.o",), "heads"),
    *both("layers.{layer}.attention_norm", f"{_ATTENTION}.layer_norm"),
    *both("layers.{layer}.up", f"{_FORWARD}.layer_1"),
    *both("layers.{layer}.down", f"{_FORWARD}.layer_2"),
    *both("layers.{layer}.feedforward_norm", f"{_FORWARD}.layer_norm"),
)
OUTPUT: tuple[Rule, ...] = (
    same("heads.permuted_token.bias", "lm_loss.bias"),
    tied("embeddings.tokens", "lm_loss.weight"),
)


def _summary(head: str) -> tuple[Rule, ...]:
    return *both(f"heads.{head}.dense", "sequence_summary.summary"), *both(f"heads.{head}.answer", "logits_proj")


_SUMMED_UP = {
    "summary_type": ("last", None),
    "summary_use_proj": (True, None),
    "summary_activation": ("tanh", None),
    "summary_proj_to_labels": (False, None),
}


@dataclass(frozen=True)
class XLNet(Family):
    """A family whose config.json has one dropout for states and attention, and a memory that may be null."""

    def shape_of(self, config: Mapping[str, Any]) -> Shape:
        told = dict(config)
        if "mem_len" in told and told["mem_len"] is None:
            told["mem_len"] = 0
        told.setdefault("dropatt", told.get("dropout", self.defaults["dropout"]))
        shape = super().shape_of(told)
        head = told.get("d_head")
        if head is not None and head != shape.width // shape.heads:
            raise CheckpointError(
                f"d_head = {head!r} with d_model = {shape.width} and n_head = {shape.heads} is not supported",
                repair=f"use a model with d_head = {shape.width // shape.heads}",
            )
        return shape

    def config_of(self, shape: Shape, pad: int | None) -> dict[str, Any]:
        config = super().config_of(shape, pad) | {"d_head": shape.width // shape.heads}
        return config | {key: self.allowed[key][0] for key in ("attn_type", "bi_data", "clamp_len", "same_length")}


FAMILY = XLNet(
    model_type="xlnet",
    prefix="transformer.",
    fields={
        "vocabulary": "vocab_size",
        "width": "d_model",
        "layers": "n_layer",
        "heads": "n_head",
        "feedforward": "d_inner",
        "memory": "mem_len",
        "eps": "layer_norm_eps",
        "init_std": "initializer_range",
        "dropout": "dropout",
        "attention_dropout": "dropatt",
    },
    defaults={
        "vocab_size": 32000,
        "d_model": 1024,
        "n_layer": 24,
        "n_head": 16,
        "d_inner": 4096,
        "mem_len": 512,
        "layer_norm_eps": 1e-12,
        "initializer_range": 0.02,
        "dropout": 0.1,
        "dropatt": 0.1,
        "seq_len": 512,
        "ff_activation": "gelu",
        "pad_token_id": 5,
    },
    fixed={name: value for name, value in FIXED.items() if name != "memory"}
    | {
        "positions": "xlnet",
        "visibility": "permuted",
        "streams": 2,
        "segments": 0,
        "embedding_norm": "no",
        "attention_bias": False,
        "token_head": "bias",
    },
    allowed={
        "attn_type": ("bi", None),
        "bi_data": (False, None),
        "clamp_len": (-1, 0, None),
        "same_length": (False, None),
        "untie_r": (True, None),
        "tie_word_embeddings": (True, None),
    },
    parts=("word_embedding.", "mask_emb", "layer."),
    activation_key="ff_activation",
    length_key="seq_len",
    aliases={
        "n_token": "vocab_size",
        "hidden_size": "d_model",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
    classes=(
        HuggingFaceClass("XLNetLMHeadModel", (*ENCODER, *OUTPUT)),
        HuggingFaceClass(
            "XLNetForSequenceClassification",
            (*ENCODER, *_summary("sequence_class_tanh")),
            classes="sequence_class_tanh",
            ambiguous=True,
            allowed=_SUMMED_UP,
        ),
        HuggingFaceClass(
            "XLNetForMultipleChoice", (*ENCODER, *_summary("choice_tanh")), ambiguous=True, allowed=_SUMMED_UP
        ),
        HuggingFaceClass("XLNetForTokenClassification", (*ENCODER, *TOKEN_CLASS), classes="token_class"),
        answer_span("XLNetForQuestionAnsweringSimple", ENCODER),
        HuggingFaceClass("XLNetModel", ENCODER, bare=True),
    ),
)
