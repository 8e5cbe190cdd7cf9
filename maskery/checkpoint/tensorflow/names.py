"""What the authors' code calls a variable -> what Hugging Face calls the tensor: BERT, NEZHA, ALBERT, ELECTRA, XLNet.

`bert/encoder/layer_3/attention/self/query/kernel` is `bert.encoder.layer.3.attention.self.query.weight`, turned: a
kernel has its inputs in rows, a weight in columns. From there the tables of each family lead on, as for any folder.

Two variables become no tensor of the same numbers. XLNet has one for all layers where Hugging Face has one a layer:
`{every}` in a tensor's name stands for the layer. albert_zh factors the word embeddings and adds positions to the
product: the product is one table of the layers' width, and its output layer is the same product.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

ENDINGS = {
    "kernel": "weight",
    "bias": "bias",
    "gamma": "weight",
    "beta": "bias",
    "output_weights": "weight",
    "output_bias": "bias",
    "word_embeddings": "word_embeddings.weight",
    "position_embeddings": "position_embeddings.weight",
    "token_type_embeddings": "token_type_embeddings.weight",
    "word_embeddings_2": "word_embeddings.factor",
    "lookup_table": "weight",
    "weight": "weight",
    "mask_emb": "mask_emb",
    "r_w_bias": "r_w_bias",
    "r_r_bias": "r_r_bias",
    "r_s_bias": "r_s_bias",
    "seg_embed": "seg_embed",
}
"""The last part of a variable's name -> how Hugging Face's name ends."""

_SLOT = re.compile(r".+/((adam|lamb)_[mv]|(Adam|LAMB)\w*|Momentum|ExponentialMovingAverage)")
_STATE = {"global_step", "beta1_power", "beta2_power", "loss_scale", "good_steps", "bad_steps", "current_loss_scale"}

FACTOR = "word_embeddings.factor"
"""How the name ends of what word embeddings are multiplied by."""
EVERY = "{every}"
POSITIONS = "bert/embeddings/position_embeddings"

OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"
"""The entry of a checkpoint that has its tensors by Python objects, not by variables."""


class Rename(NamedTuple):
    variable: str
    """A pattern of the whole name without its last part."""
    tensor: str


def _layers(scope: str, tensors: str) -> tuple[Rename, ...]:
    """BERT's encoder below a scope."""
    inside = r"(attention/self/query|attention/self/key|attention/self/value|attention/output/dense"
    inside += r"|attention/output/LayerNorm|intermediate/dense|output/dense|output/LayerNorm)"
    return (Rename(rf"{scope}/encoder/layer_(\d+)/{inside}", rf"{tensors}.encoder.layer.\1.\2"),)


def _embeddings(scope: str, tensors: str) -> tuple[Rename, ...]:
    return (Rename(rf"{scope}/embeddings(/LayerNorm)?", rf"{tensors}.embeddings\1"),)


_GROUP = r"bert/encoder/transformer/group_(\d+)/inner_group_(\d+)"
_SHARED = r"albert.encoder.albert_layer_groups.\1.albert_layers.\2"

_INSIDE = r"(query|key|value)"


def _bert(tensors: str) -> tuple[Rename, ...]:
    return (
        *_embeddings("bert", tensors),
        *_layers("bert", tensors),
        Rename(r"bert/pooler/dense", f"{tensors}.pooler.dense"),
        Rename(r"cls/predictions(/transform/dense|/transform/LayerNorm)?", r"cls.predictions\1"),
        Rename(r"cls/seq_relationship", "cls.seq_relationship"),
    )


_ALBERT_ENDS = (
    Rename(r"bert/pooler/dense", "albert.pooler"),
    Rename(r"cls/predictions(?:/transform(/dense|/LayerNorm))?", r"predictions\1"),
    Rename(r"cls/seq_relationship", "sop_classifier.classifier"),
)
ALBERT = (
    *_embeddings("bert", "albert"),
    Rename(r"bert/encoder/embedding_hidden_mapping_in", "albert.encoder.embedding_hidden_mapping_in"),
    Rename(rf"{_GROUP}/attention_1/self/{_INSIDE}", rf"{_SHARED}.attention.\3"),
    Rename(rf"{_GROUP}/attention_1/output/dense", rf"{_SHARED}.attention.dense"),
    Rename(rf"{_GROUP}/LayerNorm", rf"{_SHARED}.attention.LayerNorm"),
    Rename(rf"{_GROUP}/ffn_1/intermediate/dense", rf"{_SHARED}.ffn"),
    Rename(rf"{_GROUP}/ffn_1/intermediate/output/dense", rf"{_SHARED}.ffn_output"),
    Rename(rf"{_GROUP}/LayerNorm_1", rf"{_SHARED}.full_layer_layer_norm"),
    *_ALBERT_ENDS,
)
_ONE = "bert/encoder/layer_shared"
_FIRST = "albert.encoder.albert_layer_groups.0.albert_layers.0"
ALBERT_ZH = (
    *_embeddings("bert", "albert"),
    Rename(rf"{_ONE}/attention/self/{_INSIDE}", rf"{_FIRST}.attention.\1"),
    Rename(rf"{_ONE}/attention/output/(dense|LayerNorm)", rf"{_FIRST}.attention.\1"),
    Rename(rf"{_ONE}/intermediate/dense", f"{_FIRST}.ffn"),
    Rename(rf"{_ONE}/output/dense", f"{_FIRST}.ffn_output"),
    Rename(rf"{_ONE}/output/LayerNorm", f"{_FIRST}.full_layer_layer_norm"),
    *_ALBERT_ENDS,
)
_PLACE = r"model/transformer/layer_(\d+)"
XLNET = (
    Rename(r"model/transformer/word_embedding", "transformer.word_embedding"),
    Rename(r"model/transformer/mask_emb", "transformer"),
    Rename(r"model/transformer", f"transformer.layer.{EVERY}.rel_attn"),
    Rename(rf"{_PLACE}/rel_attn/([qkvor])", r"transformer.layer.\1.rel_attn.\2"),
    Rename(rf"{_PLACE}/rel_attn/LayerNorm", r"transformer.layer.\1.rel_attn.layer_norm"),
    Rename(rf"{_PLACE}/ff/LayerNorm", r"transformer.layer.\1.ff.layer_norm"),
    Rename(rf"{_PLACE}/ff/(layer_[12])", r"transformer.layer.\1.ff.\2"),
    Rename(r"model/lm_loss", "lm_loss"),
)
ELECTRA = (
    *_embeddings("electra", "electra"),
    *_layers("electra", "electra"),
    Rename(r"electra/embeddings_project", "electra.embeddings_project"),
    Rename(r"discriminator_predictions/dense", "discriminator_predictions.dense"),
    Rename(r"discriminator_predictions/dense_1", "discriminator_predictions.dense_prediction"),
)
GENERATOR = (
    *_embeddings("electra", "electra"),
    *_layers("generator", "electra"),
    Rename(r"generator/embeddings_project", "electra.embeddings_project"),
    Rename(r"generator_predictions/(dense|LayerNorm)", r"generator_predictions.\1"),
    Rename(r"generator_predictions", "generator_lm_head"),
)
"""A generator reads the embeddings of the discriminator: there is one set of them, under its name."""


@dataclass(frozen=True)
class Naming:
    """A family as Google's code names it."""

    model_type: str
    sign: str
    """What only its checkpoints have: the beginning of some names."""
    renames: tuple[Rename, ...]
    activation: Mapping[str, str] = field(default_factory=dict)
    """What Google's config calls an activation -> Hugging Face's name of what Google's code computes."""
    config: str = ""
    """The name of its config, as published, where it is not MODEL_TYPE_config.json."""


_TANH = {"gelu": "gelu_new"}
NEZHA = Naming("nezha", "bert/encoder/layer_0/", _bert("nezha"), config="bert_config.json")
"""BERT's names without a table of positions: told from BERT by the config."""
NAMINGS = (
    Naming("electra", "electra/embeddings/", ELECTRA),
    Naming("albert", "bert/encoder/transformer/group_0/", ALBERT, _TANH),
    Naming("albert", "bert/encoder/layer_shared/", ALBERT_ZH, _TANH),
    Naming("xlnet", "model/transformer/layer_0/", XLNET),
    Naming("bert", "bert/encoder/layer_0/", _bert("bert")),
)


def naming_of(variables: Iterable[str]) -> Naming | None:
    """The family that has such names."""
    held = list(variables)
    return next((each for each in NAMINGS if any(name.startswith(each.sign) for name in held)), None)


def is_state(variable: str) -> bool:
    """Whether it belongs to the optimiser or counts steps, and is no part of a model."""
    return variable in _STATE or _SLOT.fullmatch(variable) is not None


def renamed(variable: str, renames: Iterable[Rename]) -> str | None:
    """Hugging Face's name of a variable; None where the family has no such tensor."""
    path, _, last = variable.rpartition("/")
    if last not in ENDINGS:
        return None
    for pattern, tensor in renames:
        found = re.fullmatch(pattern, path)
        if found is not None:
            return _ended(found.expand(tensor).replace("/", "."), variable, last)
    return None


def _ended(start: str, variable: str, last: str) -> str:
    """With the last part; XLNet's products with heads have no name of theirs below that of the matrix."""
    bare = re.search(r"/rel_attn/[qkvor]/kernel$", variable)
    return start if bare else f"{start}.{ENDINGS[last]}"


def is_turned(variable: str) -> bool:
    """Whether its rows are Hugging Face's columns: not those of XLNet's attention, which have three axes."""
    return variable.endswith("/kernel") and "/rel_attn/" not in variable
