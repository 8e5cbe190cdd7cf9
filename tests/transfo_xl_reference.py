"""Transformer-XL by its equations, pair by pair, on a dictionary of tensors with the names of transformers 4.

score(i, j) = ((q_i + u) . k_j + (q_i + v) . W r(i - j)) / sqrt(d)     r = all sines, then all cosines of the distance
Keys and values are made of what the layer was given before these rows, then of these rows. No shift, no index trick.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

PREFIX = "transformer."


def config_of(name="TransfoXLLMHeadModel", **changes):
    """As transformers 4 writes it: what is as in its class is left out (tied word vectors, order of norms)."""
    plain = {
        "architectures": [name],
        "clamp_len": -1,
        "cutoffs": [],
        "d_embed": 12,
        "d_head": 4,
        "d_inner": 20,
        "d_model": 12,
        "div_val": 1,
        "layer_norm_epsilon": 1e-5,
        "mem_len": 6,
        "model_type": "transfo-xl",
        "n_head": 3,
        "n_layer": 2,
        "same_length": False,
        "untie_r": False,
        "vocab_size": 30,
    }
    return plain | changes


def tensors_of(config, *, copies=True, seed=0):
    """Random weights under their names; `copies`: with the second copies that a pickle of transformers 4 has."""
    draw = torch.Generator().manual_seed(seed)
    name, (width, inner, words) = (
        config["architectures"][0],
        (config[key] for key in ("d_model", "d_inner", "vocab_size")),
    )
    heads, size = config["n_head"], config["d_head"]

    def random(*shape, around=0.0):
        return around + 0.4 * torch.randn(shape, generator=draw)

    found = {"word_emb.emb_layers.0.weight": random(words, width)}
    found |= {"r_w_bias": random(heads, size), "r_r_bias": random(heads, size)}
    for layer in range(config["n_layer"]):
        attention, forward = f"layers.{layer}.dec_attn", f"layers.{layer}.pos_ff"
        found[f"{attention}.qkv_net.weight"] = random(3 * width, width)
        found[f"{attention}.o_net.weight"] = random(width, width)
        found[f"{attention}.r_net.weight"] = random(width, width)
        found |= {f"{forward}.CoreNet.0.weight": random(inner, width), f"{forward}.CoreNet.0.bias": random(inner)}
        found |= {f"{forward}.CoreNet.3.weight": random(width, inner), f"{forward}.CoreNet.3.bias": random(width)}
        for norm in (f"{attention}.layer_norm", f"{forward}.layer_norm"):
            found |= {f"{norm}.weight": random(width, around=1.0), f"{norm}.bias": random(width)}
        if copies:
            found |= {f"{attention}.{bias}": found[bias].clone() for bias in ("r_w_bias", "r_r_bias")}
    if copies:
        found["pos_emb.inv_freq"] = 1 / 10000 ** (torch.arange(0.0, width, 2.0) / width)
    bare = name == "TransfoXLModel"
    found = {("" if bare else PREFIX) + each: tensor for each, tensor in found.items()}
    if name == "TransfoXLLMHeadModel":
        found["crit.out_layers.0.bias"] = random(words)
        if copies:
            found["crit.out_layers.0.weight"] = found[f"{PREFIX}word_emb.emb_layers.0.weight"].clone()
    if name == "TransfoXLForSequenceClassification":
        found["score.weight"] = random(2, width)
    return found


def waves(distance, width):
    angles = [distance / 10000 ** (2 * n / width) for n in range(width // 2)]
    return torch.tensor([*map(math.sin, angles), *map(math.cos, angles)])


def states_of_row(tensors, config, ids, memory=None, clamp=None, reach=None):
    """L+1 states (T,D) of one row, and what each layer was given: what the next row remembers. `reach`: how many slots
    that end with itself a slot sees."""
    width, heads, size = config["d_model"], config["n_head"], config["d_head"]
    tensor = {name.removeprefix(PREFIX): each for name, each in tensors.items()}
    x = tensor["word_emb.emb_layers.0.weight"][ids] * math.sqrt(width)
    states, before = [x], 0 if memory is None else len(memory[0])
    for layer in range(config["n_layer"]):
        attention, forward = f"layers.{layer}.dec_attn", f"layers.{layer}.pos_ff"
        seen = x if memory is None else torch.cat((memory[layer], x))
        weight = tensor[f"{attention}.qkv_net.weight"]
        query, key, value = (F.linear(seen, part) for part in weight.split(width))
        mixed = torch.zeros_like(x)
        for i in range(len(ids)):
            place = before + i
            first = 0 if reach is None else max(0, place - reach + 1)
            for head in range(heads):
                part = slice(head * size, (head + 1) * size)
                scores = []
                for j in range(first, place + 1):
                    distance = place - j if clamp is None else min(clamp, place - j)
                    r = F.linear(waves(distance, width), tensor[f"{attention}.r_net.weight"])[part]
                    by_content = (query[place, part] + tensor["r_w_bias"][head]) @ key[j, part]
                    by_place = (query[place, part] + tensor["r_r_bias"][head]) @ r
                    scores.append((by_content + by_place) / math.sqrt(size))
                weights = torch.stack(scores).softmax(0)
                mixed[i, part] = weights @ value[first : place + 1, part]
        x = _norm(x + F.linear(mixed, tensor[f"{attention}.o_net.weight"]), tensor, f"{attention}.layer_norm")
        inner = F.relu(F.linear(x, tensor[f"{forward}.CoreNet.0.weight"], tensor[f"{forward}.CoreNet.0.bias"]))
        outer = F.linear(inner, tensor[f"{forward}.CoreNet.3.weight"], tensor[f"{forward}.CoreNet.3.bias"])
        x = _norm(x + outer, tensor, f"{forward}.layer_norm")
        states.append(x)
    return states


def _norm(x, tensor, name):
    return F.layer_norm(x, x.shape[-1:], tensor[f"{name}.weight"], tensor[f"{name}.bias"], 1e-5)
