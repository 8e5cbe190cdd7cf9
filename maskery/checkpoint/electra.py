"""ELECTRA as Hugging Face names it: BERT's layers, a projection where the embeddings are narrower, no pooler.

The discriminator is `ElectraForPreTraining`, the generator `ElectraForMaskedLM`. Its classifiers read the first token
themselves: a layer of the full width, GELU, then the classes.
"""

from __future__ import annotations

from maskery.checkpoint.bert import DEFAULTS, FIELDS, answer_span, token_class
from maskery.checkpoint.bert import ENCODER as BERT_ENCODER
from maskery.checkpoint.family import Family, HuggingFaceClass
from maskery.checkpoint.rules import Rule, both, same, tied

ENCODER: tuple[Rule, ...] = (*BERT_ENCODER, *both("embeddings.projection", "embeddings_project"))
REPLACED_TOKEN: tuple[Rule, ...] = (
    *both("heads.replaced_token.dense", "discriminator_predictions.dense"),
    *both("heads.replaced_token.answer", "discriminator_predictions.dense_prediction"),
)
MASKED_TOKEN: tuple[Rule, ...] = (
    *both("heads.masked_token.dense", "generator_predictions.dense"),
    *both("heads.masked_token.norm", "generator_predictions.LayerNorm"),
    same("heads.masked_token.bias", "generator_lm_head.bias"),
    tied("embeddings.tokens", "generator_lm_head.weight"),
)
SEQUENCE_CLASS: tuple[Rule, ...] = (
    *both("heads.sequence_class_gelu.dense", "classifier.dense"),
    *both("heads.sequence_class_gelu.answer", "classifier.out_proj"),
)
CHOICE: tuple[Rule, ...] = (
    *both("heads.choice_gelu.dense", "sequence_summary.summary"),
    *both("heads.choice_gelu.answer", "classifier"),
)

FAMILY = Family(
    model_type="electra",
    prefix="electra.",
    fields={**FIELDS, "embedding": "embedding_size"},
    defaults={
        **DEFAULTS,
        "embedding_size": 128,
        "hidden_size": 256,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
    },
    parts=("embeddings.", "embeddings_project.", "encoder."),
    masked_activation="gelu",
    classes=(
        HuggingFaceClass("ElectraForPreTraining", (*ENCODER, *REPLACED_TOKEN)),
        HuggingFaceClass("ElectraForMaskedLM", (*ENCODER, *MASKED_TOKEN)),
        HuggingFaceClass(
            "ElectraForSequenceClassification",
            (*ENCODER, *SEQUENCE_CLASS),
            classes="sequence_class_gelu",
            ambiguous=True,
        ),
        token_class("ElectraForTokenClassification", ENCODER),
        HuggingFaceClass(
            "ElectraForMultipleChoice",
            (*ENCODER, *CHOICE),
            ambiguous=True,
            allowed={
                "summary_type": ("first",),
                "summary_use_proj": (True,),
                "summary_activation": ("gelu",),
                "summary_proj_to_labels": (False, None),
            },
        ),
        answer_span("ElectraForQuestionAnswering", ENCODER),
        HuggingFaceClass("ElectraModel", ENCODER, bare=True),
    ),
)
