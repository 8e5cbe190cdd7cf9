"""The first GPT as Hugging Face names it: GPT-2's layers with the norms behind, and what it calls gelu is the formula
with tanh."""

from __future__ import annotations

from maskery.checkpoint.family import Family, HuggingFaceClass
from maskery.checkpoint.gpt2 import ALIASES, DEFAULTS, FIELDS, LAYERS, ONLY, classes_of
from maskery.checkpoint.rules import Rule, ignore, same

ENCODER: tuple[Rule, ...] = (
    same("embeddings.tokens", "tokens_embed.weight"),
    same("embeddings.positions.table", "positions_embed.weight"),
    ignore("position_ids"),
    *LAYERS,
)

FAMILY = Family(
    model_type="openai-gpt",
    prefix="transformer.",
    fields=FIELDS,
    defaults={**DEFAULTS, "vocab_size": 40478, "n_positions": 512, "afn": "gelu"},
    fixed={**ONLY, "norm": "post"},
    allowed={"tie_word_embeddings": (True, None), "pruned_heads": ({}, None)},
    parts=("tokens_embed.", "positions_embed.", "h.", "position_ids"),
    activation_key="afn",
    activations={"gelu": "gelu_tanh", "relu": "relu"},
    length_key="n_positions",
    repeated={"embd_pdrop": "resid_pdrop"},
    aliases=ALIASES,
    ends=True,
    classes=(
        *classes_of("OpenAIGPT", ENCODER),
        HuggingFaceClass("OpenAIGPTModel", ENCODER, bare=True),
    ),
)
