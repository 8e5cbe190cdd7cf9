"""Tiny encoders with sentence-transformers beside them, and the slow obvious way to pool."""

from __future__ import annotations

import math

import numpy as np
import torch
from networks import model_of

from maskery.vectors.model import VectorModel
from maskery.vectors.settings import VectorsConfig

TEXTS = ["the cat sat on the mat.", "我去了北京，不是上海。", "", "cat", "sat " * 40, "😀 the \u200d cats", "a b c d e"]
PROMPTS = {"query": "the cat: ", "document": "mat: "}
LENGTH = 20


def quiet(_text):
    pass


def made_of(*pool, steps=(), seed=0, **settings):
    model = model_of(pooler=True, seed=seed)
    return VectorModel(model, VectorsConfig(**{"pool": pool or ("mean",), "length": LENGTH} | settings), steps)


def states(made, text, prompt=""):
    """(layers + 1, t, D) of one text alone, through the model's own public call, and its ids."""
    tokenizer = made.tokenizer
    ids = tokenizer.encode_raw([prompt + text])[0][0].tolist()[: made.config.length - 2]
    ids = [tokenizer.specials.cls, *ids, tokenizer.specials.sep]
    with torch.no_grad():
        hidden = made.model(torch.tensor([ids]), layers=True)
    return np.stack([layer[0].numpy() for layer in hidden.layers]).astype(np.float64), hidden


def slowly(made, name, text, prompt="", skip=0):
    """One pooling of one text by its definition, slot by slot in plain numbers."""
    layers, hidden = states(made, text, prompt)
    last = layers[-1]
    kept = list(range(skip, len(last)))
    if name == "pooler":
        return hidden.pooled[0].numpy()
    if name == "first":
        return last[kept[0]]
    if name == "last":
        return last[-1]
    if name == "max":
        return np.array([max(last[slot][d] for slot in kept) for d in range(last.shape[1])])
    if name == "attention":
        query = made.pooling.attention.query.detach().numpy().astype(float)
        scores = [math.exp(float(last[slot] @ query) / math.sqrt(last.shape[1])) for slot in kept]
        return sum(score * last[slot] for score, slot in zip(scores, kept, strict=True)) / sum(scores)
    pair = {"first_last": (layers[1], layers[-1]), "last_two": (layers[-2], layers[-1])}.get(name, (last, last))
    slots = [(pair[0][slot] + pair[1][slot]) / 2 for slot in kept]
    weights = [slot + 1 if name == "weighted" else 1 for slot in kept]
    total = sum(weight * slot for weight, slot in zip(weights, slots, strict=True))
    return total / (math.sqrt(len(kept)) if name == "sqrt_mean" else sum(weights))
