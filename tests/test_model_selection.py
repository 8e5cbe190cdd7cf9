"""Computing only what is read gives what computing everything gives, forwards and backwards."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_model import small_batch, small_network
from test_model_positions import InAttention

from maskery.model.config import VISIBILITIES
from maskery.model.layout import layout_of
from maskery.model.selection import select
from maskery.model.transformer import inputs_of


def reads_of(batch, share, seed=0):
    """About a share of the real slots; the first row, a group of its own, reads nothing."""
    real = torch.arange(batch.ids.shape[1]) < batch.length.unsqueeze(1)
    real[0] = False
    drawn = torch.rand(real.shape, generator=torch.Generator().manual_seed(seed)) < share
    return (real & drawn).flatten().nonzero().squeeze(1)


def with_gradients(network, batch, index, reads):
    network.zero_grad(set_to_none=True)
    hidden = network(inputs_of(batch), reads=reads)
    states = hidden.select(index)
    loss = (states * torch.linspace(-1, 1, states.shape[1])).pow(2).sum()
    if hidden.pooled is not None:
        loss = loss + hidden.pooled.pow(2).sum()
    loss.backward()
    return hidden, states.detach(), {name: p.grad for name, p in network.named_parameters()}


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("pooler", [False, True])
@pytest.mark.parametrize("visibility", VISIBILITIES.names())
def test_selected_is_full(visibility, pooler, norm):
    network = small_network(visibility, pooler=pooler, norm=norm)
    batch = small_batch([8, 5, 9, 2, 5, 9, 12])
    index = reads_of(batch, 0.3)
    full, expected, wanted = with_gradients(network, batch, index, None)
    some, states, gradients = with_gradients(network, batch, index, index)
    assert full.selection is None
    assert some.selection is not None
    assert len(some.packed) < len(full.packed)
    torch.testing.assert_close(states, expected, rtol=1e-5, atol=1e-5)
    if pooler:
        torch.testing.assert_close(some.pooled, full.pooled, rtol=1e-5, atol=1e-5)
    for name, gradient in gradients.items():
        scale = float(wanted[name].abs().max())
        torch.testing.assert_close(gradient, wanted[name], rtol=1e-4, atol=1e-5 * max(1.0, scale), msg=name)


def test_with_positions_inside_attention():
    network = small_network(positions="none")
    network.embeddings.positions = InAttention(network.shape)
    batch = small_batch([9, 5, 9])
    index = reads_of(batch, 0.3)
    some, states, _ = with_gradients(network, batch, index, index)
    assert some.selection is not None
    torch.testing.assert_close(states, with_gradients(network, batch, index, None)[1], rtol=1e-5, atol=1e-5)


def test_when_most_is_read_all_is_computed():
    network, batch = small_network(), small_batch([4, 4])
    assert network(inputs_of(batch), reads=torch.arange(5)).selection is None
    assert network(inputs_of(batch), reads=torch.arange(4)).selection is not None


@pytest.mark.parametrize("lengths", [[4, 3], [0, 0]])
@pytest.mark.parametrize("pooler", [False, True])
def test_nothing_read(lengths, pooler):
    network, batch = small_network(pooler=pooler), small_batch([4, 3])
    batch = type(batch)(**(vars(batch) | {"length": torch.tensor(lengths)}))
    nothing = torch.empty(0, dtype=torch.long)
    hidden = network(inputs_of(batch), reads=nothing)
    assert hidden.select(nothing).shape == (0, 16)
    if pooler:
        torch.testing.assert_close(hidden.pooled, network(inputs_of(batch)).pooled, rtol=1e-5, atol=1e-5)


def test_an_empty_row_beside_a_selection():
    network, batch = small_network(pooler=True), small_batch([6, 6, 6])
    batch = type(batch)(**(vars(batch) | {"length": torch.tensor([0, 6, 4])}))
    index = torch.tensor([7, 12])
    some, full = network(inputs_of(batch), reads=index), network(inputs_of(batch))
    assert some.selection is not None
    torch.testing.assert_close(some.select(index), full.select(index), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(some.pooled, full.pooled, rtol=1e-5, atol=1e-5)
    assert not some.pooled[0].any()


def test_a_selection_hands_out_no_full_grid():
    network, batch = small_network(), small_batch([4, 4])
    with pytest.raises(AssertionError, match="selected"):
        network(inputs_of(batch), reads=torch.tensor([1])).last  # noqa: B018


def test_capture_computes_everything():
    network, batch = small_network(), small_batch([4, 4])
    one = torch.tensor([1])
    assert network(inputs_of(batch), reads=one, layers=True).selection is None
    assert network(inputs_of(batch), reads=one, attentions=True).selection is None


@settings(max_examples=60)
@given(lengths=st.lists(st.integers(0, 6), min_size=1, max_size=6).filter(any), seed=st.integers(0, 99))
def test_every_read_place_is_found_again(lengths, seed):
    layout = layout_of(torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1))
    drawn = torch.rand(layout.count, generator=torch.Generator().manual_seed(seed)) < 0.4
    places = drawn.nonzero().squeeze(1)
    found = select(layout, places)
    assert torch.equal(found.index[found.place[places]], places)
    at = 0
    for ask, group, slots in zip(found.groups, layout.groups, found.slots, strict=True):
        assert (ask.start, ask.rows, ask.first) == (at, group.rows, group.first)
        at = ask.stop
        place = torch.arange(group.rows).unsqueeze(1) * group.length + group.start + slots
        assert torch.equal(found.index[ask.start : ask.stop], place.flatten())
    assert at == len(found.index)
