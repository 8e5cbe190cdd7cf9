"""Attention with the positions of Transformer-XL and XLNet for one row, one pair of slots at a time: no table of
distances, no shift, and each stream for itself."""

from __future__ import annotations

import math

import torch


def wave(distance, width):
    """All sines, then all cosines."""
    angles = [distance / 10000 ** (2 * k / width) for k in range(width // 2)]
    return torch.tensor([math.sin(a) for a in angles] + [math.cos(a) for a in angles])


def score(scheme, layer, q, k, distance, same):
    """(H,K) one query and one key -> (H,)"""
    heads, head = q.shape
    clamped = distance if scheme.clamp is None else max(-scheme.clamp, min(scheme.clamp, distance))
    u, v = (each[layer] if each.ndim == 3 else each for each in (scheme.content, scheme.place))
    told = (scheme.distances[layer] @ wave(clamped, heads * head)).view(heads, head)
    total = ((q + u) * k).sum(-1) + ((q + v) * told).sum(-1)
    if hasattr(scheme, "segments"):
        total = total + ((q + scheme.segment[layer]) * scheme.segments[layer, 0 if same else 1]).sum(-1)
    return total / math.sqrt(head)


def mixed(network, layer, asking, states, slots, keys, sees):
    """`asking`: (m,D) states of the slots `slots`; `states`: (S,D) what is read, at the places `keys`, each a pair of a
    position and a segment; `sees(n, j)` tells whether the n-th that asks may see key j."""
    attention, scheme, heads = network.layers[layer].attention, network.embeddings.positions, network.shape.heads

    def projected(x, part):
        return (x @ attention.inputs[part].t() + attention.inputs_bias[part]).view(len(x), heads, -1)

    q, k, v = projected(asking, 0), projected(states, 1), projected(states, 2)
    out = []
    for n, (position, segment) in enumerate(slots):
        seen = [j for j in range(len(keys)) if sees(n, j)]
        if not seen:
            out.append(torch.zeros(network.shape.width))
            continue
        scores = [score(scheme, layer, q[n], k[j], position - keys[j][0], segment == keys[j][1]) for j in seen]
        weights = torch.stack(scores).softmax(0)
        out.append((weights.unsqueeze(-1) * v[seen]).sum(0).flatten())
    return attention.output(torch.stack(out)) if out else asking


def turned(network, layer, x, more):
    block = network.layers[layer]
    x = block.attention_norm(x + more)
    return block.feedforward_norm(x + block.down(torch.nn.functional.gelu(block.up(x))))


def states(network, ids, places, asked, past, sees):
    """The last states of one row and of its second stream. `places`: position and segment of each slot; `asked`: slots
    of the second stream; `past`: for each layer (M,D); `sees(i, j, asks)`: may slot i see slot j, as which stream."""
    first = network.embeddings.norm(network.embeddings.tokens[ids])
    second = network.embeddings.start.expand(len(asked), -1) if asked else first[:0]
    falling = len(places) > 1 and places[1][0] < places[0][0]
    for layer in range(network.shape.layers):
        before = past[layer] if past else first[:0]
        size, start = len(before), places[0][0]
        keys = [(start + (size - n if falling else n - size), 0) for n in range(size)] + places
        read = torch.cat((before, first))

        def seen(slots, asks, size=size):
            return lambda asking, j: j < size or sees(slots[asking], j - size, asks)

        every = list(range(len(ids)))
        new = turned(network, layer, first, mixed(network, layer, first, read, places, keys, seen(every, False)))
        if asked:
            mine = [places[slot] for slot in asked]
            second = turned(network, layer, second, mixed(network, layer, second, read, mine, keys, seen(asked, True)))
        first = new
    return first, second
