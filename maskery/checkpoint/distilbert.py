"""DistilBERT as Hugging Face names it: no segments, no pooler; classifiers read the first token through ReLU.

Where its config says `sinusoidal_pos_embds`, the waves are a table in the file like any other, and are read as one.
"""

from __future__ import annotations

from maskery.checkpoint.bert import answer_span, token_class
from maskery.checkpoint.family import FIXED, Family, HuggingFaceClass
from maskery.checkpoint.rules import Rule, both, ignore, same, stacked, tied

_LAYER = "transformer.layer.{layer}"

ENCODER: tuple[Rule, ...] = (
    same("embeddings.tokens", "embeddings.word_embeddings.weight"),
    same("embeddings.positions.table", "embeddings.position_embeddings.weight"),
    *both("embeddings.norm", "embeddings.LayerNorm"),
    ignore("embeddings.position_ids"),
    *stacked(
        "layers.{layer}.attention.inputs",
        (f"{_LAYER}.attention.q_lin", f"{_LAYER}.attention.k_lin", f"{_LAYER}.attention.v_lin"),
    ),
    *both("layers.{layer}.attention.output", f"{_LAYER}.attention.out_lin"),
    *both("layers.{layer}.attention_norm", f"{_LAYER}.sa_layer_norm"),
    *both("layers.{layer}.up", f"{_LAYER}.ffn.lin1"),
    *both("layers.{layer}.down", f"{_LAYER}.ffn.lin2"),
    *both("layers.{layer}.feedforward_norm", f"{_LAYER}.output_layer_norm"),
)
MASKED_TOKEN: tuple[Rule, ...] = (
    *both("heads.masked_token.dense", "vocab_transform"),
    *both("heads.masked_token.norm", "vocab_layer_norm"),
    same("heads.masked_token.bias", "vocab_projector.bias"),
    tied("embeddings.tokens", "vocab_projector.weight"),
)


def _first(head: str) -> tuple[Rule, ...]:
    return (*both(f"heads.{head}.dense", "pre_classifier"), *both(f"heads.{head}.answer", "classifier"))


FAMILY = Family(
    model_type="distilbert",
    prefix="distilbert.",
    fields={
        "vocabulary": "vocab_size",
        "width": "dim",
        "layers": "n_layers",
        "heads": "n_heads",
        "feedforward": "hidden_dim",
        "init_std": "initializer_range",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
    },
    defaults={
        "vocab_size": 30522,
        "dim": 768,
        "n_layers": 6,
        "n_heads": 12,
        "hidden_dim": 3072,
        "initializer_range": 0.02,
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "max_position_embeddings": 512,
        "activation": "gelu",
        "pad_token_id": 0,
    },
    fixed={**FIXED, "segments": 0, "eps": 1e-12},
    allowed={"pruned_heads": ({}, None)},
    parts=("embeddings.", "transformer."),
    activation_key="activation",
    aliases={"hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"},
    classes=(
        HuggingFaceClass("DistilBertForMaskedLM", (*ENCODER, *MASKED_TOKEN)),
        HuggingFaceClass(
            "DistilBertForSequenceClassification",
            (*ENCODER, *_first("sequence_class_relu")),
            classes="sequence_class_relu",
            ambiguous=True,
        ),
        token_class("DistilBertForTokenClassification", ENCODER),
        HuggingFaceClass("DistilBertForMultipleChoice", (*ENCODER, *_first("choice_relu")), ambiguous=True),
        answer_span("DistilBertForQuestionAnswering", ENCODER),
        HuggingFaceClass("DistilBertModel", ENCODER, bare=True),
    ),
)
