"""The network: padding on any side, order of rows and capture change nothing; what it hands out."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_model import VOCABULARY, inputs, small_batch, small_network

from maskery.batches import Batch
from maskery.model.config import POSITIONS, VISIBILITIES
from maskery.model.layout import layout_of
from maskery.model.transformer import inputs_of

GRID = [
    (visibility, positions, ("post", "pre")[(one + other) % 2])
    for one, visibility in enumerate(VISIBILITIES.names())
    for other, positions in enumerate(POSITIONS.names())
]


def rows(seed, lengths):
    draw = torch.Generator().manual_seed(seed)
    return [torch.randint(5, VOCABULARY, (length,), generator=draw) for length in lengths]


def padded(texts, side, width):
    """Ids, mask, positions, documents and segments with padding left, right or on both sides."""
    grids = {name: torch.zeros(len(texts), width, dtype=torch.long) for name in ("ids", "positions", "document")}
    mask = torch.zeros(len(texts), width, dtype=torch.bool)
    for row, text in enumerate(texts):
        at = {"right": 0, "left": width - len(text), "both": (width - len(text)) // 2}[side]
        cut = slice(at, at + len(text))
        grids["ids"][row, cut] = text
        grids["positions"][row, cut] = torch.arange(len(text))
        grids["document"][row, cut] = (torch.arange(len(text)) >= len(text) // 2).long()
        mask[row, cut] = True
    return grids, mask


def run(network, texts, side="right", width=None, **capture):
    grids, mask = padded(texts, side, width or max(map(len, texts)))
    facts = {"document": grids["document"], "order": grids["positions"] * 3 % 5}
    read = inputs(grids["ids"], layout_of(mask), segments=grids["document"], positions=grids["positions"], slots=facts)
    with torch.no_grad():
        return network(read, **capture), mask


@pytest.mark.parametrize(("visibility", "positions", "norm"), GRID)
@pytest.mark.parametrize("side", ["right", "left", "both"])
def test_a_row_does_not_feel_padding_or_its_neighbours(visibility, positions, norm, side):
    network = small_network(visibility, positions=positions, norm=norm, pooler=True)
    texts = rows(1, [4, 9, 1, 4, 7])
    together, mask = run(network, texts, side, 11, layers=True, attentions=True)
    quick, _ = run(network, texts, side, 11)
    torch.testing.assert_close(quick.packed, together.packed, rtol=1e-5, atol=1e-5)
    for number, text in enumerate(texts):
        alone, _ = run(network, [text], layers=True, attentions=True)
        real = mask[number]
        torch.testing.assert_close(together.last[number, real], alone.last[0], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(together.pooled[number], alone.pooled[0], rtol=1e-5, atol=1e-5)
        for one, other in zip(together.layers, alone.layers, strict=True):
            torch.testing.assert_close(one[number, real], other[0], rtol=1e-5, atol=1e-5)
        for one, other in zip(together.attentions, alone.attentions, strict=True):
            torch.testing.assert_close(one[number][:, real][:, :, real], other[0], rtol=1e-5, atol=1e-5)
    assert (together.last[~mask] == 0).all()


@settings(max_examples=20, deadline=None)
@given(lengths=st.lists(st.integers(1, 8), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(lengths, seed):
    network = small_network(pooler=True)
    texts = rows(seed, lengths)
    order = torch.randperm(len(texts), generator=torch.Generator().manual_seed(seed))
    plain, _ = run(network, texts)
    mixed, _ = run(network, [texts[number] for number in order.tolist()])
    torch.testing.assert_close(mixed.last, plain.last[order], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(mixed.pooled, plain.pooled[order], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("visibility", VISIBILITIES.names())
def test_attention_weights(visibility):
    network = small_network(visibility)
    found, mask = run(network, rows(2, [3, 6, 3]), "left", 8, attentions=True)
    assert len(found.attentions) == 2
    for weights in found.attentions:
        assert weights.shape == (3, 2, 8, 8)
        sums = weights.sum(-1)
        torch.testing.assert_close(sums, mask[:, None].float().expand_as(sums))
        assert (weights[~(mask[:, None, :, None] & mask[:, None, None, :]).expand_as(weights)] == 0).all()
        assert (weights >= 0).all()


def test_layers_are_given_when_asked_for():
    network = small_network(layers=3, embedding=8)
    found, _ = run(network, rows(3, [4, 2]), layers=True)
    assert [tuple(layer.shape) for layer in found.layers] == [(2, 4, 16)] * 4
    assert torch.equal(found.layers[-1], found.last)
    plain, _ = run(network, rows(3, [4, 2]))
    assert plain.layers == ()
    assert plain.attentions == ()
    assert plain.pooled is None
    torch.testing.assert_close(plain.last, found.last)


def test_pre_norm_ends_in_a_norm_and_post_norm_in_its_layer():
    for norm in ("pre", "post"):
        found, _ = run(small_network(norm=norm), rows(4, [5]), layers=True)
        torch.testing.assert_close(found.packed.mean(1), torch.zeros(5), atol=1e-5, rtol=0)
        torch.testing.assert_close(found.packed.var(1, correction=0), torch.ones(5), atol=1e-4, rtol=0)
        embedded = found.packed_layers[0].mean(1).abs().max()
        assert (embedded < 1e-5) == (norm == "post"), "only post-norm normalises the embeddings"


def test_select_reads_flat_slots_of_the_padded_batch():
    network = small_network()
    found, mask = run(network, rows(5, [3, 6, 1]), "both", 7)
    index = mask.flatten().nonzero().squeeze(1)[[0, 4, 5, 9]]
    assert torch.equal(found.select(index), found.last.flatten(0, 1)[index])


@pytest.mark.parametrize("lengths", [[0, 4, 2], [0, 0]])
def test_an_empty_row_is_zeros_and_borrows_nothing(lengths):
    network = small_network(pooler=True)
    found, mask = run(network, rows(6, lengths), width=5, attentions=True, layers=True)
    assert (found.last[~mask] == 0).all()
    for row, length in enumerate(lengths):
        if length == 0:
            assert (found.pooled[row] == 0).all()
            assert not found.attentions[0][row].any()
        else:
            alone, _ = run(network, [rows(6, lengths)[row]])
            torch.testing.assert_close(found.pooled[row], alone.pooled[0], rtol=1e-5, atol=1e-5)
    assert found.pooled.shape == (len(lengths), 16)


def test_inputs_of_a_batch():
    batch = small_batch([3, 5])
    read = inputs_of(batch)
    assert read.layout.count == 8 == batch.tokens
    assert torch.equal(read.layout.unpack(read.layout.pack(batch.ids)), batch.ids)
    one = batch.one(0)
    assert isinstance(one, Batch)
    assert one.ids.tolist() == [batch.ids[0, :3].tolist()]


def test_segments_are_read_where_there_are_any():
    ids = torch.tensor([[7, 8, 9]])
    layout = layout_of(torch.ones(1, 3, dtype=torch.bool))
    for count, differs in ((2, True), (0, False)):
        network = small_network(segments=count)
        plain = network(inputs(ids, layout)).last
        other = network(inputs(ids, layout, segments=torch.tensor([[0, 1, 1]]))).last
        assert torch.equal(plain, other) != differs


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu"])
def test_activations_are_apart(activation):
    by_name = {
        name: run(small_network(activation=name), rows(7, [5]))[0].packed for name in ("gelu", "gelu_tanh", "relu")
    }
    for name, states in by_name.items():
        assert torch.equal(states, by_name[activation]) == (name == activation)
