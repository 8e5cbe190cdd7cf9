"""Every way to compute attention gives the same numbers, forwards and backwards, and zeros to a query that is blind."""

from dataclasses import replace

import pytest
import torch
from small_model import small_batch, small_network, small_shape

from maskery.batches import Memory
from maskery.model import blocks, kernels
from maskery.model.attention import Attention
from maskery.model.config import POSITIONS
from maskery.model.dropout import draw, keep_scale, kept
from maskery.model.layout import Group, layout_of
from maskery.model.plan import plan_attention
from maskery.model.transformer import inputs_of
from maskery.model.visibility import Causal, Full, Predicate, dense, view_of_rows

HEADS, HEAD_WIDTH = 3, 4
LENGTHS = {"one group": [5, 5, 5], "several": [3, 7, 1, 3, 6], "with empty rows": [0, 4, 2, 0, 4], "one": [1]}
MASKS = ("none", "causal", "random", "blind", "all blind")


def groups_of(lengths):
    return layout_of(torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)).groups


def masks_of(groups, kind, seed=1):
    """One mask a group; "blind" leaves about a third of the queries without a key."""
    draw = torch.Generator().manual_seed(seed)
    masks = []
    for group in groups:
        shape = (group.rows, 1, group.length, group.length)
        if kind == "none":
            masks.append(None)
        elif kind == "causal":
            masks.append(torch.ones(shape, dtype=torch.bool).tril())
        elif kind == "all blind":
            masks.append(torch.zeros(shape, dtype=torch.bool))
        else:
            mask = torch.rand(shape, generator=draw) < 0.5
            if kind == "blind":
                mask &= torch.rand(shape[:3], generator=draw).unsqueeze(-1) < 0.67
            else:
                mask |= torch.eye(group.length, dtype=torch.bool)
            masks.append(mask)
    return tuple(masks)


def random_qkv(groups, seed=0):
    count = groups[-1].stop
    return torch.randn(count, 3 * HEADS * HEAD_WIDTH, generator=torch.Generator().manual_seed(seed))


def by_packed(qkv, groups, masks, p=0.0):
    return kernels.PackedAttention.apply(qkv, blocks.exact(groups, masks), HEADS, p)


def by_group(qkv, groups, masks, kernel):
    parts = []
    for group, mask in zip(groups, masks, strict=True):
        q, k, v = kernels.split_heads(qkv[group.start : group.stop], group.rows, 3, HEADS).unbind()
        parts.append(kernel(q, k, v, mask).transpose(1, 2).reshape(group.rows * group.length, -1))
    return torch.cat(parts)


def slow(qkv, groups, masks, gone=None, scale=1.0):
    """The formula, one row, head and query at a time; `gone` are dropped weights (b*H,t,t) of each group."""
    out = []
    for number, (group, mask) in enumerate(zip(groups, masks, strict=True)):
        for row in range(group.rows):
            at = group.start + row * group.length
            q, k, v = qkv[at : at + group.length].view(group.length, 3, HEADS, HEAD_WIDTH).unbind(1)
            for query in range(group.length):
                mixed = []
                for head in range(HEADS):
                    seen = torch.ones(group.length, dtype=torch.bool) if mask is None else mask[row, 0, query]
                    weights = torch.zeros(group.length)
                    if seen.any():
                        scores = (k[seen, head] @ q[query, head]) / HEAD_WIDTH**0.5
                        weights = weights.masked_scatter(seen, scores.softmax(0))
                    if gone is not None:
                        weights = weights * ~gone[number][row * HEADS + head, query] * scale
                    mixed.append(weights @ v[:, head])
                out.append(torch.cat(mixed))
    return torch.stack(out)


def with_gradient(compute, qkv):
    leaf = qkv.clone().requires_grad_()
    out = compute(leaf)
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(5))
    (gradient,) = torch.autograd.grad((out * weights).sum(), leaf)
    return out.detach(), gradient


@pytest.mark.parametrize("lengths", [[3, 7, 1, 3, 6], [0, 4, 2, 0, 4], [9, 9, 8, 8, 8, 2, 2], [1]])
@pytest.mark.parametrize("cells", [0, 60, 10_000])
def test_rows_of_like_length_may_be_one_block(lengths, cells, monkeypatch):
    """However they are joined, slots, gradients and gradients of what only some slots ask stay the formula's."""
    monkeypatch.setattr(blocks, "CELLS", cells)
    groups = groups_of(lengths)
    masks, qkv = masks_of(groups, "none"), random_qkv(groups)
    made = blocks.near(groups, HEADS, qkv.device)
    assert sum(each.rows for each in made) == sum(each.rows for each in groups)
    assert len(made) == {0: len(groups), 10_000: 1}.get(cells, len(made))
    out, gradient = with_gradient(lambda leaf: kernels.PackedAttention.apply(leaf, made, HEADS, 0.0), qkv)
    expected, wanted = with_gradient(lambda leaf: slow(leaf, groups, masks), qkv)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradient, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("size", [1.0, 6.0, 60.0])
def test_in_use_it_is_the_formula(lengths, mask, size):
    """Powers as they are, and where they would be too large the softmax; blind queries give zeros."""
    groups = groups_of(LENGTHS[lengths])
    masks, qkv = masks_of(groups, mask), random_qkv(groups)
    qkv[:, : 2 * HEADS * HEAD_WIDTH] *= size**0.5
    made = [blocks.exact(groups, masks)] + ([blocks.near(groups, HEADS, qkv.device)] if mask == "none" else [])
    for each in made:
        found = kernels.in_use(qkv, each, HEADS)
        torch.testing.assert_close(found, slow(qkv, groups, masks), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("score", [-200.0, 79.0, 81.0, 1e4])
def test_scores_too_large_for_powers_are_no_worse(score):
    """All alike and far from zero: every key weighs the same."""
    groups = groups_of([6, 4])
    qkv = random_qkv(groups)
    qkv[:, : HEADS * HEAD_WIDTH] = score * HEAD_WIDTH**-0.5
    qkv[:, HEADS * HEAD_WIDTH : 2 * HEADS * HEAD_WIDTH] = 1.0
    for made in (blocks.near(groups, HEADS, qkv.device), blocks.exact(groups, [None, None])):
        found = kernels.in_use(qkv, made, HEADS)
        torch.testing.assert_close(found, slow(qkv, groups, [None, None]), rtol=1e-4, atol=1e-5)


def test_rows_of_one_block_ask_alike_or_not_as_one():
    groups = groups_of([3, 4, 5])
    (whole,) = blocks.near(groups, HEADS, torch.device("cpu"))
    alike = [Group(group.first, group.rows, 1, number) for number, group in enumerate(groups)]
    assert blocks.asking_of([whole], alike) == (Group(0, 3, 1, 0),)
    assert blocks.asking_of([whole], [alike[0], replace(alike[1], length=2), alike[2]]) is None


KERNELS = {
    "packed": by_packed,
    "explicit": lambda qkv, groups, masks: by_group(
        qkv, groups, masks, lambda q, k, v, mask: kernels.explicit(q, k, v, mask, 0.0)[0]
    ),
    "sdpa": lambda qkv, groups, masks: by_group(qkv, groups, masks, kernels.sdpa),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_are_the_formula(kernel, lengths, mask):
    groups = groups_of(lengths)
    masks, qkv = masks_of(groups, mask), random_qkv(groups)
    expected = slow(qkv, groups, masks)
    out, gradient = with_gradient(lambda leaf: KERNELS[kernel](leaf, groups, masks), qkv)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    if mask == "all blind":
        assert not gradient.any()
        return
    _, wanted = with_gradient(lambda leaf: slow(leaf, groups, masks), qkv)
    torch.testing.assert_close(gradient, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_blind_query_gives_exact_zeros_and_no_nan(kernel):
    groups = groups_of([4, 6, 6])
    masks = masks_of(groups, "blind")
    blind = torch.cat([~mask.any(-1).flatten() for mask in masks])
    assert 0 < blind.sum() < len(blind)
    out, gradient = with_gradient(lambda leaf: KERNELS[kernel](leaf, groups, masks), random_qkv(groups))
    assert (out[blind] == 0).all()
    assert (out[~blind] != 0).all()
    assert gradient.isfinite().all()
    assert (gradient[blind, : HEADS * HEAD_WIDTH] == 0).all(), "the query vector of a blind slot has no effect"


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_hidden_has_no_effect_however_large_the_scores(kernel):
    groups = groups_of([6, 6])
    masks = masks_of(groups, "causal")
    qkv = random_qkv(groups) * 500
    width = HEADS * HEAD_WIDTH
    changed = qkv.clone().view(2, 6, 3, width)
    changed[:, 5, 1:] *= -3
    out = KERNELS[kernel](qkv, groups, masks).view(2, 6, width)
    other = KERNELS[kernel](changed.view(12, -1), groups, masks).view(2, 6, width)
    assert torch.equal(out[:, :5], other[:, :5])
    assert not torch.equal(out[:, 5], other[:, 5])


@pytest.mark.parametrize("mask", ["none", "causal", "blind"])
@pytest.mark.parametrize("lengths", [[5, 5], [3, 7, 1, 3]])
def test_packed_dropout_is_the_formula_with_the_drawn_mask(lengths, mask):
    groups, p = groups_of(lengths), 0.3
    masks, qkv = masks_of(groups, mask), random_qkv(groups)
    torch.manual_seed(11)
    gone = [(kept(draw(torch.Size((g.rows * HEADS, g.length, g.length))), p) == 0) for g in groups]
    assert any(each.any() for each in gone)
    torch.manual_seed(11)
    out, gradient = with_gradient(lambda leaf: by_packed(leaf, groups, masks, p), qkv)
    expected, wanted = with_gradient(lambda leaf: slow(leaf, groups, masks, gone, keep_scale(p)), qkv)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradient, wanted, rtol=1e-5, atol=1e-5)


def test_explicit_dropout_drops_the_same_weights_as_packed():
    groups = groups_of([5, 5])
    masks, qkv = masks_of(groups, "causal"), random_qkv(groups)

    def explicit(leaf):
        return by_group(leaf, groups, masks, lambda q, k, v, mask: kernels.explicit(q, k, v, mask, 0.3)[0])

    torch.manual_seed(3)
    one = with_gradient(lambda leaf: by_packed(leaf, groups, masks, 0.3), qkv)
    torch.manual_seed(3)
    other = with_gradient(explicit, qkv)
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_packed_gradient_by_finite_differences():
    groups = groups_of([2, 4, 4])
    masks = masks_of(groups, "blind")
    qkv = random_qkv(groups).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda leaf: by_packed(leaf, groups, masks), (qkv,))


def test_packed_saves_nothing_it_was_not_given():
    """The forward pass leaves its input as it was."""
    groups = groups_of([3, 5])
    qkv = random_qkv(groups)
    before = qkv.clone()
    by_packed(qkv, groups, masks_of(groups, "causal"), 0.5)
    assert torch.equal(qkv, before)


def test_a_second_derivative_is_refused_not_wrong():
    groups = groups_of([3])
    qkv = random_qkv(groups).requires_grad_()
    (gradient,) = torch.autograd.grad(by_packed(qkv, groups, (None,)).square().sum(), qkv, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_choice_of_kernel():
    cpu, long = torch.device("cpu"), kernels.SDPA_FROM
    assert kernels.choose(long, cpu, 0.0, False, True) == "explicit", "weights are wanted"
    assert kernels.choose(8, cpu, 0.0, True, False) == "explicit", "the positions act inside"
    assert kernels.choose(long - 1, cpu, 0.0, False, False) == "packed"
    assert kernels.choose(long, cpu, 0.0, False, False) == "sdpa"
    assert kernels.choose(long, cpu, 0.1, False, False) == "packed"
    assert kernels.choose(8, torch.device("cuda"), 0.0, False, False) == "flex"
    assert kernels.choose(8, torch.device("cuda"), 0.1, False, False) == "explicit"


class Half:
    """Every second query sees the first key, the others nothing."""

    needs = ()

    def bind(self, view):
        return Predicate(lambda b, h, q, k: (q % 2 == 0) & (k == 0))


@pytest.mark.parametrize("lengths", [[6, 3, 6], [0, 5, 2], [4, 4], [0, 0]])
@pytest.mark.parametrize("path", ["packed", "sdpa", "mixed", "explicit"])
def test_attention_is_the_same_by_every_path(lengths, path, monkeypatch):
    shape = small_shape()
    attention, scheme = Attention(shape), POSITIONS.get("none")(shape)
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(parameter.numel()))
    layout = layout_of(torch.arange(6) < torch.tensor(lengths).unsqueeze(1))
    positions = torch.arange(6).expand(len(lengths), 6)
    segments = torch.zeros_like(positions)
    x = torch.randn(layout.count, shape.width, generator=torch.Generator().manual_seed(2))

    def outputs(capture):
        plan = plan_attention(layout, Half(), {}, positions, segments, dropout=0.0, capture=capture)
        return attention(x, plan, scheme, 0)

    reference, weights = outputs(capture=True)
    assert weights.shape == (len(lengths), shape.heads, 6, 6)
    sums = weights.sum(-1)
    for row, length in enumerate(lengths):
        sees = (torch.arange(6) < length) & (torch.arange(6) % 2 == 0)
        torch.testing.assert_close(sums[row], sees.float().expand(shape.heads, 6))
        assert not weights[row, :, :, length:].any()
        assert not weights[row, :, length:].any()
    monkeypatch.setattr(kernels, "SDPA_FROM", {"packed": 99, "sdpa": 1, "mixed": 5, "explicit": 99}[path])
    out, none = outputs(capture=path == "explicit")
    assert (none is None) == (path != "explicit")
    torch.testing.assert_close(out, reference, rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_gives_the_same_on_a_cpu_forwards():
    """What of the GPU's kernel a CPU can show: the predicate becomes a block mask and the output is the same."""
    q, k, v = torch.randn(3, 2, 4, 16, 8)
    view = view_of_rows(16, {}, 2, torch.device("cpu"))
    for visibility in (Full(), Causal()):
        predicate = visibility.bind(view)
        with torch.no_grad():
            found = kernels.flex(q, k, v, predicate)
        expected, _ = kernels.explicit(q, k, v, dense(predicate, view), 0.0)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("visibility", ["causal", "permuted"])
def test_flex_behind_a_past_and_for_two_streams(visibility, monkeypatch):
    """Forwards on a CPU: some queries see nothing, and one memory is not filled."""
    network = small_network(visibility, streams=2, memory=3, layers=1)
    past = torch.randn(1, 2, 3, 16, generator=torch.Generator().manual_seed(1))
    memory = Memory(states=tuple(past), length=torch.tensor([3, 0]))
    given = inputs_of(replace(small_batch([6, 6]), memory=memory, asked=torch.tensor([1, 4, 8])))
    with torch.no_grad():
        plain = network(given)
        monkeypatch.setattr(kernels, "choose", lambda *given: "flex")
        found = network(given)
    torch.testing.assert_close(found.packed, plain.packed, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.predicted.packed, plain.predicted.packed, atol=1e-5, rtol=1e-5)
