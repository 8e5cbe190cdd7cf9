"""What the sizes of a checkpoint's tensors say about its network, under the keys of config.json."""

from __future__ import annotations

from collections.abc import Mapping

from maskery.checkpoint.tensorflow.names import EVERY, FACTOR

Shapes = Mapping[str, tuple[int, ...]]
"""Tensor, by its name of Hugging Face -> its shape as the variable has it."""


def measured(model_type: str, shapes: Shapes) -> dict[str, int]:
    """A size whose tensor is not there is left out: loading will say which tensors are missing."""
    found = _xlnet(shapes) if model_type == "xlnet" else _bert_like(model_type, shapes)
    return {key: size for key, size in found.items() if size}


def _bert_like(model_type: str, shapes: Shapes) -> dict[str, int]:
    start = f"{model_type}.embeddings"
    found = {
        "vocab_size": _size(shapes, f"{start}.word_embeddings.weight", 0),
        "max_position_embeddings": _size(shapes, f"{start}.position_embeddings.weight", 0),
        "type_vocab_size": _size(shapes, f"{start}.token_type_embeddings.weight", 0),
        "embedding_size": _size(shapes, f"{start}.word_embeddings.weight", 1),
    }
    if model_type == "albert":
        inside = "albert.encoder.albert_layer_groups."
        found["num_hidden_groups"] = _count(shapes, inside)
        found["hidden_size"] = _size(shapes, f"{inside}0.albert_layers.0.attention.query.weight", 0)
        found["intermediate_size"] = _size(shapes, f"{inside}0.albert_layers.0.ffn.weight", 1)
    else:
        inside = f"{model_type}.encoder.layer."
        found["num_hidden_layers"] = _count(shapes, inside)
        found["hidden_size"] = _size(shapes, f"{inside}0.attention.self.query.weight", 0)
        found["intermediate_size"] = _size(shapes, f"{inside}0.intermediate.dense.weight", 1)
    if model_type in ("bert", "nezha"):
        del found["embedding_size"]  # there is one width
    return found


def _xlnet(shapes: Shapes) -> dict[str, int]:
    start = "transformer.layer."
    return {
        "vocab_size": _size(shapes, "transformer.word_embedding.weight", 0),
        "d_model": _size(shapes, "transformer.word_embedding.weight", 1),
        "n_layer": _count({name: () for name in shapes if EVERY not in name}, start),
        "n_head": _size(shapes, f"{start}0.rel_attn.q", 1),
        "d_head": _size(shapes, f"{start}0.rel_attn.q", 2),
        "d_inner": _size(shapes, f"{start}0.ff.layer_1.weight", 1),
    }


def factored(shapes: Shapes) -> bool:
    """Whether word embeddings are a product, as in albert_zh."""
    return any(name.endswith(FACTOR) for name in shapes)


def _size(shapes: Shapes, tensor: str, axis: int) -> int:
    shape = shapes.get(tensor, ())
    return shape[axis] if axis < len(shape) else 0


def _count(shapes: Shapes, start: str) -> int:
    return len({tensor.removeprefix(start).partition(".")[0] for tensor in shapes if tensor.startswith(start)})
