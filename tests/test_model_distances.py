"""The quick kernel for positions told by distance: its views, its numbers and gradients, its dropout, and that the same
step gives the same bits again."""

import pytest
import torch
from small_model import inputs, small_batch, small_network

from maskery.model.config import RELATIVE
from maskery.model.distances import DistanceAttention, window
from maskery.model.dropout import draw, keep_scale, kept
from maskery.model.layout import layout_of
from maskery.model.positions import Places
from maskery.model.transformer import inputs_of

HEADS, HEAD_WIDTH = 3, 4
LENGTHS = {"one group": [5, 5], "several": [3, 7, 1, 3], "with an empty row": [0, 4, 2], "one slot": [1, 2]}
MASKS = ("none", "causal", "blind")


def drawn(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def case(lengths, mask, dtype=torch.float32):
    """Groups, masks, qkv and the three tables of a batch of rows."""
    groups = layout_of(torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)).groups
    masks = []
    for group in groups:
        size = (group.rows, 1, group.length, group.length)
        causal = torch.ones(size, dtype=torch.bool).tril()
        blind = drawn(*size, seed=3) < 0.3
        blind[..., 0, :] = False
        masks.append({"none": None, "causal": causal, "blind": blind}[mask])
    distances = 2 * groups[-1].length - 1
    tables = [
        drawn(distances, width, seed=n, dtype=dtype) for n, width in enumerate((HEADS, HEAD_WIDTH, HEAD_WIDTH), 1)
    ]
    return groups, masks, [drawn(groups[-1].stop, 3 * HEADS * HEAD_WIDTH, dtype=dtype), *tables]


def slow(groups, masks, given, gone=None, scale=1.0):
    """One row, head and query at a time; `gone` are dropped weights (b,H,t,t) of each group."""
    qkv, bias, keys, values = given
    middle = len(bias) // 2
    out = []
    for number, (group, mask) in enumerate(zip(groups, masks, strict=True)):
        for row in range(group.rows):
            at = group.start + row * group.length
            q, k, v = qkv[at : at + group.length].view(group.length, 3, HEADS, HEAD_WIDTH).unbind(1)
            for query in range(group.length):
                near = slice(middle - query, middle - query + group.length)
                seen = torch.ones(group.length, dtype=torch.bool) if mask is None else mask[row, 0, query]
                for head in range(HEADS):
                    weights = torch.zeros(group.length, dtype=qkv.dtype)
                    if seen.any():
                        scores = (k[:, head] + keys[near]) @ q[query, head] / HEAD_WIDTH**0.5 + bias[near, head]
                        weights = weights.masked_scatter(seen, scores[seen].softmax(0))
                    if gone is not None:
                        weights = weights * ~gone[number][row, head, query] * scale
                    out.append(weights @ (v[:, head] + values[near]))
    return torch.stack(out).view(len(qkv), -1)


def with_gradients(compute, given):
    leaves = [each.clone().requires_grad_() for each in given]
    out = compute(leaves)
    weights = drawn(*out.shape, seed=9)
    return out.detach(), torch.autograd.grad((out * weights).sum(), leaves)


def quick(groups, masks, p=0.0):
    return lambda given: DistanceAttention.apply(*given, groups, masks, HEADS, p)


def test_a_window_is_a_view_of_all_distances():
    table = torch.arange(9).float().unsqueeze(1).expand(9, 2).contiguous()
    for length in (1, 3, 5):
        found = window(table, length)
        assert found.data_ptr() >= table.data_ptr()
        assert found.shape == (length, length, 2)
        for i in range(length):
            for j in range(length):
                distance = j - (length - 1 - i)
                assert found[i, j].tolist() == [4 + distance] * 2
    assert torch.equal(window(table[2:7], 3), window(table, 3)), "a part of a larger table"


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_the_kernel_is_the_formula(lengths, mask):
    groups, masks, given = case(lengths, mask)
    found, gradients = with_gradients(quick(groups, masks), given)
    wanted, expected = with_gradients(lambda leaves: slow(groups, masks, leaves), given)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradients, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mask", ["none", "blind"])
def test_dropout_is_the_formula_with_the_drawn_mask(mask):
    """Numbers are drawn for the reversed queries."""
    groups, masks, given = case([3, 7, 1, 3], mask)
    p = 0.3
    torch.manual_seed(11)
    gone = []
    for group in groups:
        numbers = draw(torch.Size((group.rows * HEADS, group.length, group.length)))
        gone.append((kept(numbers, p) == 0).flip(1).view(group.rows, HEADS, group.length, group.length))
    assert any(each.any() for each in gone)
    torch.manual_seed(11)
    found, gradients = with_gradients(quick(groups, masks, p), given)
    wanted, expected = with_gradients(lambda leaves: slow(groups, masks, leaves, gone, keep_scale(p)), given)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradients, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("without", [0, 1, 2, (0, 1), (1, 2)], ids=str)
def test_any_table_may_be_missing(without):
    groups, masks, given = case([3, 5], "causal")
    missing = [without] if isinstance(without, int) else without
    zeros = [torch.zeros_like(each) if n - 1 in missing else each for n, each in enumerate(given)]
    nothing = [None if n - 1 in missing else each for n, each in enumerate(given)]
    torch.testing.assert_close(quick(groups, masks)(nothing), slow(groups, masks, zeros), rtol=1e-5, atol=1e-5)


def test_gradients_by_finite_differences():
    groups, masks, given = case([2, 4, 4], "blind", torch.float64)
    leaves = [each.requires_grad_() for each in given]
    assert torch.autograd.gradcheck(lambda *inside: quick(groups, masks)(inside), leaves)


def test_a_table_that_is_longer_than_a_block_of_queries():
    """The gradient of a table is added up block by block."""
    groups, masks, given = case([70, 33], "none")
    gradients = with_gradients(quick(groups, masks), given)[1]
    double = [each.double() for each in given]
    expected = with_gradients(quick(groups, masks), double)[1]
    for one, other in zip(gradients, expected, strict=True):
        assert (one - other).abs().max() < 1e-5 * other.abs().max()
    small = case([33, 33], "none")
    wanted = with_gradients(lambda leaves: slow(*small[:2], leaves), small[2])[1]
    torch.testing.assert_close(with_gradients(quick(*small[:2]), small[2])[1], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("lengths", [[1], [3, 5]], ids=["one slot", "several"])
def test_the_forward_pass_leaves_what_it_was_given(lengths):
    """Also where the heads of a group need no copy."""
    groups, masks, given = case(lengths, "none")
    before = [each.clone() for each in given]
    quick(groups, masks, 0.5)(given)
    assert all(torch.equal(one, other) for one, other in zip(given, before, strict=True))


@pytest.mark.parametrize("counting", [True, False], ids=["counting", "any positions"])
@pytest.mark.parametrize("name", RELATIVE)
def test_the_same_step_gives_the_same_bits(name, counting):
    """With dropout and the selected slots of the last layer."""
    network = small_network(positions=name, clip=9, buckets=8, attention_dropout=0.1, dropout=0.1).train()
    batch = small_batch([40, 40, 23, 40, 31])
    mask = torch.arange(40) < batch.length.unsqueeze(1)
    places = batch.positions if counting else batch.positions // 2
    given = inputs_of(batch) if counting else inputs(batch.ids, layout_of(mask), positions=places)
    reads = batch.edit.flatten().nonzero().flatten()
    found = []
    for _ in range(2):
        torch.manual_seed(5)
        states = network(given, reads=reads).packed
        gradients = torch.autograd.grad(states.square().sum(), list(network.parameters()), allow_unused=True)
        found.append([states, *gradients])
    assert all(one is other or torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_sums_by_distance_do_not_depend_on_threads():
    """Where position numbers do not count up: one query's weights are added by one thread."""
    scheme = small_network(positions="shaw", clip=5).embeddings.positions
    numbers = torch.arange(64).expand(8, 64) // 2
    places = Places(numbers, numbers)
    q, weights = drawn(8, 2, 64, 8), drawn(8, 2, 64, 64).softmax(-1)

    def gradients(threads):
        torch.set_num_threads(threads)
        leaves = [q.clone().requires_grad_(), weights.clone().requires_grad_()]
        scores, values = scheme.scores(0, leaves[0], places), scheme.values(0, leaves[1], places)
        found = torch.autograd.grad(scores.square().sum() + values.square().sum(), leaves)
        return [scores, values, *found]

    before = torch.get_num_threads()
    try:
        assert all(torch.equal(one, other) for one, other in zip(gradients(1), gradients(2), strict=True))
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("name", RELATIVE)
def test_mixed_precision(name):
    """bfloat16 products under autocast: near the float32 numbers, gradients in the numbers of the weights."""
    network = small_network(positions=name, clip=9, buckets=8, std=0.1)
    given = inputs_of(small_batch([9, 9, 4]))
    exact = network(given).packed
    with torch.autocast("cpu", torch.bfloat16):
        states = network(given).packed
    assert (states.float() - exact).abs().max() < 0.2
    states.float().square().sum().backward()
    learned = list(network.embeddings.positions.parameters())
    assert all(each.grad.dtype == torch.float32 and each.grad.isfinite().all() for each in learned)
