"""Dropout from raw words: its rate, its scale, its gradient, its repeatability."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_model import small_batch, small_network

from maskery import randomness
from maskery.model.dropout import add_dropout, draw, dropout, keep_scale, kept, level
from maskery.model.transformer import inputs_of

RATES = (0.1, 0.25, 0.5, 0.9)
MANY = 400_000


@pytest.mark.parametrize("p", RATES)
def test_rate_and_scale(p):
    torch.manual_seed(0)
    out = dropout(torch.ones(MANY), p)
    kept = int((out != 0).sum())
    share = level(p) / 65536
    assert abs(share - p) <= 1 / 131072
    assert abs(kept - MANY * (1 - share)) < 4 * (MANY * p * (1 - p)) ** 0.5
    assert torch.unique(out).tolist() == [0.0, pytest.approx(1 / (1 - share), rel=1e-6)]
    assert abs(float(out.double().mean()) - 1) < 4 * (p / (1 - p) / MANY) ** 0.5, "the expectation is the input"


def test_all_four_numbers_of_a_word_are_fair_and_apart():
    torch.manual_seed(1)
    gone = (kept(draw(torch.Size((MANY,))), 0.5) == 0).view(-1, 4).double()
    assert ((gone.mean(0) - 0.5).abs() < 4 * 0.5 / (MANY / 4) ** 0.5).all()
    together = torch.corrcoef(gone.T) - torch.eye(4)
    assert (together.abs() < 5 / (MANY / 4) ** 0.5).all()


@settings(max_examples=25)
@given(shape=st.lists(st.integers(0, 5), min_size=1, max_size=3), p=st.sampled_from(RATES))
def test_any_shape_and_the_gradient_has_the_same_holes(shape, p):
    x = torch.ones(shape, requires_grad=True)
    residual = torch.full(shape, 2.0, requires_grad=True)
    torch.manual_seed(7)
    gone = kept(draw(x.shape), p) == 0
    expected = (~gone).float() * keep_scale(p)
    torch.manual_seed(7)
    out = dropout(x, p)
    (gradient,) = torch.autograd.grad(out.sum() * 3, x)
    assert torch.equal(out, expected)
    assert torch.equal(gradient, expected * 3)
    torch.manual_seed(7)
    summed = add_dropout(residual, x, p)
    to_residual, to_x = torch.autograd.grad(summed.sum() * 3, (residual, x))
    assert torch.allclose(summed, 2 + expected)
    assert torch.allclose(to_x, expected * 3)
    assert torch.equal(to_residual, torch.full(shape, 3.0))


@pytest.mark.parametrize("p", [0.0, 1e-7])
def test_zero_is_the_identity_and_draws_nothing(p):
    x, residual = torch.randn(5), torch.randn(5)
    before = torch.get_rng_state()
    assert dropout(x, p) is x
    assert torch.equal(add_dropout(residual, x, p), residual + x)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_highest_rate_still_keeps_a_level():
    torch.manual_seed(0)
    out = dropout(torch.ones(MANY), 0.9999999)
    assert out.isfinite().all()
    assert keep_scale(0.9999999) == 65536
    assert 0 < (out != 0).sum() < 40


def test_the_input_is_left_alone():
    x, residual = torch.ones(100), torch.ones(100)
    dropout(x, 0.5)
    add_dropout(residual, x, 0.5)
    assert (x == 1).all()
    assert (residual == 1).all()


def test_a_keyed_pass_repeats_and_another_key_differs():
    network = small_network(dropout=0.1, attention_dropout=0.1).train()
    batch = small_batch([6, 3, 6])

    def run(key):
        randomness.seed_dropout(key)
        return network(inputs_of(batch)).packed

    assert torch.equal(run(5), run(5))
    assert not torch.equal(run(5), run(6))
    network.eval()
    assert torch.equal(run(5), run(6)), "nothing is dropped outside training"


@pytest.mark.parametrize("which", ["dropout", "attention_dropout"])
def test_each_rate_acts_in_training_only(which):
    still = small_network()
    network = small_network(**{which: 0.5})
    batch = small_batch([6, 3])
    assert torch.equal(network(inputs_of(batch)).packed, still(inputs_of(batch)).packed)
    network.train()
    assert not torch.allclose(network(inputs_of(batch)).packed, still(inputs_of(batch)).packed, atol=1e-3)


def test_a_second_derivative_is_refused_not_wrong():
    x = torch.randn(8, requires_grad=True)
    (gradient,) = torch.autograd.grad(dropout(x, 0.5).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()
