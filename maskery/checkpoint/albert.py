"""ALBERT as Hugging Face names it: narrow embeddings, a projection, and one set of weights for a group of layers."""

from __future__ import annotations

from maskery.checkpoint.bert import DEFAULTS, EMBEDDINGS, FIELDS, answer_span, choice, sequence_class, token_class
from maskery.checkpoint.family import FIXED, Family, HuggingFaceClass
from maskery.checkpoint.rules import Rule, both, identity, same, stacked, tied

_LAYER = "encoder.albert_layer_groups.{group}.albert_layers.0"

ENCODER: tuple[Rule, ...] = (
    *EMBEDDINGS,
    *both("embeddings.projection", "encoder.embedding_hidden_mapping_in"),
    *identity("encoder.embedding_hidden_mapping_in"),
    *stacked(
        "layers.{layer}.attention.inputs",
        (f"{_LAYER}.attention.query", f"{_LAYER}.attention.key", f"{_LAYER}.attention.value"),
    ),
    *both("layers.{layer}.attention.output", f"{_LAYER}.attention.dense"),
    *both("layers.{layer}.attention_norm", f"{_LAYER}.attention.LayerNorm"),
    *both("layers.{layer}.up", f"{_LAYER}.ffn"),
    *both("layers.{layer}.down", f"{_LAYER}.ffn_output"),
    *both("layers.{layer}.feedforward_norm", f"{_LAYER}.full_layer_layer_norm"),
)
POOLED = (*ENCODER, *both("pooler", "pooler"))
MASKED_TOKEN: tuple[Rule, ...] = (
    *both("heads.masked_token.dense", "predictions.dense"),
    *both("heads.masked_token.norm", "predictions.LayerNorm"),
    same("heads.masked_token.bias", "predictions.bias"),
    tied("heads.masked_token.bias", "predictions.decoder.bias"),
    tied("embeddings.tokens", "predictions.decoder.weight"),
)
SENTENCE_ORDER = both("heads.sentence_order.dense", "sop_classifier.classifier")

FAMILY = Family(
    model_type="albert",
    prefix="albert.",
    fields={**FIELDS, "embedding": "embedding_size", "groups": "num_hidden_groups"},
    defaults={
        **DEFAULTS,
        "vocab_size": 30000,
        "embedding_size": 128,
        "hidden_size": 4096,
        "num_hidden_groups": 1,
        "num_attention_heads": 64,
        "intermediate_size": 16384,
        "hidden_act": "gelu_new",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    },
    fixed={name: value for name, value in FIXED.items() if name != "groups"} | {"share": "all"},
    allowed={
        "inner_group_num": (1, None),
        "pruned_heads": ({}, None),
        "position_embedding_type": ("absolute", None),
    },
    classes=(
        HuggingFaceClass("AlbertForPreTraining", (*POOLED, *MASKED_TOKEN, *SENTENCE_ORDER), classes="sentence_order"),
        HuggingFaceClass("AlbertForMaskedLM", (*ENCODER, *MASKED_TOKEN)),
        sequence_class("AlbertForSequenceClassification", POOLED),
        token_class("AlbertForTokenClassification", ENCODER),
        choice("AlbertForMultipleChoice", POOLED),
        answer_span("AlbertForQuestionAnswering", ENCODER),
        HuggingFaceClass("AlbertModel", POOLED, bare=True),
    ),
)
