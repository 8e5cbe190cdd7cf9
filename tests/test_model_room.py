"""Empty slots behind the rows, so that shapes recur: nothing that anybody reads is different for them."""

from __future__ import annotations

import pytest
import torch
from small_model import small_batch, small_network
from test_model_network import GRID
from test_model_selection import reads_of, with_gradients

from maskery.model import linear
from maskery.model.block import Block
from maskery.model.transformer import inputs_of

LENGTHS = [11, 20, 3, 20, 19, 7]
"""80 slots: up to the next number that recurs 48 are empty."""

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this build of torch has no oneDNN, so there is never room"
)


def told(monkeypatch, has_room, network, index, reads):
    """States, gradients, and how many slots the first layer was given."""
    monkeypatch.setattr(linear, "by_onednn", lambda: has_room)
    given, plain = [], Block.forward
    monkeypatch.setattr(Block, "forward", lambda self, x, *rest: given.append(len(x)) or plain(self, x, *rest))
    hidden, states, gradients = with_gradients(network, small_batch(LENGTHS), index, reads)
    monkeypatch.setattr(Block, "forward", plain)
    return hidden, states, gradients, given[0]


@pytest.mark.parametrize("some", [False, True], ids=["all", "some"])
@pytest.mark.parametrize(("visibility", "positions", "norm"), GRID)
def test_room_changes_nothing(visibility, positions, norm, some, monkeypatch):
    network = small_network(visibility, positions=positions, norm=norm, pooler=True)
    index = reads_of(small_batch(LENGTHS), 0.3)
    full, states, gradients, slots = told(monkeypatch, False, network, index, index if some else None)
    assert slots == sum(LENGTHS)
    room, found, others, slots = told(monkeypatch, True, network, index, index if some else None)
    assert slots == (sum(LENGTHS) if positions.startswith("xl") else 128)
    assert room.packed.shape == full.packed.shape
    torch.testing.assert_close(found, states, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(room.pooled, full.pooled, rtol=1e-5, atol=1e-5)
    for name, gradient in others.items():
        wanted = gradients[name]
        assert (gradient is None) == (wanted is None), name
        if wanted is not None:
            scale = max(1.0, float(wanted.abs().max()))
            torch.testing.assert_close(gradient, wanted, rtol=1e-4, atol=1e-5 * scale, msg=name)


@pytest.mark.parametrize("some", [False, True], ids=["all", "some"])
def test_room_changes_no_dropout(some, monkeypatch):
    """Which numbers are dropped follows from the rows, so it is the same on every processor and in every precision."""
    network = small_network(dropout=0.3, attention_dropout=0.3).train()
    index, found = reads_of(small_batch(LENGTHS), 0.3), []
    for has_room in (False, True):
        torch.manual_seed(5)
        _, states, gradients, slots = told(monkeypatch, has_room, network, index, index if some else None)
        assert slots == (128 if has_room else sum(LENGTHS))
        found.append([states, *(each for each in gradients.values() if each is not None)])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5 * max(1.0, float(theirs.abs().max())))


@pytest.mark.parametrize("positions", ["learned", "nezha"])
def test_layers_and_weights_are_those_of_the_rows(positions, monkeypatch):
    network, batch = small_network(positions=positions), small_batch(LENGTHS)
    found = []
    for has_room in (False, True):
        monkeypatch.setattr(linear, "by_onednn", lambda has_room=has_room: has_room)
        with torch.no_grad():
            found.append(network(inputs_of(batch), layers=True, attentions=True))
    plain, room = found
    for mine, theirs in zip(
        (*room.packed_layers, *room.attentions), (*plain.packed_layers, *plain.attentions), strict=True
    ):
        assert mine.shape == theirs.shape
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


def test_long_rows_by_the_fused_kernel_have_room_too(monkeypatch):
    network = small_network(max_length=300)
    batch = small_batch([270, 3, 257])
    found = []
    for has_room in (False, True):
        monkeypatch.setattr(linear, "by_onednn", lambda has_room=has_room: has_room)
        network.zero_grad(set_to_none=True)
        states = network(inputs_of(batch)).packed
        states.square().sum().backward()
        found.append([states.detach(), *(p.grad for p in network.parameters() if p.grad is not None)])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4 * max(1.0, float(theirs.abs().max())))
