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


def classes_of(family: str, encoder: tuple[Rule, ...]) -> tuple[HuggingFaceClass, ...]:
    """The classes of RoBERTa, which several families have word for word."""
    return (
        HuggingFaceClass(f"{family}ForMaskedLM", (*encoder, *MASKED_TOKEN)),
        sequence_class(f"{family}ForSequenceClassification", encoder, SEQUENCE_CLASS),
        token_class(f"{family}ForTokenClassification", encoder),
        choice(f"{family}ForMultipleChoice", (*encoder, *POOLER)),
        answer_span(f"{family}ForQuestionAnswering", encoder),
        HuggingFaceClass(f"{family}Model", (*encoder, *POOLER), bare=True),
    )


def family_of(model_type: str, name: str, vocabulary: int) -> Family:
    """RoBERTa's network under the name of one of its kin, all of which call it `roberta` inside."""
    return Family(
        model_type=model_type,
        prefix="roberta.",
        fields=FIELDS,
        defaults={**DEFAULTS, "vocab_size": vocabulary, "pad_token_id": 1},
        offset_from_pad=True,
        masked_activation="gelu",
        classes=classes_of(name, ENCODER),
    )


FAMILY = family_of("roberta", "Roberta", 50265)
