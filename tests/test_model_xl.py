"""Positions of Transformer-XL and XLNet, two streams and a past: the network, with the quick kernel and the plain one,
against the equations written out for every pair of slots."""

from dataclasses import replace

import pytest
import torch
import xl_slowly
from small_model import small_batch, small_network

from maskery.batches import Memory
from maskery.model.plan import AttentionPlan
from maskery.model.transformer import inputs_of
from maskery.model.xl import waves

LENGTHS, SLOTS = [5, 5, 3, 1], 5
SEES = {
    "full": lambda i, j, order, asks: True,
    "causal": lambda i, j, order, asks: j <= i,
    "permuted": lambda i, j, order, asks: order[j] < order[i] or (order[j] == order[i] and not asks),
}
ASKED = {0: [1, 4], 1: [0, 2, 3], 2: [], 3: [0]}


def network_of(name, visibility, **changes):
    return small_network(visibility, positions=name, streams=2, segments=0, memory=3, **changes)


def batch_of(past):
    """Rows that count up and rows that count down; the memory of one is full, of one half full, of one empty."""
    batch = small_batch(LENGTHS, seed=3)
    positions = batch.positions.clone()
    positions[1] = positions[1].flip(0) + 7
    positions[2] += 40
    asked = torch.tensor([row * SLOTS + slot for row, slots in ASKED.items() for slot in slots])
    memory = None
    if past:
        drawn = torch.randn(2, 4, 3, 16, generator=torch.Generator().manual_seed(2))
        memory = Memory(states=tuple(drawn), length=torch.tensor([3, 2, 0, 1]))
    return replace(batch, positions=positions, asked=asked, memory=memory)


def slow_states(network, batch, visibility):
    firsts, seconds = [], []
    for row, length in enumerate(LENGTHS):
        places = list(zip(batch.positions[row].tolist(), batch.segments[row].tolist(), strict=True))[:length]
        order = batch.slots["order"][row].tolist()
        past = None
        if batch.memory is not None:
            filled = int(batch.memory.length[row])
            past = [each[row, 3 - filled :] for each in batch.memory.states]

        def sees(i, j, asks, order=order):
            return SEES[visibility](i, j, order, asks)

        first, second = xl_slowly.states(network, batch.ids[row, :length], places, ASKED[row], past, sees)
        firsts.append(first)
        seconds.append(second)
    return torch.cat(firsts), torch.cat(seconds)


def with_gradients(network, *states):
    uneven = [(each * torch.linspace(-1, 1, each.numel()).view_as(each)).sum() for each in states if each.numel()]
    gradients = torch.autograd.grad(sum(uneven), list(network.parameters()), allow_unused=True)
    named = [name for name, _ in network.named_parameters()]
    return [each.detach() for each in states], dict(zip(named, gradients, strict=True))


def require_same(found, wanted):
    torch.testing.assert_close(found[0], wanted[0], rtol=1e-5, atol=1e-5)
    for name, gradient in wanted[1].items():
        other = found[1][name]
        if gradient is None or other is None:
            assert not (gradient if other is None else other).any() if gradient is not other else True, name
            continue
        size = max(1.0, float(gradient.abs().max()))
        torch.testing.assert_close(other, gradient, rtol=1e-5, atol=1e-5 * size, msg=lambda text, n=name: n + text)


@pytest.fixture(params=["quick", "plain"])
def kernel(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(AttentionPlan, "by_slots", False)
    return request.param


@pytest.mark.parametrize("past", [False, True], ids=["alone", "behind a past"])
@pytest.mark.parametrize(("name", "visibility"), [("xl", "causal"), ("xl", "full"), ("xlnet", "permuted")])
def test_both_streams_are_the_equations(name, visibility, past, monkeypatch):
    network, batch = network_of(name, visibility), batch_of(past)
    real = (torch.arange(SLOTS) < batch.length.unsqueeze(1)).flatten().nonzero().flatten()
    slow = with_gradients(network, *slow_states(network, batch, visibility))
    for quick in (True, False):
        if not quick:
            monkeypatch.setattr(AttentionPlan, "by_slots", False)
        hidden = network(inputs_of(batch))
        found = with_gradients(network, hidden.select(real), hidden.predicted.select(batch.asked))
        require_same(found, slow)
    alone = network(inputs_of(batch), reads=torch.empty(0, dtype=torch.long))
    assert len(alone.packed) == 0, "of the first stream the last layer computes nothing"
    torch.testing.assert_close(alone.predicted.select(batch.asked), slow[0][1], rtol=1e-5, atol=1e-5)
    one = network(inputs_of(replace(batch, asked=None)))
    torch.testing.assert_close(one.select(real), slow[0][0], rtol=1e-5, atol=1e-5)
    assert one.predicted is None, "the first stream does not know of the second"


@pytest.mark.parametrize("name", ["xl", "xlnet"])
def test_the_second_stream_alone_in_the_last_layer_has_the_gradients_of_both(name):
    network, batch = network_of(name, "permuted"), batch_of(past=True)
    nothing = torch.empty(0, dtype=torch.long)
    pair = [network(inputs_of(batch), reads=reads).predicted.select(batch.asked) for reads in (None, nothing)]
    require_same(*(with_gradients(network, each) for each in pair))


def test_who_sees_nothing_has_zeros_and_no_nan(kernel):
    """The first of an order: its second stream has the start vector alone to go on."""
    network, batch = network_of("xlnet", "permuted", layers=1), batch_of(past=False)
    order = torch.arange(SLOTS).flip(0).expand(4, SLOTS)
    batch = replace(batch, slots={"order": order}, asked=torch.tensor([4, 9, 12]))
    states = network(inputs_of(batch)).predicted.select(batch.asked)
    block, start = network.layers[0], network.embeddings.start
    blind = xl_slowly.turned(network, 0, start, block.attention.output.bias)
    torch.testing.assert_close(states[:2], blind.expand(2, -1), rtol=1e-5, atol=1e-5)
    gradients = torch.autograd.grad(states.square().sum(), list(network.parameters()), allow_unused=True)
    assert all(each is None or each.isfinite().all() for each in gradients)


def test_segments_that_are_all_alike_are_not_told(kernel):
    """Whatever their number is; a past is of segment 0."""
    network, batch = network_of("xlnet", "permuted"), batch_of(past=False)
    states = [
        network(inputs_of(replace(batch, segments=torch.full_like(batch.segments, number)))).packed for number in (0, 4)
    ]
    torch.testing.assert_close(*states, rtol=1e-6, atol=1e-6)
    assert not torch.allclose(states[0], network(inputs_of(batch)).packed, atol=1e-3)


def test_clamped_distances(monkeypatch):
    network, batch = network_of("xl", "causal"), batch_of(past=True)
    plain = network(inputs_of(batch)).packed
    network.embeddings.positions.clamp = 2
    wanted, _ = slow_states(network, batch, "causal")
    real = (torch.arange(SLOTS) < batch.length.unsqueeze(1)).flatten().nonzero().flatten()
    hidden = network(inputs_of(batch))
    torch.testing.assert_close(hidden.select(real), wanted, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(hidden.packed, plain, atol=1e-3)


def test_positions_that_do_not_count_take_the_plain_way():
    network, batch = network_of("xl", "full"), batch_of(past=False)
    odd = replace(batch, positions=batch.positions * 2)
    wanted, _ = slow_states(network, odd, "full")
    real = (torch.arange(SLOTS) < batch.length.unsqueeze(1)).flatten().nonzero().flatten()
    torch.testing.assert_close(network(inputs_of(odd)).select(real), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["xl", "xlnet"])
def test_quick_and_plain_drop_the_same_weights(name, monkeypatch):
    """Of one row: then both draw their numbers in the same order."""
    network = small_network("causal", positions=name, attention_dropout=0.3).train()
    batch = small_batch([7])
    found = []
    for quick in (True, False):
        if not quick:
            monkeypatch.setattr(AttentionPlan, "by_slots", False)
        torch.manual_seed(4)
        found.append(with_gradients(network, network(inputs_of(batch)).packed))
    require_same(*found)
    torch.manual_seed(5)
    assert not torch.allclose(network(inputs_of(batch)).packed, found[0][0][0], atol=1e-3)


def test_the_same_step_gives_the_same_bits():
    network = small_network("permuted", positions="xlnet", streams=2, memory=8, dropout=0.1, attention_dropout=0.1)
    batch = small_batch([30, 30, 17, 30])
    asked = (torch.arange(30) % 4 == 0).expand(4, 30) & (torch.arange(30) < batch.length.unsqueeze(1))
    past = torch.randn(2, 4, 8, 16, generator=torch.Generator().manual_seed(0))
    memory = Memory(states=tuple(past), length=torch.tensor([8, 8, 0, 3]))
    given = inputs_of(replace(batch, asked=asked.flatten().nonzero().flatten(), memory=memory))
    found = []
    for _ in range(2):
        torch.manual_seed(5)
        hidden = network.train()(given, reads=torch.empty(0, dtype=torch.long))
        states = hidden.predicted.packed
        gradients = torch.autograd.grad(states.square().sum(), list(network.parameters()), allow_unused=True)
        found.append([states, *hidden.memory.states, *gradients])
    assert all(one is other or torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_mixed_precision():
    """bfloat16 products under autocast: near the float32 numbers, gradients in the numbers of the weights."""
    network, batch = network_of("xlnet", "permuted", std=0.1), batch_of(past=True)
    exact = network(inputs_of(batch)).predicted.packed
    with torch.autocast("cpu", torch.bfloat16):
        hidden = network(inputs_of(batch))
    assert (hidden.predicted.packed.float() - exact).abs().max() < 0.2
    hidden.predicted.packed.float().square().sum().backward()
    learned = list(network.embeddings.positions.parameters())
    assert all(each.grad.dtype == torch.float32 and each.grad.isfinite().all() for each in learned)


def test_weights_can_be_captured_and_change_nothing():
    network, batch = network_of("xlnet", "permuted"), batch_of(past=True)
    plain, watched = network(inputs_of(batch)), network(inputs_of(batch), attentions=True)
    torch.testing.assert_close(watched.packed, plain.packed, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(watched.predicted.packed, plain.predicted.packed, rtol=1e-5, atol=1e-5)
    real = torch.arange(SLOTS) < batch.length.unsqueeze(1)
    asked = torch.zeros(4 * SLOTS, dtype=torch.bool).index_fill(0, batch.asked, True).view(4, SLOTS)
    for weights, second in zip(watched.attentions, watched.predicted.attentions, strict=True):
        assert weights.shape == second.shape == (4, 2, SLOTS, 3 + SLOTS)
        torch.testing.assert_close(weights.sum(-1), real[:, None].expand(-1, 2, -1).float())
        assert not second.sum(-1)[~asked[:, None].expand(-1, 2, -1)].any()
        own = second[..., 3:].diagonal(dim1=2, dim2=3)
        assert not own.any(), "the second stream does not see what it is asked for"
        for row, filled in enumerate(batch.memory.length.tolist()):
            assert not weights[row, :, :, : 3 - filled].any(), "what is not there is not seen"


def test_distances_are_made_once_and_can_be_trained_with():
    waves.cache_clear()
    network, batch = small_network(positions="xl"), small_batch([5])
    with torch.inference_mode():
        network(inputs_of(batch))
    assert waves.cache_info().misses == 1
    network(inputs_of(batch)).packed.sum().backward()
    assert waves.cache_info().misses == 1
    assert network.embeddings.positions.distances.grad.any()
