"""What Google's code calls a variable -> what Hugging Face calls the tensor, for BERT, ALBERT and ELECTRA.

`bert/encoder/layer_3/attention/self/query/kernel` is `bert.encoder.layer.3.attention.self.query.weight`, turned: a
kernel has its inputs in rows, a weight in columns. From there the tables of each family lead on, as for any folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
}
"""The last part of a variable's name -> how Hugging Face's name ends."""

_SLOT = re.compile(r".+/((adam|lamb)_[mv]|(Adam|LAMB)\w*|Momentum|ExponentialMovingAverage)")
_STATE = {"global_step", "beta1_power", "beta2_power", "loss_scale", "good_steps", "bad_steps", "current_loss_scale"}

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

BERT = (
    *_embeddings("bert", "bert"),
    *_layers("bert", "bert"),
    Rename(r"bert/pooler/dense", "bert.pooler.dense"),
    Rename(r"cls/predictions(/transform/dense|/transform/LayerNorm)?", r"cls.predictions\1"),
    Rename(r"cls/seq_relationship", "cls.seq_relationship"),
)
ALBERT = (
    *_embeddings("bert", "albert"),
    Rename(r"bert/encoder/embedding_hidden_mapping_in", "albert.encoder.embedding_hidden_mapping_in"),
    Rename(rf"{_GROUP}/attention_1/self/(query|key|value)", rf"{_SHARED}.attention.\3"),
    Rename(rf"{_GROUP}/attention_1/output/dense", rf"{_SHARED}.attention.dense"),
    Rename(rf"{_GROUP}/LayerNorm", rf"{_SHARED}.attention.LayerNorm"),
    Rename(rf"{_GROUP}/ffn_1/intermediate/dense", rf"{_SHARED}.ffn"),
    Rename(rf"{_GROUP}/ffn_1/intermediate/output/dense", rf"{_SHARED}.ffn_output"),
    Rename(rf"{_GROUP}/LayerNorm_1", rf"{_SHARED}.full_layer_layer_norm"),
    Rename(r"bert/pooler/dense", "albert.pooler"),
    Rename(r"cls/predictions(?:/transform(/dense|/LayerNorm))?", r"predictions\1"),
    Rename(r"cls/seq_relationship", "sop_classifier.classifier"),
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
    activation: Mapping[str, str]
    """What Google's config calls an activation -> Hugging Face's name of what Google's code computes."""


NAMINGS = (
    Naming("electra", "electra/embeddings/", ELECTRA, {}),
    Naming("albert", "bert/encoder/transformer/group_0/", ALBERT, {"gelu": "gelu_new"}),
    Naming("bert", "bert/encoder/layer_0/", BERT, {}),
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
            return found.expand(tensor).replace("/", ".") + "." + ENDINGS[last]
    return None


def is_turned(variable: str) -> bool:
    """Whether its rows are Hugging Face's columns."""
    return variable.endswith("/kernel")
