"""One small model of every kind that writes, and the slow way to ask each for the next token."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch
from networks import model_of
from small_model import inputs

from maskery.model.layout import layout_of
from maskery.rows.config import RowsConfig

PAD, UNK, CLS, SEP, MASK = range(5)
MARKS = (PAD, UNK, CLS, MASK)
"""What is never written."""
XL = {"positions": "xl", "segments": 0, "attention_bias": False, "embedding_norm": "no"}
KINDS = {
    "gpt": (["next_token"], {"visibility": "causal"}),
    "gpt2": (["next_token"], {"visibility": "causal", "norm": "pre", "token_head": "plain", "segments": 0}),
    "packed": (["next_token"], {"visibility": "packed_causal", "positions": "nezha"}),
    "framed": (["next_token"], {"visibility": "causal", "position_offset": 2}),
    "shifted": (["next_token"], {"visibility": "prefix", "segments": 6}),
    "masked": (["masked_token"], {"visibility": "prefix", "segments": 2}),
    "unilm": (["masked_token"], {"segments": 6}),
    "transformer-xl": (["next_token"], {"visibility": "causal", "memory": 40, **XL}),
    "xlnet": (["permuted_token"], {"visibility": "permuted", "positions": "xlnet", "streams": 2, "segments": 0}),
    "bart": (["next_token"], {"decoder": 2}),
    "transformer": (["next_token"], {"decoder": 1, "positions": "sinusoidal", "embedding_scale": True}),
}


@cache
def writer(kind, seed=1):
    heads, shape = KINDS[kind]
    model = model_of(*heads, seed=seed, **shape)
    if shape.get("decoder"):
        model.rows = RowsConfig(decoder="text", decoder_start="end" if kind == "bart" else "begin")
    if kind == "framed":
        model.rows = RowsConfig()
    return model


@torch.no_grad()
def next_scores(kind, model, prompt, text):
    """(V,) scores of the token behind `text`, by reading everything anew in one row."""
    row = torch.tensor([[*prompt, *text]])
    if kind in ("bart", "transformer"):
        start = [SEP, CLS] if kind == "bart" else [CLS]
        return model.logits(torch.tensor([[CLS, *prompt, SEP]]), decoder_ids=torch.tensor([[*start, *text]]))[0, -1]
    if kind in ("shifted", "masked", "unilm"):
        probe = [] if kind == "shifted" else [MASK]
        first = 0 if kind == "masked" else 4
        source, target = [CLS, *prompt, SEP], [*text, *probe]
        segments = torch.tensor([[first] * len(source) + [first + 1] * len(target)])
        return model.logits(torch.tensor([source + target]), None, segments, visibility="prefix")[0, -1]
    if kind == "xlnet":
        return _of_second_stream(model, prompt, text)
    if kind == "framed":
        row = torch.tensor([[CLS, *prompt, *text]])
    return model.logits(row)[0, -1]


def _of_second_stream(model, prompt, text):
    ids = torch.tensor([[*prompt, *text, PAD]])
    order = torch.tensor([[0] * len(prompt) + list(range(1, len(text) + 2))])
    last = torch.tensor([ids.shape[1] - 1])
    made = inputs(ids, layout_of(torch.ones_like(ids, dtype=torch.bool)), slots={"order": order})
    hidden = model.network(replace(made, asked=last))
    return model.heads["permuted_token"](hidden.predicted.select(last), model.network.embeddings.tokens)[0]


def greedy(kind, model, prompt, new):
    """Token after token, nothing kept."""
    text = []
    while len(text) < new:
        scores = next_scores(kind, model, prompt, text)
        scores[list(MARKS)] = -torch.inf
        token = int(scores.argmax())
        if token == SEP:
            break
        text.append(token)
    return tuple(text)
