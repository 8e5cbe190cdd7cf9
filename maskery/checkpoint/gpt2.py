"""GPT-2 as Hugging Face names it: matrices stand the other way round, query, key and value are one; the output is the
token matrix again, so the head that says the next token has no tensor of its own. Classifiers read the last token.
"""

from __future__ import annotations

from maskery.checkpoint.bert import ANSWER_SPAN, TOKEN_CLASS
from maskery.checkpoint.family import FIXED, Family, HuggingFaceClass
from maskery.checkpoint.rules import Rule, both, ignore, same, tied, turned, turned_stack

_LAYER = "h.{layer}"

LAYERS: tuple[Rule, ...] = (
    *turned_stack("layers.{layer}.attention.inputs", f"{_LAYER}.attn.c_attn"),
    *turned("layers.{layer}.attention.output", f"{_LAYER}.attn.c_proj"),
    *both("layers.{layer}.attention_norm", f"{_LAYER}.ln_1"),
    *turned("layers.{layer}.up", f"{_LAYER}.mlp.c_fc"),
    *turned("layers.{layer}.down", f"{_LAYER}.mlp.c_proj"),
    *both("layers.{layer}.feedforward_norm", f"{_LAYER}.ln_2"),
    ignore(f"{_LAYER}.attn.bias"),
    ignore(f"{_LAYER}.attn.masked_bias"),
)
"""The last two are buffers of older releases: who sees whom."""
ENCODER: tuple[Rule, ...] = (
    same("embeddings.tokens", "wte.weight"),
    same("embeddings.positions.table", "wpe.weight"),
    *LAYERS,
    *both("norm", "ln_f"),
)
OUTPUT: tuple[Rule, ...] = (tied("embeddings.tokens", "lm_head.weight"),)
LAST: tuple[Rule, ...] = (same("heads.sequence_class_last.dense.weight", "score.weight"),)


def classes_of(family: str, encoder: tuple[Rule, ...]) -> tuple[HuggingFaceClass, ...]:
    """The classes that both GPTs have."""
    return (
        HuggingFaceClass(f"{family}LMHeadModel", (*encoder, *OUTPUT), tensorless=("next_token",)),
        HuggingFaceClass(f"{family}ForSequenceClassification", (*encoder, *LAST), classes="sequence_class_last"),
    )


FIELDS = {
    "vocabulary": "vocab_size",
    "width": "n_embd",
    "layers": "n_layer",
    "heads": "n_head",
    "eps": "layer_norm_epsilon",
    "init_std": "initializer_range",
    "dropout": "resid_pdrop",
    "attention_dropout": "attn_pdrop",
}
DEFAULTS = {
    "vocab_size": 50257,
    "n_positions": 1024,
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_inner": None,
    "activation_function": "gelu_new",
    "resid_pdrop": 0.1,
    "attn_pdrop": 0.1,
    "layer_norm_epsilon": 1e-5,
    "initializer_range": 0.02,
    "pad_token_id": None,
}
ALIASES = {
    "hidden_size": "n_embd",
    "max_position_embeddings": "n_positions",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}
ONLY = {**FIXED, "visibility": "causal", "embedding_norm": "no", "token_head": "plain", "segments": 0}

FAMILY = Family(
    model_type="gpt2",
    prefix="transformer.",
    fields={**FIELDS, "feedforward": "n_inner"},
    defaults=DEFAULTS,
    fixed={**ONLY, "norm": "pre"},
    allowed={
        "scale_attn_weights": (True, None),
        "scale_attn_by_inverse_layer_idx": (False, None),
        "add_cross_attention": (False, None),
        "tie_word_embeddings": (True, None),
        "pruned_heads": ({}, None),
    },
    parts=("wte.", "wpe.", "h.", "ln_f."),
    activation_key="activation_function",
    length_key="n_positions",
    repeated={"embd_pdrop": "resid_pdrop"},
    aliases=ALIASES,
    ends=True,
    classes=(
        *classes_of("GPT2", ENCODER),
        HuggingFaceClass("GPT2ForTokenClassification", (*ENCODER, *TOKEN_CLASS), classes="token_class"),
        HuggingFaceClass("GPT2ForQuestionAnswering", (*ENCODER, *ANSWER_SPAN), classes="answer_span"),
        HuggingFaceClass("GPT2Model", ENCODER, bare=True),
    ),
)
