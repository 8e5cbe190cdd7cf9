"""A decoder: against torch.nn.Transformer with the same weights, rows of different lengths against each alone, and
written slot by slot."""

from dataclasses import replace

import pytest
import torch
from small_model import VOCABULARY, inputs, small_network, small_shape

from maskery.model.initial import initialise
from maskery.model.layout import layout_of
from maskery.model.source import source_of
from maskery.model.transformer import Network

SOURCE, TARGET = [7, 4, 7, 1], [3, 6, 5, 6]


def read(lengths, seed, ids=None):
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    draw = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, VOCABULARY, mask.shape, generator=draw) if ids is None else ids
    return inputs(ids, layout_of(mask))


def pair(rows=None):
    """Rows and what is written of them; of all, or of the given rows alone."""
    source, target = read(SOURCE, 1), read(TARGET, 2)
    if rows is not None:
        source = read([SOURCE[n] for n in rows], 0, source.ids[rows][:, : max(SOURCE[n] for n in rows)])
        target = read([TARGET[n] for n in rows], 0, target.ids[rows][:, : max(TARGET[n] for n in rows)])
    return replace(source, decoder=target)


def network_of(**changes):
    return small_network(decoder=2, segments=0, **changes)


# torch.nn.Transformer


def copied(network, norm):
    """torch's own Transformer with the network's weights."""
    shape = network.shape
    theirs = torch.nn.Transformer(
        d_model=shape.width,
        nhead=shape.heads,
        num_encoder_layers=shape.layers,
        num_decoder_layers=shape.decoder,
        dim_feedforward=shape.feedforward,
        dropout=0.0,
        activation="gelu",
        layer_norm_eps=shape.eps,
        batch_first=True,
        norm_first=norm == "pre",
    ).eval()
    theirs.encoder.use_nested_tensor = False
    if norm == "post":  # torch adds a last norm, the paper does not
        theirs.encoder.norm = theirs.decoder.norm = None
    else:
        _fill(theirs.encoder.norm, network.norm)
        _fill(theirs.decoder.norm, network.decoder.norm)
    for ours, layers in ((network.layers, theirs.encoder.layers), (network.decoder.layers, theirs.decoder.layers)):
        for block, layer in zip(ours, layers, strict=True):
            _attention(layer.self_attn, block.attention)
            norms = [block.attention_norm, block.feedforward_norm]
            if block.across:
                _attention(layer.multihead_attn, block.source)
                norms.insert(1, block.source_norm)
            for number, own in enumerate(norms, 1):
                _fill(getattr(layer, f"norm{number}"), own)
            _fill(layer.linear1, block.up)
            _fill(layer.linear2, block.down)
    return theirs


@torch.no_grad()
def _fill(theirs, ours):
    theirs.weight.copy_(ours.weight)
    theirs.bias.copy_(ours.bias)


@torch.no_grad()
def _attention(theirs, ours):
    theirs.in_proj_weight.copy_(ours.inputs.flatten(0, 1))
    theirs.in_proj_bias.copy_(ours.inputs_bias.flatten())
    _fill(theirs.out_proj, ours.output)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_network_is_that_of_torch(norm):
    network = network_of(norm=norm, positions="sinusoidal", embedding_norm="no", embedding_scale=True)
    theirs, given = copied(network, norm), pair()
    with torch.no_grad():
        ours = network(given)
        embedded = [
            stack.embeddings(rows.ids.flatten(), rows.segments.flatten(), rows.positions.flatten()).view(4, -1, 16)
            for stack, rows in ((network, given), (network.decoder, given.decoder))
        ]
        padding = [
            torch.arange(rows.shape[1]) >= torch.tensor(lengths).unsqueeze(1)
            for rows, lengths in zip(embedded, (SOURCE, TARGET), strict=True)
        ]
        causal = torch.ones(embedded[1].shape[1], embedded[1].shape[1]).triu(1).bool()
        expected = theirs(
            *embedded,
            tgt_mask=causal,
            src_key_padding_mask=padding[0],
            tgt_key_padding_mask=padding[1],
            memory_key_padding_mask=padding[0],
        )
    torch.testing.assert_close(ours.decoder.last[~padding[1]], expected[~padding[1]], rtol=1e-5, atol=1e-5)


def test_token_vectors_are_scaled_and_shared():
    network = network_of(embedding_scale=True, positions="none", embedding_norm="no")
    assert network.decoder.embeddings.tokens is network.embeddings.tokens
    assert "decoder.embeddings.tokens" not in network.state_dict()
    place = torch.zeros(1, dtype=torch.long)
    torch.testing.assert_close(network.embeddings(place + 7, place, place)[0], 4 * network.embeddings.tokens[7])
    apart = Network(small_shape(decoder=2).model_copy(update={"target_vocabulary": 9}), pooler=False)
    assert apart.decoder.embeddings.tokens.shape == (9, 16)
    assert apart.embeddings.tokens.shape == (VOCABULARY, 16)


# Rows of any length


def with_gradients(network, given, **how):
    hidden = network(given, **how)
    states = hidden.decoder.packed
    weights = torch.linspace(-1, 1, states.numel()).view_as(states)
    gradients = torch.autograd.grad((states * weights).sum(), list(network.parameters()), allow_unused=True)
    return hidden, gradients


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_row_does_not_feel_the_others(norm):
    network = network_of(norm=norm)
    together = network(pair()).decoder.last
    for row in range(4):
        alone = network(pair([row])).decoder.last[0]
        torch.testing.assert_close(together[row, : TARGET[row]], alone, rtol=1e-5, atol=1e-5)


def test_each_way_to_look_gives_the_same():
    """Once with a backward pass of its own; with weights captured; with keys that are kept."""
    network, given = network_of(), pair()
    once, gradients = with_gradients(network, given)
    seen, wanted = with_gradients(network, given, attentions=True)
    kept, _ = with_gradients(network, given, keep=True)
    for other in (seen, kept):
        torch.testing.assert_close(once.decoder.packed, other.decoder.packed, rtol=1e-5, atol=1e-5)
    for name, one, other in zip(dict(network.named_parameters()), gradients, wanted, strict=True):
        assert one is other or torch.allclose(one, other, rtol=1e-5, atol=1e-5 * (1 + float(other.abs().max()))), name
    assert len(seen.decoder.across) == 2
    for weights in seen.decoder.across:
        assert weights.shape == (4, 2, 6, 7)
        for row, (length, source) in enumerate(zip(TARGET, SOURCE, strict=True)):
            torch.testing.assert_close(weights[row, :, :length].sum(-1), torch.ones(2, length))
            assert not weights[row, :, length:].any()
            assert not weights[row, :, :, source:].any()
    assert once.decoder.across == ()


def test_dropout_of_what_is_looked_at():
    network, given = network_of(attention_dropout=0.4).train(), pair([0])
    found = []
    for capture in (False, True):
        torch.manual_seed(3)
        found.append(network(given, attentions=capture).decoder.packed)
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(found[0], network.eval()(given).decoder.packed, atol=1e-3)


def test_an_empty_source_is_looked_at_in_vain():
    network, given = network_of(), pair()
    empty = replace(given, layout=layout_of(torch.arange(7) < torch.tensor([7, 0, 7, 1]).unsqueeze(1)))
    found = network(empty)
    assert found.decoder.packed.isfinite().all()
    torch.testing.assert_close(
        found.decoder.last[[0, 2, 3]], network(given).decoder.last[[0, 2, 3]], rtol=1e-5, atol=1e-5
    )
    (gradient,) = torch.autograd.grad(found.decoder.packed.square().sum(), network.embeddings.tokens)
    assert gradient.isfinite().all()


# Slot by slot


def test_written_slot_by_slot_it_is_the_same():
    network, given = network_of(positions="learned"), pair()
    target = given.decoder
    with torch.no_grad():
        whole = network(given).decoder.last
        hidden = network(
            replace(
                given,
                decoder=replace(
                    target,
                    ids=target.ids[:, :1],
                    positions=target.positions[:, :1],
                    segments=target.segments[:, :1],
                    slots={},
                    layout=layout_of(torch.ones(4, 1, dtype=torch.bool)),
                ),
            ),
            keep=True,
        )
        found, cache, source = [hidden.decoder.last], hidden.decoder.cache, hidden.source
        for slot in range(1, 6):
            cut = {name: getattr(target, name)[:, slot : slot + 1] for name in ("ids", "positions", "segments")}
            step = replace(target, **cut, slots={}, layout=layout_of(torch.ones(4, 1, dtype=torch.bool)), past=cache)
            written = network.write(step, source, keep=True)
            found.append(written.last)
            cache = written.cache
        turned = network.write(
            replace(step, ids=step.ids.flip(0), past=None), source.select(torch.tensor([3, 2, 1, 0]))
        )
        plain = network.write(replace(step, past=None), source)
    states = torch.cat(found, 1)
    for row, length in enumerate(TARGET):
        torch.testing.assert_close(states[row, :length], whole[row, :length], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(turned.last.flip(0), plain.last, rtol=1e-5, atol=1e-5)
    assert len(source.made) == 2, "keys and values are made once"


def test_what_is_written_later_has_no_effect_and_the_source_has():
    network, given = network_of(), pair()
    plain = network(given).decoder.last
    ids = given.decoder.ids.clone()
    ids[1, 4] = 5 + (ids[1, 4] - 4) % (VOCABULARY - 5)
    later = network(replace(given, decoder=replace(given.decoder, ids=ids))).decoder.last
    assert torch.equal(later[1, :4], plain[1, :4])
    assert not torch.allclose(later[1, 4:], plain[1, 4:], atol=1e-3)
    ids = given.ids.clone()
    ids[1, 3] = 5 + (ids[1, 3] - 4) % (VOCABULARY - 5)
    other = network(replace(given, ids=ids)).decoder.last
    assert (other[1] - plain[1]).abs().amax(-1).gt(1e-4).all(), "every slot looks at the whole source"
    assert torch.equal(other[0], plain[0])


def test_a_source_is_what_its_rows_end_with():
    network, given = network_of(), pair()
    hidden = network(given)
    again = network.write(given.decoder, source_of(hidden.packed, hidden.layout))
    assert torch.equal(again.packed, hidden.decoder.packed)


def test_layers_of_a_decoder_may_share_weights():
    shared, apart = network_of(share="all"), network_of()
    assert sum(each.numel() for each in shared.parameters()) < sum(each.numel() for each in apart.parameters())
    lent = shared.state_dict()
    names = {name: name.replace("layers.1.", "layers.0.") for name in apart.state_dict()}
    apart.load_state_dict({name: lent[own] for name, own in names.items()})
    torch.testing.assert_close(shared(pair()).decoder.last, apart(pair()).decoder.last)
    initialise(apart, 0.3, 1)
    assert not torch.allclose(shared(pair()).decoder.last, apart(pair()).decoder.last, atol=1e-3)
