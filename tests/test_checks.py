"""Worked examples of the literature with their exact values."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_model import batch_of, inputs, rows_of, small_network
from test_flow import Given

from maskery.checkpoint.model import Model
from maskery.errors import RefusedError
from maskery.model import kernels
from maskery.model.config import SIZES, VISIBILITIES, ModelConfig
from maskery.model.flow import jacobian_pattern, reach, reach_two_streams, visible_row
from maskery.model.initial import initialise
from maskery.model.layout import layout_of
from maskery.model.positions import sinusoids
from maskery.model.transformer import Network, inputs_of, visibility_of
from maskery.recipes.recipe import check, recipe
from maskery.rows.modes import with_segments_by_mode
from maskery.system import System
from maskery.text.tokenizer import Tokenizer
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

UNILM = ["[CLS]", "你", "想", "吃", "啥", "[SEP]", "白", "切", "鸡", "[SEP]"]
IDS = [101, 872, 2682, 1391, 1567, 102, 4635, 1147, 7883, 102]
SHIFTED = {
    "visibility": {"kind": "prefix", "mixture": False},
    "corruption.rate": 0.0,
    "objectives": {"masked_token": False, "next_sentence": False, "next_token": {"weight": 1.0}},
    "model.layers": 2,
    "model.width": 16,
    "model.heads": 2,
}


@pytest.fixture(scope="module")
def chinese():
    """A vocabulary of 21,128 pieces in which these ten stand where BERT-Chinese has them."""
    pieces = [f"[unused{number}]" for number in range(21_128)]
    known = {0: "[PAD]", 100: "[UNK]", 103: "[MASK]"} | dict(zip(IDS, UNILM, strict=True))
    for number, piece in known.items():
        pieces[number] = piece
    return Tokenizer.from_pieces(pieces)


def prefix_batch(tokenizer, objectives=(), **changes):
    ids = np.array([tokenizer.id(piece) for piece in UNILM], dtype=np.int32)
    assert ids.tolist() == IDS
    ids[list(changes.get("slots", ()))] = changes.get("other", 0)
    second = (np.arange(10) > 5).astype(np.int32)
    plain = rows_of([10], chosen=0)
    rows = replace(
        plain,
        ids=ids,
        original=ids,
        document=second,
        segment=second.astype(np.uint8),
        mode=np.array([1], dtype=np.uint8),
    )
    return batch_of(with_segments_by_mode(rows), objectives)


def test_prefix_matrix(chinese):
    batch = prefix_batch(chinese)
    seen = visible_row(VISIBILITIES.get("prefix")(), batch, 0)
    assert torch.equal(seen, visible_row(visibility_of(batch), batch, 0))
    assert int(seen.sum()) == 70
    assert all(seen[row].nonzero().flatten().tolist() == list(range(6)) for row in range(6))
    assert all(seen[row].nonzero().flatten().tolist() == list(range(row + 1)) for row in range(6, 10))
    assert torch.equal(reach(seen, 3)[-1], seen), "closed: depth adds nothing"


def test_the_answer_never_changes_the_first_state(chinese):
    system = System(recipe("unilm", SHIFTED), chinese.vocabulary).eval()
    initialise(system, 0.3, 0)
    one, two = (prefix_batch(chinese, slots=slots, other=500) for slots in ((), (6, 7, 8)))
    assert one.segments[0].tolist() == [4] * 6 + [5] * 4
    with torch.no_grad():
        before, after = (system.network(inputs_of(each)).last[0] for each in (one, two))
        model = Model(system.network, {}, chinese)
        called = [model(each.ids, segments=each.segments, visibility="prefix").last[0] for each in (one, two)]
    assert torch.equal(before[:6], after[:6])
    assert all(not torch.allclose(before[slot], after[slot], atol=1e-3) for slot in range(6, 10))
    assert torch.equal(called[0], before)
    assert torch.equal(called[1], after)


def test_shifted_targets_of_the_prefix_row(chinese):
    system = System(recipe("unilm", SHIFTED).require(), chinese.vocabulary)
    batch = prefix_batch(chinese, ["next_token"])
    targets = batch.targets["next_token"]
    assert targets.index.tolist() == [5, 6, 7, 8]
    assert targets.label.tolist() == [4635, 1147, 7883, 102]
    system.require_no_leak(batch)
    full = replace(batch, slots=batch.slots | {"mode": torch.zeros_like(batch.slots["mode"])})
    with pytest.raises(RefusedError, match="next_token under full visibility: position 5 reaches its own answer"):
        system.require_no_leak(full)


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


def test_distances_are_for_positions_that_tell_them():
    """A clip that nobody reads would only change the type of the folder."""
    for scheme, key, refused in (
        ("learned", {"model.clip": 127}, "--set model.clip=64, or model.positions = "),
        ("nezha", {"model.clip": 127}, ""),
        ("nezha", {"model.buckets": 16}, '--set model.buckets=32, or model.positions = "t5"'),
        ("t5", {"model.clip": 128, "model.buckets": 16}, ""),
        ("learned", {"model.clip": 64}, ""),
    ):
        found = check(recipe("bert", {"model.positions": scheme, **key}))
        assert [each.piece for each in found] == ([next(iter(key))] if refused else [])
        assert all(each.repair.startswith(refused) for each in found)
