"""Tiny random Hugging Face models, the oracle of the parity tests, and batches to compare on."""

from __future__ import annotations

import os
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers
from safetensors.torch import load_file

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it still uses torch.jit.script
    from transformers.models.deberta_v2 import modeling_deberta_v2  # noqa: F401

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

VOCABULARY = 60
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": 40,
}
DISTILBERT = {
    "vocab_size": VOCABULARY,
    "dim": 24,
    "n_layers": 3,
    "n_heads": 4,
    "hidden_dim": 40,
    "max_position_embeddings": 40,
}
GPT = {
    "vocab_size": VOCABULARY,
    "n_embd": 24,
    "n_layer": 3,
    "n_head": 4,
    "n_positions": 40,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 1,
}
DEFAULTS = {
    "gpt2": {**GPT, "n_inner": 40},
    "openai-gpt": GPT,
    "roberta": {**SIZES, "pad_token_id": 1, "layer_norm_eps": 1e-5},
    "albert": {**SIZES, "embedding_size": 10},
    "electra": {**SIZES, "embedding_size": 10},
    "distilbert": DISTILBERT,
    "xlnet": {"vocab_size": VOCABULARY, "d_model": 24, "n_layer": 3, "n_head": 4, "d_inner": 40},
    "ernie": {**SIZES, "use_task_id": True, "type_vocab_size": 4},
}


def make(name, **changes):
    """A model of the named class whose every tensor is random, norms and biases included."""
    kind = getattr(transformers, name)
    config = kind.config_class(**{**DEFAULTS.get(kind.config_class.model_type, SIZES), **changes})
    config._attn_implementation = "eager"
    model = kind(config).eval()
    draws = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=draws) * 0.3)
    return model


def rows(side, pad=0):
    """Ids, mask and segments of four rows of different lengths, padded on one side."""
    draws = torch.Generator().manual_seed(11)
    lengths = [9, 9, 9, 9] if side == "none" else [9, 4, 1, 6]
    ids = torch.full((4, 9), pad)
    mask = torch.zeros(4, 9, dtype=torch.long)
    segments = torch.zeros(4, 9, dtype=torch.long)
    for row, length in enumerate(lengths):
        places = slice(9 - length, 9) if side == "left" else slice(0, length)
        ids[row, places] = torch.randint(5, VOCABULARY, (length,), generator=draws)
        mask[row, places] = 1
        segments[row, places] = (torch.arange(length) > length // 2).long()
    return ids, mask, segments


def weights(folder):
    return load_file(folder / "model.safetensors")


def same_bits(left, right):
    return left.keys() == right.keys() and all(
        left[name].dtype == right[name].dtype
        and torch.equal(left[name].reshape(-1).view(torch.uint8), right[name].reshape(-1).view(torch.uint8))
        for name in left
    )
