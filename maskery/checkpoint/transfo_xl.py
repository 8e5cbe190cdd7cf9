"""Transformer-XL as transformers 4 names it (5 has it no more): one softmax, or bands whose vectors are all as wide as
the layers (div_val 1, as the authors' base run); u and v for all layers.

The matrices of the distances, one a layer, are one parameter with us. `clamp_len` and `same_length` say how a text is
evaluated, not what the network is: they are kept, and `maskery score` is told them anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maskery.checkpoint.family import FIXED, Family, HuggingFaceClass
from maskery.checkpoint.gpt2 import LAST
from maskery.checkpoint.rules import Rule, both, ignore, same, tied
from maskery.errors import CheckpointError
from maskery.model.config import Shape

_ATTENTION, _FORWARD = "layers.{layer}.dec_attn", "layers.{layer}.pos_ff"

ENCODER: tuple[Rule, ...] = (
    same("embeddings.tokens", "word_emb.emb_layers.0.weight"),
    same("embeddings.positions.content", "r_w_bias"),
    same("embeddings.positions.place", "r_r_bias"),
    tied("embeddings.positions.content", f"{_ATTENTION}.r_w_bias"),
    tied("embeddings.positions.place", f"{_ATTENTION}.r_r_bias"),
    Rule("embeddings.positions.distances", ("layers.{every}.dec_attn.r_net.weight",), "stack"),
    ignore("pos_emb.inv_freq"),
    Rule("layers.{layer}.attention.inputs", (f"{_ATTENTION}.qkv_net.weight",), "split3"),
    same("layers.{layer}.attention.output.weight", f"{_ATTENTION}.o_net.weight"),
    *both("layers.{layer}.attention_norm", f"{_ATTENTION}.layer_norm"),
    *both("layers.{layer}.up", f"{_FORWARD}.CoreNet.0"),
    *both("layers.{layer}.down", f"{_FORWARD}.CoreNet.3"),
    *both("layers.{layer}.feedforward_norm", f"{_FORWARD}.layer_norm"),
)
OUTPUT: tuple[Rule, ...] = (
    same("heads.next_token.bias", "crit.out_layers.0.bias"),
    same("heads.next_token.bands", "crit.cluster_weight"),
    same("heads.next_token.bands_bias", "crit.cluster_bias"),
    tied("embeddings.tokens", "crit.out_layers.0.weight"),
)


@dataclass(frozen=True)
class TransfoXL(Family):
    """A family whose config.json tells the widths of heads and of embeddings apart from that of the layers."""

    def shape_of(self, config: Mapping[str, Any]) -> Shape:
        shape = super().shape_of(config)
        told = {**self.defaults, **config}
        for key, wanted in self._widths(shape).items():
            if told[key] != wanted:
                raise CheckpointError(
                    f"{key} = {told[key]!r} with d_model = {shape.width} and n_head = {shape.heads} is not supported",
                    repair=f"use a model with {key} = {wanted}",
                )
        return shape

    def config_of(self, shape: Shape, pad: int | None) -> dict[str, Any]:
        only = {key: values[0] for key, values in self.allowed.items()}
        only |= {"clamp_len": -1, "same_length": False, "cutoffs": list(shape.cutoffs)}
        return super().config_of(shape, pad) | self._widths(shape) | only

    def _widths(self, shape: Shape) -> dict[str, int]:
        return {"d_embed": shape.width, "d_head": shape.width // shape.heads}


FAMILY = TransfoXL(
    model_type="transfo-xl",
    prefix="transformer.",
    fields={
        "vocabulary": "vocab_size",
        "width": "d_model",
        "layers": "n_layer",
        "heads": "n_head",
        "feedforward": "d_inner",
        "memory": "mem_len",
        "eps": "layer_norm_epsilon",
        "init_std": "init_std",
        "cutoffs": "cutoffs",
        "dropout": "dropout",
        "attention_dropout": "dropatt",
    },
    defaults={
        "vocab_size": 267735,
        "cutoffs": [20000, 40000, 200000],
        "d_model": 1024,
        "d_embed": 1024,
        "n_head": 16,
        "d_head": 64,
        "d_inner": 4096,
        "div_val": 4,
        "n_layer": 18,
        "mem_len": 1600,
        "dropout": 0.1,
        "dropatt": 0.0,
        "untie_r": True,
        "init_std": 0.02,
        "layer_norm_epsilon": 1e-5,
        "tgt_len": 512,
        "activation_function": "relu",
        "pad_token_id": None,
    },
    fixed={name: value for name, value in FIXED.items() if name not in ("memory", "cutoffs")}
    | {
        "positions": "xl",
        "visibility": "causal",
        "segments": 0,
        "embedding_norm": "no",
        "embedding_scale": True,
        "attention_bias": False,
        "token_head": "bias",
    },
    allowed={
        "div_val": (1,),
        "untie_r": (False,),
        "pre_lnorm": (False, None),
        "attn_type": (0, None),
        "tie_word_embeddings": (True, None),
    },
    parts=("word_emb.", "layers.", "r_w_bias", "r_r_bias", "pos_emb."),
    activation_key="activation_function",
    activations={"relu": "relu"},
    length_key="tgt_len",
    ends=True,
    remark="transformers 4 opens it, 5 has transfo-xl no more",
    classes=(
        HuggingFaceClass("TransfoXLLMHeadModel", (*ENCODER, *OUTPUT)),
        HuggingFaceClass("TransfoXLForSequenceClassification", (*ENCODER, *LAST), classes="sequence_class_last"),
        HuggingFaceClass("TransfoXLModel", ENCODER, bare=True),
    ),
)
