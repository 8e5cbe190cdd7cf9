"""Position schemes: exact values, and that only they tell the network about order."""

import pytest
import torch
from small_model import inputs, small_network, small_shape

from maskery.model.config import POSITIONS
from maskery.model.layout import layout_of
from maskery.model.positions import NoPositions, Places, PositionScheme, sinusoids


def states(network, ids, positions=None):
    layout = layout_of(torch.ones(ids.shape, dtype=torch.bool))
    with torch.no_grad():
        return network(inputs(ids, layout, positions=positions)).last


@pytest.mark.parametrize("width", [1, 4, 7, 64])
def test_sinusoids_against_the_formula(width):
    positions = torch.tensor([[0, 1, 2], [63, 511, 5000]])
    found = sinusoids(positions, width)
    assert found.shape == (2, 3, width)
    for place, vector in zip(positions.flatten().tolist(), found.view(-1, width), strict=True):
        for element in range(width):
            angle = torch.tensor(place / 10000 ** ((element - element % 2) / width), dtype=torch.float64)
            expected = angle.sin() if element % 2 == 0 else angle.cos()
            assert float(vector[element]) == pytest.approx(float(expected), abs=6e-4 if place > 100 else 1e-5)


@pytest.mark.parametrize("name", POSITIONS.names())
def test_every_scheme_conforms(name):
    shape = small_shape(positions=name, embedding=12)
    scheme = POSITIONS.get(name)(shape)
    for parameter in scheme.parameters():
        torch.nn.init.normal_(parameter)
    assert isinstance(scheme, PositionScheme)
    positions = torch.tensor([0, 3, 3, 1])
    added = scheme.embed(positions)
    if added is not None:
        assert added.shape == (4, 12)
        assert torch.equal(added[1], added[2]), "equal numbers, equal vectors"
        assert not torch.equal(added[0], added[3])
        assert torch.equal(scheme.embed(positions[[3, 2, 1, 0]]), added[[3, 2, 1, 0]])
    if scheme.limit is not None:
        scheme.embed(torch.tensor([scheme.limit - 1]))
        with pytest.raises(IndexError):
            scheme.embed(torch.tensor([scheme.limit]))
    q = torch.randn(2, 2, 3, 8)
    numbers = torch.tensor([[0, 1, 2], [5, 6, 8]])
    places = Places(numbers, numbers, numbers % 2, numbers % 2)
    turned = scheme.turn(0, q, numbers)
    assert turned is None or turned.shape == q.shape
    leaning = scheme.lean(0)
    assert leaning is None or leaning.shape == (2, 8)
    term = scheme.scores(0, q, places)
    assert term is None or term.shape == (2, 2, 3, 3)
    crossed = scheme.meets(0, q, q, places, lambda x, first, last: x.repeat(1, last - first))
    assert crossed is None or crossed.shape == (2, 2, 3, 3)
    value = scheme.values(0, torch.rand(2, 2, 3, 3), places)
    assert value is None or value.shape == q.shape
    assert scheme.in_attention == any(each is not None for each in (turned, leaning, term, crossed, value))


@pytest.mark.parametrize("name", POSITIONS.names())
def test_the_network_reads_position_numbers_not_slots(name):
    """Slots and position numbers permuted together: the output is permuted."""
    network = small_network(positions=name)
    ids, order = torch.tensor([[7, 11, 23, 30, 9]]), torch.tensor([3, 0, 4, 1, 2])
    plain = states(network, ids, torch.arange(5)[None])
    moved = states(network, ids[:, order], torch.arange(5)[order][None])
    torch.testing.assert_close(moved, plain[:, order], rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", POSITIONS.names())
def test_only_positions_know_order(name):
    network = small_network(positions=name)
    plain = states(network, torch.tensor([[7, 11, 23]]))
    swapped = states(network, torch.tensor([[7, 23, 11]]))
    difference = (swapped - plain[:, [0, 2, 1]]).abs().max()
    if name == "none":
        assert difference < 1e-6
    else:
        assert difference > 1e-2


def test_learned_positions_are_its_table_and_start_at_the_offset():
    scheme = POSITIONS.get("learned")(small_shape(max_length=6, position_offset=2))
    assert scheme.table.shape == (8, 16)
    torch.nn.init.normal_(scheme.table)
    assert torch.equal(scheme.embed(torch.tensor([2, 7])), scheme.table[[2, 7]])


class InAttention(NoPositions):
    """A scheme that acts in attention: turns queries and keys, and adds to scores and output."""

    def turn(self, layer, x, positions):
        return x * (1 + positions[:, None, :, None])

    def scores(self, layer, q, places):
        return -(places.q_pos[:, None, :, None] - places.k_pos[:, None, None, :]).abs().float() * (layer + 1)

    def values(self, layer, weights, places):
        return weights.sum(-1, keepdim=True) * places.q_pos[:, None, :, None]


def test_a_scheme_inside_attention_is_called_in_all_its_places():
    network = small_network(positions="none")
    network.embeddings.positions = InAttention(network.shape)
    assert InAttention(network.shape).in_attention
    ids = torch.tensor([[7, 7, 7]])
    out = states(network, ids)
    assert not torch.allclose(out[:, 0], out[:, 1], atol=1e-3)
    mask = torch.tensor([[False, True, True, True], [True, True, False, False]])
    with torch.no_grad():
        padded = network(inputs(torch.tensor([[0, 7, 7, 7], [7, 7, 0, 0]]), layout_of(mask))).last
        alone = network(inputs(ids, layout_of(torch.ones(1, 3, dtype=torch.bool)), positions=torch.tensor([[1, 2, 3]])))
    torch.testing.assert_close(padded[0, 1:], alone.last[0], rtol=1e-5, atol=1e-5)
    assert not torch.allclose(out, alone.last, atol=1e-3), "it is given position numbers, not places in the row"
