"""NEZHA by its equations, slot by slot, on a dictionary of tensors with the names of transformers 4.

score(i, j) = q_i . (k_j + a_ij) / sqrt(d)        out_i = sum_j softmax_j(score) (v_j + a_ij)
a_ij[2n] = sin((r) / 10000^(2n/d)), a_ij[2n+1] = cos(same), r = clip(j - i, -c, c) + c
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

HEADS = {
    "NezhaForPreTraining": ("cls.predictions", "cls.seq_relationship"),
    "NezhaForMaskedLM": ("cls.predictions",),
    "NezhaForNextSentencePrediction": ("cls.seq_relationship",),
    "NezhaForSequenceClassification": ("classifier",),
    "NezhaForTokenClassification": ("classifier",),
    "NezhaForMultipleChoice": ("classifier",),
    "NezhaForQuestionAnswering": ("qa_outputs",),
    "NezhaModel": (),
}
POOLED = ("PreTraining", "NextSentencePrediction", "SequenceClassification", "MultipleChoice", "Model")


def config_of(name, **changes):
    """As transformers 4 writes it."""
    plain = {
        "architectures": [name],
        "attention_probs_dropout_prob": 0.1,
        "bos_token_id": 2,
        "classifier_dropout": 0.1,
        "eos_token_id": 3,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": 24,
        "initializer_range": 0.02,
        "intermediate_size": 40,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 40,
        "max_relative_position": 3,
        "model_type": "nezha",
        "num_attention_heads": 4,
        "num_hidden_layers": 3,
        "pad_token_id": 0,
        "torch_dtype": "float32",
        "type_vocab_size": 2,
        "use_cache": True,
        "vocab_size": 60,
    }
    return plain | changes


def tensors_of(name, config, *, classes=2, buffers=False):
    """Every tensor of the class, random."""
    width, words = config["hidden_size"], config["vocab_size"]
    sizes = {
        "nezha.embeddings.word_embeddings.weight": (words, width),
        "nezha.embeddings.token_type_embeddings.weight": (config["type_vocab_size"], width),
        "nezha.embeddings.LayerNorm": width,
    }
    for layer in range(config["num_hidden_layers"]):
        at = f"nezha.encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            sizes[f"{at}.attention.{part}"] = (width, width)
        sizes[f"{at}.attention.output.LayerNorm"] = width
        sizes[f"{at}.intermediate.dense"] = (config["intermediate_size"], width)
        sizes[f"{at}.output.dense"] = (width, config["intermediate_size"])
        sizes[f"{at}.output.LayerNorm"] = width
        if buffers:
            slots, head = config["max_position_embeddings"], width // config["num_attention_heads"]
            sizes[f"{at}.attention.self.relative_positions_encoding.positions_encoding"] = (slots, slots, head)
    if name.endswith(POOLED):
        sizes["nezha.pooler.dense"] = (width, width)
    for head in HEADS[name]:
        if head == "cls.predictions":
            sizes |= {f"{head}.transform.dense": (width, width), f"{head}.transform.LayerNorm": width}
            sizes[f"{head}.bias"] = (words,)
        else:
            sizes[head] = (classes, width)
    tensors = {}
    for key, size in sizes.items():
        if key.endswith((".weight", ".bias", "encoding")):
            tensors[key] = size
        else:
            tensors[f"{key}.weight"] = size if isinstance(size, tuple) else (size,)
            tensors[f"{key}.bias"] = (size[0] if isinstance(size, tuple) else size,)
    if name == "NezhaModel":
        tensors = {key.removeprefix("nezha."): size for key, size in tensors.items()}
    draws = torch.Generator().manual_seed(5)
    return {key: torch.randn(size, generator=draws) * 0.3 for key, size in tensors.items()}


def _linear(x, tensors, name):
    return F.linear(x, tensors[f"{name}.weight"], tensors[f"{name}.bias"])


def _norm(x, tensors, name, eps):
    return F.layer_norm(x, x.shape[-1:], tensors[f"{name}.weight"], tensors[f"{name}.bias"], eps)


def waves(row, width):
    """The vector of one distance."""
    angles = [row / 10000 ** (2 * (each // 2) / width) for each in range(width)]
    return torch.tensor([math.cos(a) if n % 2 else math.sin(a) for n, a in enumerate(angles)])


def states_of_row(tensors, config, ids, segments):
    """One row without padding: states of every layer (T,D) and weights of every layer (H,T,T)."""
    tensors = {key.removeprefix("nezha."): each for key, each in tensors.items()}
    eps, heads, clip = config["layer_norm_eps"], config["num_attention_heads"], config["max_relative_position"]
    size, slots = config["hidden_size"] // heads, len(ids)
    x = tensors["embeddings.word_embeddings.weight"][ids] + tensors["embeddings.token_type_embeddings.weight"][segments]
    x = _norm(x, tensors, "embeddings.LayerNorm", eps)
    states, attentions = [x], []
    for layer in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{layer}"
        q, k, v = (
            _linear(x, tensors, f"{at}.attention.self.{part}").view(slots, heads, size)
            for part in ("query", "key", "value")
        )
        weights, mixed = torch.zeros(heads, slots, slots), torch.zeros(slots, heads, size)
        for head in range(heads):
            for i in range(slots):
                places = [waves(min(max(j - i, -clip), clip) + clip, size) for j in range(slots)]
                scores = [q[i, head] @ (k[j, head] + places[j]) / math.sqrt(size) for j in range(slots)]
                weights[head, i] = torch.softmax(torch.stack(scores), 0)
                for j in range(slots):
                    mixed[i, head] += weights[head, i, j] * (v[j, head] + places[j])
        attended = _linear(mixed.view(slots, -1), tensors, f"{at}.attention.output.dense")
        x = _norm(x + attended, tensors, f"{at}.attention.output.LayerNorm", eps)
        inner = F.gelu(_linear(x, tensors, f"{at}.intermediate.dense"))
        x = _norm(x + _linear(inner, tensors, f"{at}.output.dense"), tensors, f"{at}.output.LayerNorm", eps)
        states.append(x)
        attentions.append(weights)
    return states, attentions
