"""The chunked cross-entropy against the obvious one."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from maskery.objectives import cross_entropy
from maskery.objectives.cross_entropy import losses_and_hits, tied_cross_entropy


def made(targets, vocabulary=37, width=6, seed=0, dtype=torch.float32):
    draw = torch.Generator().manual_seed(seed)
    states = torch.randn(targets, width, generator=draw, dtype=dtype)
    matrix = torch.randn(vocabulary, width, generator=draw, dtype=dtype)
    bias = torch.randn(vocabulary, generator=draw, dtype=dtype)
    return states, matrix, bias, torch.randint(0, vocabulary, (targets,), generator=draw)


def obvious(states, matrix, bias, labels):
    return F.cross_entropy(states @ matrix.t() + bias, labels, reduction="sum")


def gradients(function, states, matrix, bias, labels, factor=1.0):
    leaves = [each.clone().requires_grad_() for each in (states, matrix, bias)]
    loss = function(*leaves, labels)
    return loss.detach(), torch.autograd.grad(loss * factor, leaves)


@pytest.mark.parametrize("rows", [1, 3, 100])
@pytest.mark.parametrize("targets", [1, 2, 10, 11])
def test_loss_and_gradients(targets, rows, monkeypatch):
    values = made(targets)
    monkeypatch.setattr(cross_entropy, "CHUNK_BYTES", rows * 37 * 4)
    assert len(cross_entropy.chunks(targets, 37)) == -(-targets // rows)
    loss, found = gradients(tied_cross_entropy, *values, factor=-0.37)
    expected, wanted = gradients(obvious, *values, factor=-0.37)
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


def test_finite_differences(monkeypatch):
    monkeypatch.setattr(cross_entropy, "CHUNK_BYTES", 2 * 7 * 4)
    states, matrix, bias, labels = made(5, vocabulary=7, width=3, dtype=torch.float64)
    leaves = [each.requires_grad_() for each in (states, matrix, bias)]
    assert torch.autograd.gradcheck(lambda *inputs: tied_cross_entropy(*inputs, labels), leaves)


def test_no_target_is_zero_with_zero_gradients():
    loss, found = gradients(tied_cross_entropy, *made(0))
    assert loss == 0
    assert [tuple(each.shape) for each in found] == [(0, 6), (37, 6), (37,)]
    assert not any(each.any() for each in found)


def test_scores_of_any_size_stay_finite():
    states, matrix, bias, labels = made(8)
    values = (states * 1e4, matrix * 10, bias, labels)
    loss, found = gradients(tied_cross_entropy, *values)
    expected, wanted = gradients(obvious, *values)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-3)


def test_many_small_losses_add_up_exactly():
    """Summed in double precision: 20,000 losses of a hundredth each."""
    states, matrix = torch.zeros(20_000, 1), torch.zeros(2, 1)
    bias = torch.tensor([4.6, 0.0])
    one = float(F.cross_entropy(bias.double()[None], torch.tensor([0])))
    labels = torch.zeros(20_000, dtype=torch.long)
    assert float(tied_cross_entropy(states, matrix, bias, labels)) == pytest.approx(20_000 * one, rel=1e-6)


def test_without_gradient_no_gradient_is_made():
    values = made(5)
    with torch.no_grad():
        assert tied_cross_entropy(*values).item() == pytest.approx(obvious(*values).item(), rel=1e-6)
    assert not tied_cross_entropy(*values).requires_grad


def test_a_second_derivative_is_refused_not_wrong():
    states, matrix, bias, labels = made(3)
    states.requires_grad_()
    loss = tied_cross_entropy(states, matrix, bias, labels).square()
    (gradient,) = torch.autograd.grad(loss, states, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


@pytest.mark.parametrize("rows", [2, 100])
def test_losses_and_hits(rows, monkeypatch):
    monkeypatch.setattr(cross_entropy, "CHUNK_BYTES", rows * 37 * 4)
    states, matrix, bias, labels = made(9)
    scores = states @ matrix.t() + bias
    labels[::2] = scores.argmax(1)[::2]
    losses, hits = losses_and_hits(states, matrix, bias, labels)
    torch.testing.assert_close(losses, F.cross_entropy(scores, labels, reduction="none"))
    assert torch.equal(hits, scores.argmax(1) == labels)
    assert hits.sum() >= 5
    losses, hits = losses_and_hits(*made(0))
    assert losses.shape == hits.shape == (0,)


@given(targets=st.integers(0, 500), vocabulary=st.integers(1, 300), limit=st.integers(1, 20_000))
def test_chunks_tile_are_even_and_fit(targets, vocabulary, limit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cross_entropy, "CHUNK_BYTES", limit)
        parts = cross_entropy.chunks(targets, vocabulary)
    assert [place for part in parts for place in range(part.start, part.stop)] == list(range(targets))
    sizes = {part.stop - part.start for part in parts}
    assert not sizes or max(sizes) - min(sizes) <= 1
    assert all(size == 1 or size * vocabulary * 4 <= limit for size in sizes)
