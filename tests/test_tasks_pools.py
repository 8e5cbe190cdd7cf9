"""What is read off an encoder, against a loop over rows; and where gradients go."""

import typing
from dataclasses import replace

import pytest
import torch
from networks import network_of, shape_of

from maskery.errors import InputError, UnknownName
from maskery.model.initial import initialise
from maskery.model.layout import layout_of
from maskery.model.stack import Inputs
from maskery.model.transformer import Hidden
from maskery.tasks.pools import POOLS, Mix, pool_of
from maskery.tasks.settings import Read

L, D = 5, 8
SHAPE = shape_of(layers=L, width=D)
LENGTHS = ([3, 1, 5, 3, 0, 4], [4, 4], [1], [0, 0])


def hidden_of(lengths, seed=0):
    """Made-up states of all layers, each a leaf; the last one is `packed`."""
    draw = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(*lengths, 1)) < torch.tensor(lengths).unsqueeze(1)
    layers = [torch.randn(sum(lengths), D, generator=draw).requires_grad_() for _ in range(L + 1)]
    pooled = torch.randn(len(lengths), D, generator=draw).requires_grad_()
    return Hidden(packed=layers[-1], layout=layout_of(mask), packed_layers=tuple(layers), pooled=pooled)


def made(name, seed=0):
    pool = pool_of(name, SHAPE)
    initialise(pool, 0.5, seed, prefix="pool")
    with torch.no_grad():
        for weight in pool.parameters():
            weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(7)))
    return pool


def slowly(name, pool, rows, pooled):
    """What a row gives, from its states by layer [(t,D)]."""
    if not len(rows[0]) and name != "pooler":
        return torch.zeros(pool.width)
    last = rows[-1]
    if name in ("cls_last_four", "mean_last_four", "mix"):
        w = pool.layer_bias.exp() / pool.layer_bias.exp().sum()
    if name == "mix":
        return (1 + pool.scale_bias) * sum(w[n] * rows[n].mean(0) for n in range(L + 1))
    if name == "cls_last_four":
        return sum(w[n] * rows[L - 3 + n][0] for n in range(4))
    if name == "mean_last_four":
        return sum(w[n] * rows[L - 3 + n] for n in range(4)).mean(0)
    if name == "attention":
        scores = torch.stack([state @ pool.query / D**0.5 for state in last])
        return sum(weight * state for weight, state in zip(scores.softmax(0), last, strict=True))
    return {
        "pooler": lambda: pooled,
        "first": lambda: last[0],
        "last": lambda: last[-1],
        "mean": lambda: last.sum(0) / len(last),
        "max": lambda: last.max(0).values,
        "firsts": lambda: torch.cat([rows[n][0] for n in range(1, L + 1)]),
        "cls_last_four_concat": lambda: torch.cat([rows[n][0] for n in range(L - 3, L + 1)]),
    }[name]()


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("name", POOLS)
def test_every_pool_equals_a_loop_over_rows(name, lengths):
    hidden, pool = hidden_of(lengths), made(name)
    found = pool(hidden)
    assert found.shape == (len(lengths), pool.width)
    grids = hidden.layers
    rows = [[grid[row, :length] for grid in grids] for row, length in enumerate(lengths)]
    slow = torch.stack([slowly(name, pool, each, hidden.pooled[row]) for row, each in enumerate(rows)])
    torch.testing.assert_close(found, slow)
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(3))
    leaves = [*hidden.packed_layers, hidden.pooled, *pool.parameters()]
    given = [torch.autograd.grad((x * weights).sum(), leaves, allow_unused=True, materialize_grads=True)
             if x.requires_grad else [torch.zeros_like(leaf) for leaf in leaves] for x in (found, slow)]  # fmt: skip
    for one, two in zip(*given, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("name", [name for name in POOLS if name != "pooler"])
def test_gradients_flow_only_where_something_is_read(name):
    hidden, pool = hidden_of([3, 1, 5]), made(name)
    pool(hidden).square().sum().backward()
    firsts = hidden.layout.first_places()
    reached = {
        "firsts": range(1, L + 1),
        "cls_last_four": range(L - 3, L + 1),
        "cls_last_four_concat": range(L - 3, L + 1),
        "mean_last_four": range(L - 3, L + 1),
        "mix": range(L + 1),
    }.get(name, [L])
    for number, states in enumerate(hidden.packed_layers):
        assert (states.grad is not None) == (number in reached)
    last = hidden.packed_layers[-1].grad.abs().sum(1) > 0
    if name in ("first", "firsts", "cls_last_four", "cls_last_four_concat"):
        assert last.nonzero().flatten().tolist() == sorted(firsts.tolist())
    elif name == "last":
        assert last.nonzero().flatten().tolist() == sorted(hidden.layout.last_places().tolist())
    elif name != "max":
        assert last.all()
    assert hidden.pooled.grad is None
    assert all(weight.grad is not None for weight in pool.parameters())


def test_the_names_are_those_of_the_settings():
    assert {"auto", *POOLS} == {"auto", *typing.get_args(Read)}
    with pytest.raises(UnknownName, match="did you mean first"):
        pool_of("frist", SHAPE)


def test_widths():
    base = shape_of(layers=12, width=768, heads=12)
    assert pool_of("firsts", base).width == 12 * 768
    assert pool_of("cls_last_four_concat", base).width == 4 * 768
    assert {pool_of(name, base).width for name in POOLS if name not in ("firsts", "cls_last_four_concat")} == {768}


def test_learned_weights_start_equal_and_sum_to_one():
    for name, many in (("cls_last_four", 4), ("mean_last_four", 4), ("mix", L + 1)):
        pool = pool_of(name, SHAPE)
        initialise(pool, 0.02, 0)
        torch.testing.assert_close(pool.weights, torch.full((many,), 1 / many))
        assert made(name).weights.sum().item() == pytest.approx(1)
    assert pool.scale.item() == 1
    assert len(pool_of("mean_last_four", shape_of(layers=2)).layer_bias) == 2


def test_a_mix_of_first_slots():
    hidden, pool = hidden_of([2, 3]), Mix(SHAPE, "first")
    initialise(pool, 0.02, 0)
    expected = torch.stack([layer[:, 0] for layer in hidden.layers]).mean(0)
    torch.testing.assert_close(pool(hidden), expected)


def test_no_pooler_is_told():
    with pytest.raises(InputError, match="no pooler") as caught:
        pool_of("pooler", SHAPE)(replace(hidden_of([2]), pooled=None))
    assert "first" in caught.value.repair


@pytest.mark.parametrize("name", POOLS)
def test_of_a_real_network_reading_less_gives_the_same(name):
    network = network_of(SHAPE, pooler=True)
    ids = torch.arange(24).view(3, 8) % 40
    lengths = torch.tensor([8, 3, 6])
    inputs = Inputs(
        ids=ids,
        layout=layout_of(torch.arange(8) < lengths.unsqueeze(1)),
        segments=torch.zeros_like(ids),
        positions=torch.arange(8).expand_as(ids),
    )
    pool = made(name)
    whole = pool(network(inputs, layers=True))
    hidden = network(inputs, layers=pool.needs_layers, reads=pool.reads(inputs.layout))
    torch.testing.assert_close(pool(hidden), whole, atol=1e-5, rtol=1e-5)
    assert (hidden.selection is not None) == (name in ("pooler", "first", "last"))
    for row, length in enumerate(lengths.tolist()):
        alone = replace(
            inputs,
            ids=ids[row : row + 1, :length],
            segments=inputs.segments[row : row + 1, :length],
            positions=inputs.positions[row : row + 1, :length],
            layout=layout_of(torch.ones(1, length, dtype=torch.bool)),
        )
        torch.testing.assert_close(pool(network(alone, layers=True))[0], whole[row], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", POOLS)
def test_what_is_saved_is_plain_tensors(name):
    pool, other = made(name), pool_of(name, SHAPE)
    state = pool.state_dict()
    assert all(type(value) is torch.Tensor for value in state.values())
    other.load_state_dict(state)
    assert torch.equal(pool(hidden_of([2, 4])), other(hidden_of([2, 4])))
