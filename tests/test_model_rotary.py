"""Rotary positions, gates and layers without biases: against plain operations, by every way through attention."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from small_model import small_batch, small_network, small_shape

from maskery.model.config import POSITIONS, ModelConfig
from maskery.model.products import FloatProduct, products_of
from maskery.model.rotary import turned
from maskery.model.transformer import Inputs, inputs_of

MODERN = {
    "positions": "rotary", "norm": "pre", "embedding_norm": "yes", "first_norm": False, "gated": True,
    "feedforward": 20, "attention_bias": False, "feedforward_bias": False, "norm_bias": False, "head_bias": False,
}  # fmt: skip


@pytest.mark.parametrize("theta", [10_000.0, 160_000.0])
def test_points_are_turned_by_angles_of_the_position(theta):
    scheme = POSITIONS.get("rotary")(small_shape(positions="rotary", theta=theta))
    x, places = torch.randn(1, 2, 3, 8), torch.tensor([[0, 5, 900]])
    found = scheme.turn(0, x, places)
    assert torch.equal(found[:, :, 0], x[:, :, 0])
    for slot, place in ((1, 5), (2, 900)):
        for i in range(4):
            angle = place / theta ** (2 * i / 8)
            one, other = x[0, 1, slot, i], x[0, 1, slot, i + 4]
            expected = one * math.cos(angle) - other * math.sin(angle), other * math.cos(angle) + one * math.sin(angle)
            torch.testing.assert_close(found[0, 1, slot, [i, i + 4]], torch.stack(expected), rtol=1e-4, atol=1e-4)


def test_packed_slots_are_turned_where_they_lie():
    """Queries and keys of the slots that have a position; values and what lies behind stay; and gradients."""
    scheme = POSITIONS.get("rotary")(small_shape(positions="rotary"))
    x = torch.randn(7, 48, requires_grad=True)
    places = torch.tensor([0, 1, 2, 3, 9])
    found = turned(x, scheme.waves(0, places), 8, 32)
    by_head = scheme.turn(0, x[:5, :32].view(1, 5, 4, 8).transpose(1, 2), places[None]).transpose(1, 2).reshape(5, 32)
    expected = torch.cat((torch.cat((by_head, x[:5, 32:]), 1), x[5:]))
    torch.testing.assert_close(found, expected)
    one, other = (torch.autograd.grad((each * torch.arange(48)).sum(), x)[0] for each in (found, expected))
    torch.testing.assert_close(one, other)


def slow_layer(block, x, heads, first):
    """Pre-norm, no biases, rotated queries and keys, a gate."""
    scheme = POSITIONS.get("rotary")(small_shape(**MODERN))
    read = x if first else F.layer_norm(x, (16,), block.attention_norm.weight, None, 1e-12)
    q, k, v = ((read @ weight.t()).view(-1, heads, 8).transpose(0, 1) for weight in block.attention.inputs)
    places = torch.arange(len(x))[None]
    q, k = (scheme.turn(0, each[None], places)[0] for each in (q, k))
    weights = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(8), -1)
    x = x + (weights @ v).transpose(0, 1).reshape(-1, 16) @ block.attention.output.weight.t()
    read = F.layer_norm(x, (16,), block.feedforward_norm.weight, None, 1e-12)
    inner, gate = (read @ block.up.weight.t()).chunk(2, 1)
    return x + (F.gelu(inner) * gate) @ block.down.weight.t()


def test_a_modern_layer_by_hand_with_gradients():
    network, batch = small_network(**MODERN), small_batch([11, 11, 4])
    assert not [name for name, _ in network.named_parameters() if name.endswith("bias")]
    rows = []
    for row, length in enumerate(batch.length.tolist()):
        x = network.embeddings(batch.ids[row, :length], batch.segments[row, :length], torch.arange(length))
        for number, block in enumerate(network.layers):
            x = slow_layer(block, x, 2, number == 0)
        rows.append(F.layer_norm(x, (16,), network.norm.weight, None, 1e-12))
    hidden = network(inputs_of(batch)).last
    found, slow = torch.cat([hidden[row, : len(each)] for row, each in enumerate(rows)]), torch.cat(rows)
    torch.testing.assert_close(found, slow, rtol=1e-5, atol=1e-5)
    both = [torch.autograd.grad(each.square().sum(), list(network.parameters())) for each in (found, slow)]
    for one, other in zip(*both, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("changes", [{}, {"visibility": "causal"}], ids=["full", "causal"])
def test_weights_that_are_captured_and_packed_products(changes):
    network, given = small_network(**MODERN, **changes), inputs_of(small_batch([30, 9, 9]))
    with torch.no_grad():
        plain = network(given)
        torch.testing.assert_close(network(given, attentions=True).packed, plain.packed, rtol=1e-5, atol=1e-5)
        quick = Inputs(**{**given.__dict__, "products": products_of(network, FloatProduct)})
        torch.testing.assert_close(network(quick).packed, plain.packed, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("changes", "said"), [
    ({"positions": "rotary", "width": 18, "heads": 2}, "pairs of numbers"),
    ({"first_norm": False}, "post-norm"),
    ({"first_norm": False, "norm": "pre", "share": "all"}, "share"),
    ({"positions": "disentangled", "buckets": 32, "clip": 17}, "clip"),
])  # fmt: skip
def test_shapes_that_make_no_sense(changes, said):
    with pytest.raises(ValueError, match=said):
        ModelConfig(**changes)
