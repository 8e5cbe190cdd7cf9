"""RoBERTa as Hugging Face names it: BERT's tensors, positions counted from the padding id + 1, its own heads.

Its classifier's first layer with tanh on the first token is what we call the pooler.
"""

from __future__ import annotations

from maskery.checkpoint.bert import (
    DEFAULTS,
    ENCODER,
    FIELDS,
    POOLER,
    answer_span,
    choice,
    sequence_class,
    token_class,
)
from maskery.checkpoint.family import Family, HuggingFaceClass
from maskery.checkpoint.rules import Rule, both, same, tied

MASKED_TOKEN: tuple[Rule, ...] = (
    *both("heads.masked_token.dense", "lm_head.dense"),
    *both("heads.masked_token.norm", "lm_head.layer_norm"),
    same("heads.masked_token.bias", "lm_head.bias"),
    tied("heads.masked_token.bias", "lm_head.decoder.bias"),
    tied("embeddings.tokens", "lm_head.decoder.weight"),
)
SEQUENCE_CLASS = (
    *both("pooler", "classifier.dense"),
    *both("heads.sequence_class.dense", "classifier.out_proj"),
)

FAMILY = Family(
    model_type="roberta",
    prefix="roberta.",
    fields=FIELDS,
    defaults={**DEFAULTS, "vocab_size": 50265, "pad_token_id": 1},
    offset_from_pad=True,
    masked_activation="gelu",
    classes=(
        HuggingFaceClass("RobertaForMaskedLM", (*ENCODER, *MASKED_TOKEN)),
        sequence_class("RobertaForSequenceClassification", ENCODER, SEQUENCE_CLASS),
        token_class("RobertaForTokenClassification", ENCODER),
        choice("RobertaForMultipleChoice", (*ENCODER, *POOLER)),
        answer_span("RobertaForQuestionAnswering", ENCODER),
        HuggingFaceClass("RobertaModel", (*ENCODER, *POOLER), bare=True),
    ),
)
