"""Disentangled attention: by the paper, pair by pair; both kernels, forwards and back."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from small_model import inputs, small_batch, small_network, small_shape

from maskery.model.config import POSITIONS
from maskery.model.layout import layout_of
from maskery.model.transformer import inputs_of

SMALL = {"positions": "disentangled", "buckets": 8, "clip": 16, "layers": 2}


def slow_bucket(distance, buckets, farthest):
    middle, far = buckets // 2, abs(distance)
    if far > middle:
        share = math.log(far / middle) / math.log((farthest - 1) / middle)
        far = middle + math.ceil(share * (middle - 1))
    return max(0, min(2 * buckets - 1, (far if distance > 0 else -far) + buckets))


def slow_attention(network, layer, x):
    """A_ij = (q_i k_j + q_i K(d) + k_j Q(d)) / sqrt(3 K), d the bucket of i - j; one head and pair at a time."""
    attention, scheme, shape = network.layers[layer].attention, network.embeddings.positions, network.shape
    head, table = shape.width // shape.heads, scheme.norm(scheme.distances)

    def made(each, part):
        return F.linear(each, attention.inputs[part], attention.inputs_bias[part]).view(len(each), shape.heads, head)

    (q, k, v), (q_of, k_of) = (made(x, part) for part in range(3)), (made(table, part) for part in range(2))
    rows = []
    for i in range(len(x)):
        heads = []
        for h in range(shape.heads):
            scores = []
            for j in range(len(x)):
                d = slow_bucket(i - j, shape.buckets, shape.clip)
                scores.append((q[i, h] @ k[j, h] + q[i, h] @ k_of[d, h] + k[j, h] @ q_of[d, h]) / math.sqrt(3 * head))
            heads.append(torch.softmax(torch.stack(scores), 0) @ v[:, h])
        rows.append(torch.cat(heads))
    return attention.output(torch.stack(rows))


def slow_states(network, x):
    for number, block in enumerate(network.layers):
        x = block.attention_norm(x + slow_attention(network, number, x))
        x = block.feedforward_norm(x + block.down(F.gelu(block.up(x))))
    return x


def gradients(network, states):
    return torch.autograd.grad(states.square().sum(), list(network.parameters()), allow_unused=True)


def test_by_the_paper_with_gradients():
    network, batch = small_network(**SMALL), small_batch([21, 21, 5])
    given = inputs_of(batch)
    hidden = network(given)
    slow = []
    for row, length in enumerate(batch.length.tolist()):
        places = torch.arange(length)
        slow.append(
            slow_states(network, network.embeddings(batch.ids[row, :length], batch.segments[row, :length], places))
        )
    found = torch.cat([hidden.last[row, : len(each)] for row, each in enumerate(slow)])
    torch.testing.assert_close(found, torch.cat(slow), rtol=1e-5, atol=1e-5)
    for one, other in zip(gradients(network, found), gradients(network, torch.cat(slow)), strict=True):
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("visibility", ["full", "causal", "packed"])
def test_the_quick_kernel_is_the_plain_one(visibility):
    network = small_network(visibility, **SMALL)
    given, found = inputs_of(small_batch([30, 30, 7, 1])), []
    for capture in (False, True):
        states = network(given, attentions=capture).packed
        found.append([states, *gradients(network, states)])
    for one, other in zip(*found, strict=True):
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_positions_that_do_not_count_up():
    """Numbers of any kind are read, by the plain kernel."""
    network, mask = small_network(**SMALL), torch.ones(1, 6, dtype=torch.bool)
    ids, numbers = torch.tensor([[7, 11, 23, 30, 9, 8]]), torch.tensor([[5, 0, 40, 3, 3, 9]])
    order = numbers.argsort(1)
    plain = network(inputs(ids, layout_of(mask), positions=numbers)).last
    moved = network(inputs(ids.gather(1, order), layout_of(mask), positions=numbers.gather(1, order))).last
    torch.testing.assert_close(moved[0], plain[0, order[0]], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("buckets", "clip"), [(8, 16), (4, 24), (256, 512), (32, 64), (9, 40)])
def test_buckets(buckets, clip):
    scheme = POSITIONS.get("disentangled")(small_shape(positions="disentangled", buckets=buckets, clip=clip))
    for distance in (*range(-60, 61), -700, 700, 511, 512):
        found = int(scheme.row(torch.tensor(distance)))
        # The border of a bucket is where float32 rounds up, so a neighbour is right there.
        assert abs(found - slow_bucket(distance, buckets, clip)) <= (abs(distance) > buckets // 2)
        assert 0 <= found < 2 * buckets


def test_dropout_thins_the_table_and_training_repeats():
    network = small_network(**SMALL, dropout=0.2).train()
    given = inputs_of(small_batch([9, 9]))
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(network(given).packed)
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
