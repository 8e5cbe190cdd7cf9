"""Worked examples of the literature with their exact values."""

import pytest
import torch
from small_model import batch_of, inputs, rows_of, small_network, small_shape
from test_flow import Given

from maskery.model import kernels
from maskery.model.config import SIZES, ModelConfig
from maskery.model.flow import jacobian_pattern, reach, reach_two_streams
from maskery.model.initial import initialise
from maskery.model.layout import layout_of
from maskery.model.positions import sinusoids
from maskery.model.transformer import Network
from maskery.model.visibility import Causal, Predicate, dense, view_of_rows
from maskery.objectives.config import OBJECTIVES
from maskery.recipes.recipe import recipe
from maskery.rows.ragged import Rows
from maskery.system import System
from maskery.train.schedules import rate

# Orders of factorisation: slots are counted from 1, as in the text


def sets(matrix):
    return {row + 1: {int(k) + 1 for k in seen.nonzero().flatten()} for row, seen in enumerate(matrix)}


def matrix(seen, size):
    return torch.tensor([[k in seen[q] for k in range(1, size + 1)] for q in range(1, size + 1)])


def streams(order):
    """Content sees what comes no later in the order, the query stream only what comes before."""
    rank = {slot: place for place, slot in enumerate(order)}
    slots = range(1, len(order) + 1)
    content = {q: {k for k in slots if rank[k] <= rank[q]} for q in slots}
    query = {q: {k for k in slots if rank[k] < rank[q]} for q in slots}
    return matrix(content, len(order)), matrix(query, len(order))


def test_order_3241_content_and_query():
    content, query = streams([3, 2, 4, 1])
    assert sets(content) == {1: {1, 2, 3, 4}, 2: {2, 3}, 3: {3}, 4: {2, 3, 4}}
    assert sets(query) == {1: {2, 3, 4}, 2: {3}, 3: set(), 4: {2, 3}}


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ([3, 2, 4, 1], {1: {2, 3, 4}, 2: {3}, 3: set(), 4: {2, 3}}),
        ([4, 2, 1, 5, 3], {1: {2, 4}, 2: {4}, 3: {1, 2, 4, 5}, 4: set(), 5: {1, 2, 4}}),
        ([2, 1, 5, 3, 4], {1: {2}, 2: set(), 3: {1, 2, 5}, 4: {1, 2, 3, 5}, 5: {1, 2}}),
        ([1, 2, 3, 4, 5], {1: set(), 2: {1}, 3: {1, 2}, 4: {1, 2, 3}, 5: {1, 2, 3, 4}}),
        ([5, 4, 3, 2, 1], {1: {2, 3, 4, 5}, 2: {3, 4, 5}, 3: {4, 5}, 4: {5}, 5: set()}),
    ],
    ids=str,
)
def test_two_streams_keep_their_sets_at_every_depth(order, expected):
    steps = reach_two_streams(*streams(order), layers=5)
    assert sets(steps[0]) == {slot: set() for slot in expected}
    assert [sets(step) for step in steps[1:]] == [expected] * 5


def test_one_stream_with_the_query_matrix_forgets():
    """Slot 4 knows {3} after two layers: it reads 2, which knows {3}, and 3, which knows nothing."""
    _, query = streams([3, 2, 4, 1])
    steps = [sets(step) for step in reach(query, 3, residual=False)]
    assert steps[1] == {1: {2, 3, 4}, 2: {3}, 3: set(), 4: {2, 3}}
    assert steps[2] == {1: {2, 3}, 2: set(), 3: set(), 4: {3}}
    assert steps[3] == {1: {3}, 2: set(), 3: set(), 4: set()}


@pytest.mark.parametrize("size", [2, 3, 6])
def test_full_without_the_diagonal_sees_itself_in_the_second_layer(size):
    apart = ~torch.eye(size, dtype=torch.bool)
    steps = reach(apart, 2, residual=False)
    assert not steps[1].diagonal().any()
    assert steps[2].diagonal().all()


# A prefix that sees itself, and a continuation that sees to the left

UNILM = [101, 872, 2682, 1391, 1567, 102, 4635, 1147, 7883, 102]


class Prefix:
    """Everybody sees the first six slots; beyond them, to the left."""

    needs = ()

    def bind(self, view):
        return Predicate(lambda b, h, q, k: (view.k_pos[b, k] < 6) & (q >= 0)) | Causal().bind(view)


def test_prefix_matrix():
    view = view_of_rows(10, {}, 1, torch.device("cpu"))
    seen = dense(Prefix().bind(view), view)[0, 0]
    assert int(seen.sum()) == 70
    assert all(seen[row].nonzero().flatten().tolist() == list(range(6)) for row in range(6))
    assert all(seen[row].nonzero().flatten().tolist() == list(range(row + 1)) for row in range(6, 10))
    assert torch.equal(reach(seen, 3)[-1], seen), "closed: depth adds nothing"


def test_the_answer_never_changes_the_first_state():
    network = Network(small_shape().model_copy(update={"vocabulary": 21_128}), pooler=False).eval()
    initialise(network, 0.3, 0)
    network.visibility = Prefix()
    layout = layout_of(torch.ones(1, 10, dtype=torch.bool))
    ids = torch.tensor([UNILM])
    other = ids.clone()
    other[0, 6:9] = torch.tensor([500, 600, 700])
    with torch.no_grad():
        one, two = (network(inputs(each, layout)).last[0] for each in (ids, other))
    assert torch.equal(one[:6], two[:6])
    assert all(not torch.allclose(one[slot], two[slot], atol=1e-3) for slot in range(6, 10))


def test_shifted_targets_of_the_prefix_row():
    plain = rows_of([10], chosen=0)
    ids = torch.tensor(UNILM).numpy().astype("int32")
    values = {name: getattr(plain, name) for name in plain.__dataclass_fields__} | {"ids": ids, "original": ids}
    targets = OBJECTIVES.get("next_token")().ask(Rows(**values), 10)
    found = dict(zip(targets.index.tolist(), targets.label.tolist(), strict=True))
    assert {slot: found[slot] for slot in (5, 6, 7, 8)} == {5: 4635, 6: 1147, 7: 7883, 8: 102}


def test_the_naive_stream_in_a_real_network():
    """The pattern of a real Jacobian, residual included, is the algebra's."""
    _, query = streams([3, 2, 4, 1])
    network = small_network()
    network.visibility = Given(query)
    assert torch.equal(jacobian_pattern(network, batch_of(rows_of([4])), 0), reach(query, 2)[-1])


# Training


def test_rates_of_bert():
    training = recipe("bert").training
    found = [rate(training, step) for step in (5_000, 10_000, 505_000, 1_000_000)]
    assert found == pytest.approx([5e-5, 1e-4, 5e-5, 0], rel=1e-12)
    google = training.model_copy(update={"decay": "google"})
    assert [rate(google, step) for step in (10_000, 505_000)] == pytest.approx([9.9e-5, 4.95e-5], rel=1e-12)


# Sizes


def network_of(vocabulary, *, pooler=True, **changes):
    with torch.device("meta"):
        return Network(ModelConfig(**changes).shape(vocabulary), pooler=pooler)


def count(module):
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(
    ("size", "vocabulary", "expected"),
    [
        ("tiny", 30_522, 4_385_920),
        ("mini", 30_522, 11_170_560),
        ("small", 30_522, 28_763_648),
        ("medium", 30_522, 41_373_184),
        ("base", 30_522, 109_482_240),
        ("base", 28_996, 108_310_272),
        ("base", 21_128, 102_267_648),
        ("base", 119_547, 177_853_440),
        ("large", 30_522, 335_141_888),
        ("large", 28_996, 333_579_264),
        ("large", 21_128, 325_522_432),
    ],
)
def test_parameters_with_pooler(size, vocabulary, expected):
    assert count(network_of(vocabulary, **SIZES[size])) == expected


def test_parameters_of_other_shapes():
    assert count(network_of(30_000, layers=24, width=2048, heads=16)) == 1_275_291_648
    roberta = {"position_offset": 2, "segments": 1}
    assert count(network_of(50_265, pooler=False, **roberta)) == 124_055_040
    assert count(network_of(50_265, pooler=True, **roberta)) == 124_645_632
    assert count(network_of(50_265, pooler=False, **roberta, **SIZES["large"])) == 354_310_144


@pytest.mark.parametrize(("size", "expected"), [("base", 110_106_428), ("large", 336_226_108)])
def test_parameters_with_heads(size, expected):
    with torch.device("meta"):
        assert count(System(recipe("bert", size=size), 30_522)) == expected


def test_parameters_of_a_layer():
    network = network_of(30_522)
    assert [count(layer) for layer in network.layers] == [7_087_872] * 12
    matrices = [p for p in network.layers.parameters() if p.dim() > 1 and p.shape != (3, 768)]
    assert sum(p.numel() for p in matrices) == 84_934_656 == 12 * 12 * 768**2
    layer = network.layers[0]
    assert layer.attention.inputs.numel() + layer.attention.output.weight.numel() == 2_359_296
    assert layer.up.weight.numel() + layer.down.weight.numel() == 4_718_592


def test_factorised_embedding():
    wide, narrow = network_of(30_000), network_of(30_000, embedding=128)
    assert wide.embeddings.tokens.numel() == 23_040_000
    weights = narrow.embeddings.tokens.numel() + narrow.embeddings.projection.weight.numel()
    assert weights == 3_938_304
    assert 23_040_000 - weights == 19_101_696


# Mathematics


def test_sinusoids_of_width_four():
    found = sinusoids(torch.tensor([0, 1]), 4)
    expected = torch.tensor([[0, 1, 0, 1], [0.841471, 0.540302, 0.010000, 0.999950]])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("positions", ["none", "learned", "sinusoidal"])
def test_exchanged_words(positions):
    network = small_network(positions=positions)
    layout = layout_of(torch.ones(1, 3, dtype=torch.bool))
    with torch.no_grad():
        abc = network(inputs(torch.tensor([[10, 20, 30]]), layout)).last
        acb = network(inputs(torch.tensor([[10, 30, 20]]), layout)).last
    same = torch.allclose(acb, abc[:, [0, 2, 1]], rtol=0, atol=1e-6)
    assert same == (positions == "none")


@pytest.mark.parametrize(("width", "unscaled", "scaled"), [(64, 0.79, 0.106), (512, 0.92, 0.107)])
def test_scores_are_scaled(width, unscaled, scaled):
    """The mean largest weight over 64 keys; a query made longer by sqrt(width) undoes the scale."""
    draw = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, 1, rows, width, generator=draw) for rows in (64, 64))
    many = torch.randn(40, 1, 64, width, generator=draw)
    plain = kernels.explicit(many, k.expand(40, -1, -1, -1), k.expand(40, -1, -1, -1), None, 0.0)[1]
    loud = kernels.explicit(many * width**0.5, k.expand(40, -1, -1, -1), k.expand(40, -1, -1, -1), None, 0.0)[1]
    assert float(plain.amax(-1).mean()) == pytest.approx(scaled, abs=0.01)
    assert float(loud.amax(-1).mean()) == pytest.approx(unscaled, abs=0.02)
    products = (q @ k.transpose(-1, -2)).flatten()
    assert float(products.var()) == pytest.approx(width, rel=0.15)
