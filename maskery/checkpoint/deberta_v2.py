"""DeBERTa of versions 2 and 3 as Hugging Face names it: BERT's layers with disentangled attention and no positions at
the input.

Masked tokens are told by one of two heads that compute the same: `cls`, or `lm_predictions` where config.json says
`legacy` = false, as the authors' own files name it. Classifiers read the first token through a layer of their own,
whose tensors are called pooler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from maskery.checkpoint.bert import DEFAULTS, FIELDS, MASKED_TOKEN, answer_span, token_class
from maskery.checkpoint.bert import ENCODER as BERT_ENCODER
from maskery.checkpoint.family import FIXED, Family, HuggingFaceClass
from maskery.checkpoint.rules import Rule, both, ignore, same, stacked
from maskery.errors import CheckpointError
from maskery.model.config import Shape

_SELF = "encoder.layer.{layer}.attention.self"
_OF_BERT = ("embeddings.positions.table", "layers.{layer}.attention.inputs", "layers.{layer}.attention.inputs_bias")

ENCODER: tuple[Rule, ...] = (
    *(rule for rule in BERT_ENCODER if rule.ours not in _OF_BERT),
    *stacked("layers.{layer}.attention.inputs", (f"{_SELF}.query_proj", f"{_SELF}.key_proj", f"{_SELF}.value_proj")),
    same("embeddings.positions.distances", "encoder.rel_embeddings.weight"),
    *both("embeddings.positions.norm", "encoder.LayerNorm"),
    ignore("embeddings.position_embeddings.weight"),
)
NEW_MASKED_TOKEN: tuple[Rule, ...] = (
    *both("heads.masked_token.dense", "lm_predictions.lm_head.dense"),
    *both("heads.masked_token.norm", "lm_predictions.lm_head.LayerNorm"),
    same("heads.masked_token.bias", "lm_predictions.lm_head.bias"),
)
SEQUENCE_CLASS: tuple[Rule, ...] = (
    *both("heads.sequence_class_gelu.dense", "pooler.dense"),
    *both("heads.sequence_class_gelu.answer", "classifier"),
)
CHOICE: tuple[Rule, ...] = (
    *both("heads.choice_gelu.dense", "pooler.dense"),
    *both("heads.choice_gelu.answer", "classifier"),
)
_ATTENTION = {"c2p", "p2c"}
_POOLED = {"pooler_hidden_act": ("gelu", None)}


@dataclass(frozen=True)
class DebertaV2(Family):
    """A family of which one of many kinds is supported: that of all published models of version 3. Those of
    version 2 have a convolution as well (`conv_kernel_size`), which is refused."""

    def named(self, config: Mapping[str, Any]) -> HuggingFaceClass | None:
        """The class for masked tokens is two, by `legacy`."""
        found = super().named(config)
        if found is not None and "legacy" in found.says:
            told = bool(config.get("legacy", True))
            return next(each for each in self.classes if each.name == found.name and each.says["legacy"] == told)
        return found

    def shape_of(self, config: Mapping[str, Any]) -> Shape:
        told = {key: value for key, value in config.items() if value is not None}
        kinds = told.get("pos_att_type", [])
        kinds = kinds.split("|") if isinstance(kinds, str) else kinds
        if not isinstance(kinds, list) or {str(each).strip().lower() for each in kinds} != _ATTENTION:
            raise CheckpointError(
                f"pos_att_type = {told.get('pos_att_type')!r} is not supported",
                repair="use a model with pos_att_type = ['p2c', 'c2p'], as the published ones have",
            )
        farthest = told.get("max_relative_positions", -1)
        if isinstance(farthest, int) and farthest < 1:
            told["max_relative_positions"] = told.get(
                "max_position_embeddings", self.defaults["max_position_embeddings"]
            )
        shape = super().shape_of(told)
        for key, usual in {"embedding_size": shape.width, "attention_head_size": shape.width // shape.heads}.items():
            if told.get(key, usual) != usual:
                raise CheckpointError(
                    f"{key} = {told[key]!r} is not supported here", repair=f"use a model with {key} = {usual}"
                )
        return shape

    def config_of(self, shape: Shape, pad: int | None) -> dict[str, Any]:
        config = super().config_of(shape, pad)
        config |= {key: self.allowed[key][0] for key in _TOLD} | {"pos_att_type": ["p2c", "c2p"]}
        if shape.clip == shape.max_length:
            config["max_relative_positions"] = -1
        return config | {"pooler_hidden_size": shape.width, "pooler_hidden_act": "gelu", "pooler_dropout": 0.0}

    def objections(self, shape: Shape, names: Iterable[str], pad: int | None) -> list[str]:
        # It can do without segments, which BERT cannot.
        return [each for each in super().objections(shape, names, pad) if each != "segments = 0"]


_TOLD = ("relative_attention", "position_biased_input", "share_att_key", "norm_rel_ebd")
FAMILY = DebertaV2(
    model_type="deberta-v2",
    prefix="deberta.",
    fields={**FIELDS, "buckets": "position_buckets", "clip": "max_relative_positions"},
    defaults={
        **DEFAULTS,
        "vocab_size": 128100,
        "hidden_size": 1536,
        "num_hidden_layers": 24,
        "num_attention_heads": 24,
        "intermediate_size": 6144,
        "type_vocab_size": 0,
        "layer_norm_eps": 1e-7,
        "position_buckets": -1,
        "max_relative_positions": -1,
        "relative_attention": False,
        "position_biased_input": True,
        "share_att_key": False,
        "norm_rel_ebd": "none",
    },
    fixed={name: value for name, value in FIXED.items() if name not in ("clip", "buckets")}
    | {"positions": "disentangled"},
    allowed={
        "relative_attention": (True,),
        "position_biased_input": (False,),
        "share_att_key": (True,),
        "norm_rel_ebd": ("layer_norm",),
        "conv_kernel_size": (0, None),
    },
    parts=("embeddings.", "encoder."),
    classes=(
        HuggingFaceClass("DebertaV2ForMaskedLM", (*ENCODER, *MASKED_TOKEN), says={"legacy": True}),
        HuggingFaceClass("DebertaV2ForMaskedLM", (*ENCODER, *NEW_MASKED_TOKEN), says={"legacy": False}),
        HuggingFaceClass(
            "DebertaV2ForSequenceClassification",
            (*ENCODER, *SEQUENCE_CLASS),
            classes="sequence_class_gelu",
            ambiguous=True,
            allowed=_POOLED,
        ),
        token_class("DebertaV2ForTokenClassification", ENCODER),
        answer_span("DebertaV2ForQuestionAnswering", ENCODER),
        HuggingFaceClass("DebertaV2ForMultipleChoice", (*ENCODER, *CHOICE), ambiguous=True, allowed=_POOLED),
        HuggingFaceClass("DebertaV2Model", ENCODER, bare=True),
    ),
)
