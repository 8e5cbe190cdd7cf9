"""Local attention: windows in all layers but every n-th, the same by every kernel, known to flow and to cost."""

from __future__ import annotations

import pytest
import torch
from small_model import small_batch, small_network, small_shape

from maskery.model import kernels
from maskery.model.cost import forward_flops, layer_flops
from maskery.model.flow import by_layer, jacobian_pattern, reach, visible_row
from maskery.model.transformer import inputs_of

LOCAL = {"local": 4, "layers": 4, "positions": "none"}


@pytest.mark.parametrize("visibility", ["full", "causal"])
@pytest.mark.parametrize("positions", ["learned", "rotary", "nezha", "disentangled", "xl"])
def test_weights_are_zero_outside_of_what_each_layer_sees(positions, visibility):
    network = small_network(visibility, positions=positions, layers=4, local=4, buckets=8)
    batch = small_batch([12])
    visible = by_layer(visible_row(network.visibility, batch, 0), network.shape)
    seen = network(inputs_of(batch), attentions=True).attentions
    for layer, (weights, allowed) in enumerate(zip(seen, visible, strict=True)):
        assert torch.equal((weights[0] > 0).all(0), allowed)
        far = (torch.arange(12)[:, None] - torch.arange(12)).abs() > 2
        assert bool(allowed[far].any()) == (layer % 3 == 0)
    assert torch.equal(jacobian_pattern(network, batch, 0), reach(visible, 4)[-1])


def test_windows_by_hand():
    network = small_network(**LOCAL, global_every=5)
    visible = by_layer(visible_row(network.visibility, small_batch([9]), 0), network.shape)
    assert visible[0].all()
    assert visible[1][4].tolist() == [abs(slot - 4) <= 2 for slot in range(9)]
    local = reach(visible[1:], 3)[-1]
    assert local[0].tolist() == [slot <= 6 for slot in range(9)], "three layers of two slots"


@pytest.mark.parametrize("lengths", [[300], [300, 300, 270], [40, 3, 300]])
def test_long_rows_in_chunks_are_the_same(lengths):
    """Against the plain operations, which are taken where weights are captured; and gradients."""
    network = small_network(positions="rotary", local=10, layers=3, max_length=400)
    given = inputs_of(small_batch(lengths))
    found = []
    for capture in (False, True):
        states = network(given, attentions=capture).packed
        found.append(
            [states, *torch.autograd.grad(states.square().sum(), list(network.parameters()), allow_unused=True)]
        )
    for one, other in zip(*found, strict=True):
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-4, atol=2e-4)


def test_chunks_of_a_window():
    draws = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 500, 8, generator=draws)
    place = torch.arange(500)
    for far in (1, 7, 64, 200, 499):
        near = (place[:, None] - place).abs() <= far
        torch.testing.assert_close(kernels.windowed(q, k, v, far), kernels.sdpa(q, k, v, near), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("changes", [{}, {"memory": 6, "positions": "rotary"}, {"decoder": 2}], ids=str)
def test_a_row_within_the_window_sees_what_it_would_without(changes):
    alike = small_network(local=40, **changes), small_network(**changes)
    given = inputs_of(small_batch([20, 7]))
    assert torch.equal(*(network(given).packed for network in alike))


def test_selected_slots_are_the_same():
    network = small_network(local=4, layers=2, positions="rotary")
    batch = small_batch([30, 12, 12])
    reads = torch.tensor([3, 40, 62])
    whole = network(inputs_of(batch)).select(reads)
    torch.testing.assert_close(network(inputs_of(batch), reads=reads).select(reads), whole, rtol=1e-5, atol=1e-5)


def test_cost_of_windows_and_gates():
    shape = small_shape(local=8, layers=4)
    whole, near = layer_flops(shape, 1000), layer_flops(shape, 1000, local=True)
    assert whole - near == 4 * (1000 - 9) * 16
    assert forward_flops(shape, 1000) == 2 * whole + 2 * near
    assert layer_flops(small_shape(gated=True), 10) - layer_flops(small_shape(), 10) == 2 * 16 * 64
    met = layer_flops(small_shape(positions="disentangled"), 10) - layer_flops(small_shape(), 10)
    assert met == 4 * 10 * 16, "two more products a pair"
