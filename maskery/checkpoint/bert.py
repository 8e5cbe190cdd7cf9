"""BERT as Hugging Face names it."""

from __future__ import annotations

from maskery.checkpoint.family import Family, HuggingFaceClass
from maskery.checkpoint.rules import Rule, both, ignore, same, stacked, tied

_LAYER = "encoder.layer.{layer}"

EMBEDDINGS: tuple[Rule, ...] = (
    same("embeddings.tokens", "embeddings.word_embeddings.weight"),
    same("embeddings.positions.table", "embeddings.position_embeddings.weight"),
    same("embeddings.segments", "embeddings.token_type_embeddings.weight"),
    *both("embeddings.norm", "embeddings.LayerNorm"),
    ignore("embeddings.position_ids"),
    ignore("embeddings.token_type_ids"),
)
ENCODER: tuple[Rule, ...] = (
    *EMBEDDINGS,
    *stacked(
        "layers.{layer}.attention.inputs",
        (f"{_LAYER}.attention.self.query", f"{_LAYER}.attention.self.key", f"{_LAYER}.attention.self.value"),
    ),
    *both("layers.{layer}.attention.output", f"{_LAYER}.attention.output.dense"),
    *both("layers.{layer}.attention_norm", f"{_LAYER}.attention.output.LayerNorm"),
    *both("layers.{layer}.up", f"{_LAYER}.intermediate.dense"),
    *both("layers.{layer}.down", f"{_LAYER}.output.dense"),
    *both("layers.{layer}.feedforward_norm", f"{_LAYER}.output.LayerNorm"),
)
POOLER = both("pooler", "pooler.dense")
MASKED_TOKEN: tuple[Rule, ...] = (
    *both("heads.masked_token.dense", "cls.predictions.transform.dense"),
    *both("heads.masked_token.norm", "cls.predictions.transform.LayerNorm"),
    same("heads.masked_token.bias", "cls.predictions.bias"),
    tied("heads.masked_token.bias", "cls.predictions.decoder.bias"),
    tied("embeddings.tokens", "cls.predictions.decoder.weight"),
)
NEXT_SENTENCE = both("heads.next_sentence.dense", "cls.seq_relationship")
SEQUENCE_CLASS = both("heads.sequence_class.dense", "classifier")
TOKEN_CLASS = both("heads.token_class.dense", "classifier")
CHOICE = both("heads.choice.dense", "classifier")
ANSWER_SPAN = both("heads.answer_span.dense", "qa_outputs")


def token_class(name: str, encoder: tuple[Rule, ...]) -> HuggingFaceClass:
    return HuggingFaceClass(name, (*encoder, *TOKEN_CLASS), classes="token_class", ambiguous=True)


def answer_span(name: str, encoder: tuple[Rule, ...]) -> HuggingFaceClass:
    return HuggingFaceClass(name, (*encoder, *ANSWER_SPAN), classes="answer_span")


def sequence_class(name: str, pooled: tuple[Rule, ...], head: tuple[Rule, ...] = SEQUENCE_CLASS) -> HuggingFaceClass:
    """`pooled` = encoder and pooler."""
    return HuggingFaceClass(name, (*pooled, *head), classes="sequence_class", ambiguous=True)


def choice(name: str, pooled: tuple[Rule, ...]) -> HuggingFaceClass:
    return HuggingFaceClass(name, (*pooled, *CHOICE), ambiguous=True)


def classes_of(family: str, encoder: tuple[Rule, ...]) -> tuple[HuggingFaceClass, ...]:
    """The classes of BERT, which several families have word for word."""
    pooled = (*encoder, *POOLER)
    return (
        HuggingFaceClass(f"{family}ForPreTraining", (*pooled, *MASKED_TOKEN, *NEXT_SENTENCE)),
        HuggingFaceClass(f"{family}ForMaskedLM", (*encoder, *MASKED_TOKEN)),
        HuggingFaceClass(f"{family}ForNextSentencePrediction", (*pooled, *NEXT_SENTENCE)),
        sequence_class(f"{family}ForSequenceClassification", pooled),
        token_class(f"{family}ForTokenClassification", encoder),
        choice(f"{family}ForMultipleChoice", pooled),
        answer_span(f"{family}ForQuestionAnswering", encoder),
        HuggingFaceClass(f"{family}Model", pooled, bare=True),
    )


FIELDS = {
    "vocabulary": "vocab_size",
    "width": "hidden_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "feedforward": "intermediate_size",
    "segments": "type_vocab_size",
    "eps": "layer_norm_eps",
    "init_std": "initializer_range",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
}
DEFAULTS = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "initializer_range": 0.02,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "hidden_act": "gelu",
    "pad_token_id": 0,
}
"""What their config class takes for a key that config.json leaves out."""

FAMILY = Family(
    model_type="bert", prefix="bert.", fields=FIELDS, defaults=DEFAULTS, classes=classes_of("Bert", ENCODER)
)
