"""Positions told by distance: the whole network against the equations written out for every pair of slots, and T5's
buckets against transformers'."""

import math

import pytest
import torch
from small_model import inputs, small_network, small_shape

from maskery.model import kernels
from maskery.model.config import COUNTED, POSITIONS, RELATIVE, ModelConfig
from maskery.model.initial import initialise
from maskery.model.layout import layout_of
from maskery.model.plan import plan_attention
from maskery.model.positions import Places
from maskery.model.relative import Nezha, Relative, waves
from maskery.model.transformer import Network
from maskery.model.visibility import Full

TABLES = [name for name in POSITIONS.names() if issubclass(POSITIONS.get(name), Relative)]
"""Those whose distances are rows of a table; the others have tests of their own."""
CLIP = 3
SMALL = {"clip": CLIP, "buckets": 8, "max_length": 8}
LARGER = {"disentangled": {"clip": 9}, "mpnet": {"max_length": 48}}
"""Schemes for which the usual sizes of these tests are too little."""


def small(name):
    return SMALL | LARGER.get(name, {})


PADDED = torch.tensor(
    [[0, 0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0], [0, 1, 1, 1, 1, 1, 0], [1, 0, 1, 1, 0, 1, 1], [0, 0, 0, 0, 0, 1, 0]]
).bool()
GAPS = torch.tensor([[9, 2, 2, 40, 5, 6, 0], [3, 4, 5, 6, 7, 8, 9]])


def slow_bucket(distance, buckets, farthest):
    """Half of the buckets behind, half ahead; small distances one each, larger ones by their logarithm."""
    side, far = buckets // 2, abs(distance)
    exact = side // 2
    if far >= exact:
        share = math.log(far / exact) / math.log(farthest / exact)
        far = min(exact + int(share * (side - exact)), side - 1)
    return far + (side if distance > 0 else 0)


def knowledge(network, layer, distance):
    """(bias of each head, vector for the key, vector for the value) of one distance, by the papers."""
    shape, scheme = network.shape, network.embeddings.positions
    head, none = shape.width // shape.heads, torch.zeros(shape.heads)
    row = max(-shape.clip, min(shape.clip, distance)) + shape.clip
    if shape.positions == "nezha":
        angles = [row / 10000 ** ((k - k % 2) / head) for k in range(head)]
        wave = torch.tensor([math.cos(a) if k % 2 else math.sin(a) for k, a in enumerate(angles)])
        return none, wave, wave
    if shape.positions == "shaw":
        return none, scheme.keys[layer, row], scheme.contents[layer, row]
    table = scheme.distances if shape.positions == "mpnet" else scheme.table
    return table[slow_bucket(distance, shape.buckets, shape.clip)], torch.zeros(head), torch.zeros(head)


def slow_attention(network, layer, x, positions):
    """(t,D) -> (t,D): e_ij = q_i (k_j + a_ij) / sqrt(K) + b_ij and z_i = sum_j w_ij (v_j + a_ij), pair by pair."""
    attention, heads, length = network.layers[layer].attention, network.shape.heads, len(x)
    q, k, v = (
        (x @ weight.t() + bias).view(length, heads, -1)
        for weight, bias in zip(attention.inputs, attention.inputs_bias, strict=True)
    )
    mixed = []
    for i in range(length):
        scores, values = [], []
        for j in range(length):
            bias, key, value = knowledge(network, layer, int(positions[j] - positions[i]))
            scores.append((q[i] * (k[j] + key)).sum(-1) / q.shape[-1] ** 0.5 + bias)
            values.append(v[j] + value)
        weights = torch.stack(scores).softmax(0)
        mixed.append((weights.unsqueeze(-1) * torch.stack(values)).sum(0).flatten())
    return attention.output(torch.stack(mixed))


def slow_states(network, ids, positions):
    """The last states of one row without padding. At the input the segment's vector is added, and mpnet's positions."""
    embeddings = network.embeddings
    x = embeddings.tokens[ids] + embeddings.segments[0]
    x = embeddings.norm(x + embeddings.positions.table[positions] if network.shape.positions in COUNTED else x)
    for number, block in enumerate(network.layers):
        x = block.attention_norm(x + slow_attention(network, number, x, positions))
        x = block.feedforward_norm(x + block.down(torch.nn.functional.gelu(block.up(x))))
    return x


def with_gradients(network, states):
    """The states, and the gradients of all parameters of an uneven sum of them."""
    weights = torch.linspace(-1, 1, states.numel()).view_as(states)
    gradients = torch.autograd.grad((states * weights).sum(), list(network.parameters()), allow_unused=True)
    return states.detach(), gradients


def require_same(network, found, wanted):
    torch.testing.assert_close(found[0], wanted[0], rtol=1e-5, atol=1e-5)
    names = [name for name, _ in network.named_parameters()]
    for name, one, other in zip(names, found[1], wanted[1], strict=True):
        size = float(other.abs().max())
        assert size > 0 or name.endswith("inputs_bias"), name
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5 * max(1.0, size), msg=lambda text, n=name: n + text)


def rows(mask, seed=0):
    return torch.randint(5, 50, mask.shape, generator=torch.Generator().manual_seed(seed))


CASES = {
    "full rows": (torch.ones(3, 7, dtype=torch.bool), None),
    "padding on any side": (PADDED, None),
    "position numbers of any order": (torch.ones(2, 7, dtype=torch.bool), GAPS),
    "rows longer than max_length and all distances": (torch.ones(1, 21, dtype=torch.bool), None),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", TABLES)
def test_the_network_is_the_equations(name, case):
    mask, positions = CASES[case]
    network, ids = small_network(positions=name, **small(name)), rows(mask)
    positions = torch.arange(mask.shape[1]).expand(mask.shape) if positions is None else positions
    found = with_gradients(network, network(inputs(ids, layout_of(mask), positions=positions)).last[mask])
    slow = [slow_states(network, ids[n][real], positions[n][real]) for n, real in enumerate(mask)]
    require_same(network, found, with_gradients(network, torch.cat(slow)))


@pytest.mark.parametrize("name", TABLES)
def test_the_selected_slots_of_the_last_layer_are_the_equations(name):
    """Some rows are asked nothing, and whole groups of rows too."""
    mask = torch.arange(8) < torch.tensor([8, 8, 5, 3]).unsqueeze(1)
    network, ids = small_network(positions=name, **small(name)), rows(mask)
    asked = torch.tensor([1, 7, 19])
    hidden = network(inputs(ids, layout_of(mask)), reads=asked)
    assert hidden.selection is not None
    found = with_gradients(network, hidden.select(asked))
    slow = [slow_states(network, ids[n][real], torch.arange(8)[real]) for n, real in enumerate(mask)]
    require_same(network, found, with_gradients(network, torch.stack([slow[0][1], slow[0][7], slow[2][3]])))


@pytest.mark.parametrize("name", RELATIVE)
def test_weights_can_be_captured_and_change_nothing(name):
    network = small_network(positions=name, **small(name))
    given = inputs(rows(PADDED), layout_of(PADDED))
    plain, watched = network(given), network(given, attentions=True)
    torch.testing.assert_close(watched.packed, plain.packed, rtol=1e-5, atol=1e-5)
    assert len(watched.attentions) == 2
    for weights in watched.attentions:
        torch.testing.assert_close(weights.sum(-1), PADDED[:, None].expand(-1, 2, -1).float())


@pytest.mark.parametrize("name", RELATIVE)
def test_only_distances_count(name):
    """Where counting begins has no effect; how large the steps are has."""
    network = small_network(positions=name, **small(name))
    mask = torch.ones(1, 6, dtype=torch.bool)

    def states(positions):
        with torch.no_grad():
            return network(inputs(rows(mask), layout_of(mask), positions=positions[None])).last

    plain = states(torch.arange(6))
    turned = POSITIONS.get(name).turns_only  # by angles, whose sines of large positions round
    torch.testing.assert_close(states(torch.arange(6) + 1000), plain, rtol=0, atol=1e-4 if turned else 0)
    assert not torch.allclose(states(torch.arange(6) * 2), plain, atol=1e-3)
    assert not torch.allclose(states(torch.arange(6).flip(0)), plain, atol=1e-3), "before and behind are not the same"


def test_which_rows_count_up_by_one():
    def counting(positions, mask=None):
        mask = torch.ones(positions.shape, dtype=torch.bool) if mask is None else mask
        segments = torch.zeros_like(positions)
        plan = plan_attention(layout_of(mask), Full(), {}, positions, segments, dropout=0.0, capture=False)
        return plan.counting

    assert counting(torch.arange(4).expand(2, 4))
    assert counting(torch.tensor([[3, 4, 5], [0, 1, 2]])), "each row from where it begins"
    assert counting(torch.tensor([[5]]))
    assert not counting(torch.tensor([[0, 1, 2], [0, 1, 3]]))
    assert not counting(torch.tensor([[2, 1, 0]]))
    assert not counting(torch.arange(4).expand(1, 4), torch.tensor([[True, False, True, True]]))
    assert counting(torch.tensor([[0, 1, 9, 9]]), torch.tensor([[True, True, False, False]])), "padding has no number"


def test_kernels_for_positions_in_attention():
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert kernels.choose(8, cpu, 0.1, True, False, True) == "distance"
    assert kernels.choose(kernels.SDPA_FROM, cpu, 0.0, True, False, True) == "distance", "sdpa knows no distances"
    assert kernels.choose(8, cpu, 0.0, True, True, True) == "explicit"
    assert kernels.choose(8, gpu, 0.0, True, False, True) == "explicit"


def test_the_names_are_those_of_the_registry():
    assert {name for name in POSITIONS.names() if POSITIONS.get(name).by_distance} == set(TABLES)
    assert set(TABLES) - set(COUNTED) < set(RELATIVE), "mpnet has positions at the input, too"
    assert all(POSITIONS.get(name).in_attention for name in RELATIVE)


@pytest.mark.parametrize("head", [1, 4, 7, 64])
def test_nezha_has_waves_of_the_row_number(head):
    """Clip 64 tells 129 distances apart; the first row is distance -64, that of the farthest key on the left."""
    scheme = Nezha(small_shape(positions="nezha", width=2 * head, heads=2, clip=64))
    tables = scheme.tables(0, torch.zeros(1))
    assert tables.bias is None
    assert tables.values is tables.keys
    assert tables.keys.shape == (129, head)
    assert tables.keys.dtype == torch.float32
    for row in (0, 1, 64, 128):
        for k in range(head):
            angle = row / 10000 ** ((k - k % 2) / head)
            assert float(tables.keys[row, k]) == pytest.approx(math.cos(angle) if k % 2 else math.sin(angle), abs=1e-5)
    distances = torch.tensor([-500, -65, -64, -1, 0, 1, 63, 64, 65, 500])
    assert scheme.row(distances).tolist() == [0, 0, 0, 63, 64, 65, 127, 128, 128, 128]


def test_nezha_has_no_weights_and_its_waves_are_made_once():
    network = small_network(positions="nezha")
    assert not [name for name in network.state_dict() if "position" in name]
    assert network.embeddings.positions.limit is None
    assert waves(9, 4, torch.device("cpu")) is waves(9, 4, torch.device("cpu"))
    half = small_network(positions="nezha").to(torch.bfloat16)
    mask = torch.ones(2, 9, dtype=torch.bool)
    states = half(inputs(rows(mask), layout_of(mask))).last
    assert states.dtype == torch.bfloat16
    exact = network(inputs(rows(mask), layout_of(mask))).last
    assert (states.float() - exact).abs().max() < 0.15
    assert half.embeddings.positions.tables(0, torch.zeros(1)).keys.dtype == torch.float32


def test_waves_first_made_in_inference_can_be_trained_with():
    waves.cache_clear()
    network, mask = small_network(positions="nezha"), torch.ones(1, 5, dtype=torch.bool)
    with torch.inference_mode():
        network(inputs(rows(mask), layout_of(mask)))
    network(inputs(rows(mask), layout_of(mask)), attentions=True).packed.sum().backward()


@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (32, 64), (8, 20), (4, 3), (10, 128)])
def test_t5_buckets_are_those_of_transformers(buckets, farthest):
    from transformers.models.t5.modeling_t5 import T5Attention

    scheme = POSITIONS.get("t5")(small_shape(positions="t5", buckets=buckets, clip=farthest))
    distances = torch.arange(-700, 701)
    theirs = T5Attention._relative_position_bucket(distances, True, num_buckets=buckets, max_distance=farthest)
    assert torch.equal(scheme.row(distances), theirs)
    assert {0, buckets // 2 - 1} <= set(theirs.tolist())


def test_t5_bias_is_that_of_transformers():
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention

    config = T5Config(
        d_model=16, num_heads=2, d_kv=8, relative_attention_num_buckets=8, relative_attention_max_distance=20
    )
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    scheme = POSITIONS.get("t5")(small_shape(positions="t5", buckets=8, clip=20))
    with torch.no_grad():
        scheme.table.copy_(theirs.relative_attention_bias.weight.normal_())
        places = Places(torch.arange(30)[None], torch.arange(30)[None])
        found = scheme.scores(0, torch.zeros(1, 2, 30, 8), places)
        assert torch.equal(found, theirs.compute_bias(30, 30))


def parameters(name, **changes):
    network = Network(small_shape(positions=name, layers=4, **changes), pooler=False)
    return {key: tuple(value.shape) for key, value in network.named_parameters() if "positions" in key}


def test_what_each_scheme_has_to_learn():
    keys, contents = "embeddings.positions.keys", "embeddings.positions.contents"
    assert parameters("nezha") == {}
    assert parameters("t5", buckets=8) == {"embeddings.positions.table": (8, 2)}, "one table for all layers"
    assert parameters("mpnet", buckets=8, max_length=9, position_offset=2) == {
        "embeddings.positions.table": (11, 16),
        "embeddings.positions.distances": (8, 2),
    }
    assert parameters("shaw", clip=5) == {keys: (4, 11, 8), contents: (4, 11, 8)}
    assert parameters("shaw", clip=5, share="all") == {keys: (1, 11, 8), contents: (1, 11, 8)}
    assert parameters("shaw", clip=5, share="attention", groups=2) == {keys: (2, 11, 8), contents: (2, 11, 8)}
    assert parameters("shaw", clip=5, share="feedforward") == {keys: (4, 11, 8), contents: (4, 11, 8)}


def test_layers_that_share_attention_read_one_table():
    scheme = POSITIONS.get("shaw")(small_shape(positions="shaw", layers=4, share="all", groups=2))
    initialise(scheme, 0.02, 0)
    first, *others = [scheme.tables(layer, torch.zeros(1)).keys for layer in range(4)]
    assert [torch.equal(first, other) for other in others] == [True, False, False]


def test_learned_tables_begin_as_published_and_decay():
    from maskery.train.optimizers import decays

    network = Network(small_shape(positions="shaw", clip=64), pooler=False)
    initialise(network, 0.02, 0)
    for name, value in network.embeddings.positions.named_parameters():
        assert 0.015 < float(value.detach().std()) < 0.02
        assert float(value.detach().abs().max()) <= 0.04
        assert decays(f"embeddings.positions.{name}", value)


@pytest.mark.parametrize(("clip", "buckets"), [(8, 32), (1, 4)])
def test_buckets_that_cannot_grow_are_refused(clip, buckets):
    with pytest.raises(ValueError, match="leaves no room for buckets that grow"):
        ModelConfig(positions="t5", clip=clip, buckets=buckets)
    ModelConfig(positions="nezha", clip=clip, buckets=buckets)


def test_memory_is_planned_for_the_kernel_that_runs():
    from maskery.train.memory import kernel_for

    long = kernels.SDPA_FROM
    assert kernel_for(small_shape(positions="learned"), long) == "sdpa"
    assert {kernel_for(small_shape(positions=name), long) for name in TABLES} == {"distance"}
