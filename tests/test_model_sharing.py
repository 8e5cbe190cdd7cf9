"""Layers that share weights, against a network of the same weights in which every layer has its own."""

import copy
import pickle

import pytest
import torch
from small_model import VOCABULARY, inputs, small_network, small_recipe, small_shape

from maskery.errors import MaskeryError
from maskery.model.initial import initialise
from maskery.model.layout import layout_of
from maskery.model.plan import plan_attention
from maskery.model.transformer import Network
from maskery.system import System
from maskery.train.shards import layers_apart

ATTENTION, FEEDFORWARD = ("attention.", "attention_norm."), ("up.", "down.", "feedforward_norm.")
HALVES = {"none": (), "all": ATTENTION + FEEDFORWARD, "attention": ATTENTION, "feedforward": FEEDFORWARD}
LAYERS = 6
SHARES = [(share, groups) for share in ("all", "attention", "feedforward") for groups in (1, 2, 3, 6)]
every_share = pytest.mark.parametrize(("share", "groups"), SHARES)


def owner(name, share, groups, layers=LAYERS):
    """The name under which a weight of a network without sharing is found in one with it, by ALBERT's own formula for
    the group of a layer."""
    if not name.startswith("layers."):
        return name
    _, layer, rest = name.split(".", 2)
    group = int(int(layer) / (layers / groups))
    first = min(number for number in range(layers) if int(number / (layers / groups)) == group)
    return f"layers.{first}.{rest}" if rest.startswith(HALVES[share]) else name


def shared_and_apart(share, groups, **changes):
    """Two networks of the same function: one shares, one has a copy of the weights for each layer."""
    changes = {"layers": LAYERS, "pooler": True, "embedding": 8, **changes}
    shared = small_network(share=share, groups=groups, **changes).double()
    apart = small_network(**changes).double()
    lent = shared.state_dict()
    apart.load_state_dict({name: lent[owner(name, share, groups)] for name in apart.state_dict()})
    return shared, apart


def read(lengths=(5, 9, 5, 2), seed=0):
    draw = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return inputs(torch.randint(5, VOCABULARY, mask.shape, generator=draw), layout_of(mask))


def keyed(network, **options):
    torch.manual_seed(1)
    return network(read(), **options)


@every_share
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_gradient_is_the_sum_over_all_uses(share, groups, norm):
    shared, apart = shared_and_apart(share, groups, norm=norm)
    for network in (shared, apart):
        hidden = network(read())
        (hidden.packed.square().sum() + hidden.pooled.sin().sum()).backward()
    summed = {}
    for name, value in apart.named_parameters():
        place = owner(name, share, groups)
        summed[place] = summed.get(place, 0) + value.grad
    found = {name: value.grad for name, value in shared.named_parameters()}
    assert found.keys() == summed.keys()
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, summed[name], rtol=1e-9, atol=1e-9, msg=name)
    uses = sum(owner(f"layers.{n}.up.weight", share, groups) == "layers.0.up.weight" for n in range(LAYERS))
    assert uses == (1 if share == "attention" else LAYERS // groups)


@every_share
def test_what_is_seen_inside_is_the_same(share, groups):
    shared, apart = shared_and_apart(share, groups)
    ours, theirs = (network(read(), layers=True, attentions=True) for network in (shared, apart))
    assert (len(ours.layers), len(ours.attentions)) == (LAYERS + 1, LAYERS)
    for one, other in zip((*ours.layers, *ours.attentions), (*theirs.layers, *theirs.attentions), strict=True):
        assert torch.equal(one, other)
    assert torch.equal(ours.pooled, theirs.pooled)
    assert not torch.equal(ours.layers[1], ours.layers[2]), "a layer used twice does not stand still"


@pytest.mark.parametrize("share", ["all", "attention", "feedforward"])
def test_the_last_layer_computes_what_is_read(share):
    shared, _ = shared_and_apart(share, 2)
    index = torch.tensor([3, 12])
    some, every = shared(read(), reads=index), shared(read())
    assert some.selection is not None
    torch.testing.assert_close(some.select(index), every.select(index))
    torch.testing.assert_close(some.pooled, every.pooled)


@pytest.mark.parametrize("share", ["all", "attention", "feedforward"])
def test_every_layer_has_dropout_of_its_own(share):
    shared, apart = (network.train() for network in shared_and_apart(share, 1, dropout=0.3, attention_dropout=0.3))
    once, again, other = (keyed(network, layers=True) for network in (shared, shared, apart))
    assert all(torch.equal(one, two) for one, two in zip(once.layers, again.layers, strict=True))
    assert all(torch.equal(one, two) for one, two in zip(once.layers, other.layers, strict=True))
    assert not torch.equal(once.last, shared.eval()(read()).last)


@every_share
def test_weights_are_named_at_their_owner(share, groups):
    shared, apart = shared_and_apart(share, groups)
    names = {owner(name, share, groups) for name in apart.state_dict()}
    assert set(shared.state_dict()) == names
    assert {name for name, _ in shared.named_parameters()} == names


@pytest.mark.parametrize("share", ["all", "attention", "feedforward"])
def test_first_weights_are_drawn_once_by_the_owners_name(share):
    shared, plain = small_network(layers=4, share=share, groups=2), small_network(layers=4)
    theirs = plain.state_dict()
    for name, value in shared.state_dict().items():
        assert torch.equal(value, theirs[name]), name


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda network: pickle.loads(pickle.dumps(network)),
    "state": lambda network: _filled(Network(network.shape, pooler=True), network),
    "meta": lambda network: _filled(_meta(network.shape).to_empty(device="cpu"), network),
    "assigned": lambda network: _filled(_meta(network.shape), network, assign=True),
}


def _meta(shape):
    with torch.device("meta"):
        return Network(shape, pooler=True)


def _filled(empty, network, **how):
    empty.load_state_dict({name: value.clone() for name, value in network.state_dict().items()}, **how)
    return empty.eval()


@pytest.mark.parametrize("share", ["all", "attention", "feedforward"])
@pytest.mark.parametrize("way", COPIES)
def test_a_copy_shares_within_itself(way, share):
    network = small_network(layers=4, share=share, groups=2, pooler=True)
    before = network(read()).last
    made = COPIES[way](network)
    assert torch.equal(made(read()).last, before)
    assert sum(each.numel() for each in made.parameters()) == sum(each.numel() for each in network.parameters())
    with torch.no_grad():
        made.layers[2].attention_norm.weight.mul_(2.0)
        made.layers[2].feedforward_norm.weight.mul_(2.0)
    assert torch.equal(network(read()).last, before), "the original does not follow"
    kept, changed = network(read(), layers=True).layers, made(read(), layers=True).layers
    assert [torch.equal(one, two) for one, two in zip(kept, changed, strict=True)] == [True, True, True, False, False]
    last = made.layers[3](kept[3].flatten(0, 1), *_plan(network))[0]
    assert not torch.equal(last, network.layers[3](kept[3].flatten(0, 1), *_plan(network))[0]), "borrowed weights do"


def _plan(network):
    rows = read((9, 9, 9, 9))
    facts = rows.slots, rows.positions, rows.segments
    plan = plan_attention(rows.layout, network.visibility, *facts, dropout=0.0, capture=False)
    return plan, network.embeddings.positions


def test_another_number_type_reaches_every_layer():
    network = small_network(layers=3, share="all", pooler=True).to(torch.float64)
    assert network(read()).last.dtype == torch.float64


@pytest.mark.parametrize(
    ("changes", "apart"),
    [
        ({}, [0, 1, 2, 3]),
        ({"share": "all"}, []),
        ({"share": "attention", "groups": 2}, []),
        ({"share": "feedforward", "groups": 4}, [0, 1, 2, 3]),
    ],
    ids=["none", "all", "two groups", "groups of one"],
)
def test_shards_are_cut_by_layers_that_have_their_own_weights(changes, apart):
    recipe = small_recipe("bert", model__layers=4, **{f"model__{key}": value for key, value in changes.items()})
    assert [block.layer for block in layers_apart(System(recipe, VOCABULARY))] == apart


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"share": "all", "groups": 4, "layers": 6}, "layers 6 is not a multiple of groups 4"),
        ({"groups": 2}, "groups 2 share nothing while share is 'none'"),
        ({"share": "everything"}, "must be 'none', 'all', 'attention' or 'feedforward'"),
        ({"share": "all", "groups": 0}, "greater than or equal to 1"),
    ],
    ids=["not a multiple", "nothing shared", "unknown", "no group"],
)
def test_what_cannot_be_shared(changes, said):
    with pytest.raises(MaskeryError, match=said):
        small_recipe("bert", **{f"model__{key}": value for key, value in changes.items()})


def test_a_network_on_the_meta_device_costs_nothing():
    with torch.device("meta"):
        network = Network(small_shape(layers=5, share="all"), pooler=True)
    assert all(each.is_meta for each in network.parameters())
    ready = network.to_empty(device="cpu").eval()
    initialise(ready, 0.3, 0)
    assert torch.equal(ready(read()).last, small_network(layers=5, share="all", pooler=True)(read()).last)
