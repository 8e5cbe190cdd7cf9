"""BART as Hugging Face names it: two stacks that have their token vectors in common, each with its own positions (which
begin with 2) and its own norm behind the embeddings. The output is the token matrix again; what Hugging Face adds to
it, `final_logits_bias`, is a buffer of zeros. Other heads read what the decoder makes of the row itself.
"""

from __future__ import annotations

from maskery.checkpoint.bert import ANSWER_SPAN
from maskery.checkpoint.family import FIXED, Family, HuggingFaceClass
from maskery.checkpoint.rules import Rule, both, ignore, same, stacked, tied


def _attention(ours: str, theirs: str) -> tuple[Rule, ...]:
    inputs = stacked(f"{ours}.inputs", (f"{theirs}.q_proj", f"{theirs}.k_proj", f"{theirs}.v_proj"))
    return (*inputs, *both(f"{ours}.output", f"{theirs}.out_proj"))


def _stack(ours: str, theirs: str, number: str) -> tuple[Rule, ...]:
    """The embeddings and layers of either."""
    layer, there = f"{ours}layers.{number}", f"{theirs}.layers.{number}"
    return (
        tied("embeddings.tokens", f"{theirs}.embed_tokens.weight"),
        same(f"{ours}embeddings.positions.table", f"{theirs}.embed_positions.weight"),
        *both(f"{ours}embeddings.norm", f"{theirs}.layernorm_embedding"),
        ignore(f"{theirs}.version"),
        *_attention(f"{layer}.attention", f"{there}.self_attn"),
        *both(f"{layer}.attention_norm", f"{there}.self_attn_layer_norm"),
        *both(f"{layer}.up", f"{there}.fc1"),
        *both(f"{layer}.down", f"{there}.fc2"),
        *both(f"{layer}.feedforward_norm", f"{there}.final_layer_norm"),
    )


BOTH: tuple[Rule, ...] = (
    same("embeddings.tokens", "shared.weight"),
    *_stack("", "encoder", "{layer}"),
    *_stack("decoder.", "decoder", "{decoder}"),
    *_attention("decoder.layers.{decoder}.source", "decoder.layers.{decoder}.encoder_attn"),
    *both("decoder.layers.{decoder}.source_norm", "decoder.layers.{decoder}.encoder_attn_layer_norm"),
)
OUTPUT: tuple[Rule, ...] = (tied("embeddings.tokens", "lm_head.weight"), ignore("final_logits_bias"))
SEQUENCE_CLASS: tuple[Rule, ...] = (
    *both("heads.sequence_class_tanh.dense", "classification_head.dense"),
    *both("heads.sequence_class_tanh.answer", "classification_head.out_proj"),
)
_FREE = ("decoder", "embedding_scale")

FAMILY = Family(
    model_type="bart",
    prefix="model.",
    fields={
        "vocabulary": "vocab_size",
        "width": "d_model",
        "layers": "encoder_layers",
        "decoder": "decoder_layers",
        "heads": "encoder_attention_heads",
        "feedforward": "encoder_ffn_dim",
        "init_std": "init_std",
        "dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "embedding_scale": "scale_embedding",
    },
    defaults={
        "vocab_size": 50265,
        "d_model": 1024,
        "encoder_layers": 12,
        "decoder_layers": 12,
        "encoder_attention_heads": 16,
        "decoder_attention_heads": 16,
        "encoder_ffn_dim": 4096,
        "decoder_ffn_dim": 4096,
        "max_position_embeddings": 1024,
        "init_std": 0.02,
        "dropout": 0.1,
        "attention_dropout": 0.0,
        "activation_function": "gelu",
        "scale_embedding": False,
        "pad_token_id": 1,
    },
    equal={"decoder_attention_heads": "encoder_attention_heads", "decoder_ffn_dim": "encoder_ffn_dim"},
    fixed={**{name: only for name, only in FIXED.items() if name not in _FREE}, "token_head": "plain"}
    | {"segments": 0, "eps": 1e-5},
    allowed={
        "is_encoder_decoder": (True, None),
        "is_decoder": (False, None),
        "tie_word_embeddings": (True, None),
        "normalize_before": (False, None),
        "normalize_embedding": (True, None),
        "add_final_layer_norm": (False, None),
        "add_bias_logits": (False, None),
        "static_position_embeddings": (False, None),
        "extra_pos_embeddings": (2, None),
        "pruned_heads": ({}, None),
    },
    parts=("shared.", "encoder.", "decoder."),
    activation_key="activation_function",
    aliases={
        "hidden_size": "d_model",
        "num_hidden_layers": "encoder_layers",
        "num_attention_heads": "encoder_attention_heads",
    },
    offset=2,
    zeros=("final_logits_bias",),
    classes=(
        HuggingFaceClass("BartForConditionalGeneration", (*BOTH, *OUTPUT), tensorless=("next_token",)),
        HuggingFaceClass("BartForSequenceClassification", (*BOTH, *SEQUENCE_CLASS), classes="sequence_class_tanh"),
        HuggingFaceClass("BartForQuestionAnswering", (*BOTH, *ANSWER_SPAN), classes="answer_span"),
        HuggingFaceClass("BartModel", BOTH, bare=True),
    ),
)
