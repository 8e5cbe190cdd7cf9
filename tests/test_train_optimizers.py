"""AdamW against the formula in double precision and against torch's own."""

import pytest
import torch
from small_model import VOCABULARY, small_recipe

from maskery.system import System
from maskery.train.config import OPTIMIZERS, TrainingConfig
from maskery.train.optimizers import AdamW, decays

SHAPES = {"layers.0.up.weight": (5, 7), "layers.0.up.bias": (5,), "norm.weight": (6,), "embeddings.tokens": (9, 3)}
STEPS = 20


def parameters(dtype=torch.float32):
    draw = torch.Generator().manual_seed(0)
    return {name: torch.nn.Parameter(torch.randn(s, generator=draw).to(dtype)) for name, s in SHAPES.items()}


def give_gradients(named, step):
    draw = torch.Generator().manual_seed(100 + step)
    for value in named.values():
        value.grad = torch.randn(value.shape, generator=draw).to(value.dtype) * 0.1


def training(**changes):
    return TrainingConfig(**({"betas": (0.9, 0.98), "eps": 1e-6, "weight_decay": 0.1} | changes))


def slow(named, plan, rates):
    """The formula, one tensor at a time, in double precision."""
    first = {name: torch.zeros_like(value) for name, value in named.items()}
    second = {name: torch.zeros_like(value) for name, value in named.items()}
    one, two = plan.betas
    for step, lr in enumerate(rates, start=1):
        give_gradients(named, step)
        for name, value in named.items():
            first[name] = one * first[name] + (1 - one) * value.grad
            second[name] = two * second[name] + (1 - two) * value.grad**2
            mean, square = first[name], second[name]
            if plan.bias_correction:
                mean, square = mean / (1 - one**step), square / (1 - two**step)
            decay = plan.weight_decay if value.dim() > 1 else 0.0
            value.data -= lr * (mean / (square.sqrt() + plan.eps) + decay * value.data)
    return named


def rates():
    return [1e-2 * (1 - step / (2 * STEPS)) for step in range(STEPS)]


def run(plan, named):
    optimizer = AdamW(named.items(), plan)
    for step, lr in enumerate(rates(), start=1):
        give_gradients(named, step)
        optimizer.step(lr, step)
    return optimizer


@pytest.mark.parametrize("bias_correction", [True, False])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_the_formula(bias_correction, weight_decay):
    plan = training(bias_correction=bias_correction, weight_decay=weight_decay)
    named, expected = parameters(), slow(parameters(torch.float64), plan, rates())
    run(plan, named)
    for name, value in named.items():
        torch.testing.assert_close(value.double(), expected[name], rtol=1e-5, atol=1e-6, msg=name)


def test_torch_agrees_with_bias_correction():
    plan, named, theirs = training(bias_correction=True), parameters(), parameters()
    run(plan, named)
    matrices = [value for value in theirs.values() if value.dim() > 1]
    others = [value for value in theirs.values() if value.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    reference = torch.optim.AdamW(groups, lr=1.0, betas=plan.betas, eps=plan.eps)
    for step, lr in enumerate(rates(), start=1):
        give_gradients(theirs, step)
        for group in reference.param_groups:
            group["lr"] = lr
        reference.step()
    for name, value in named.items():
        torch.testing.assert_close(value, theirs[name], rtol=1e-5, atol=1e-6, msg=name)


def test_the_first_step_with_and_without_correction():
    """Without correction: m/sqrt(v) = 0.1 / sqrt(0.02) = 0.707 of the sign, with it 1."""
    for corrected, share in ((True, 1.0), (False, 0.1 / 0.02**0.5)):
        value = torch.nn.Parameter(torch.zeros(3, 3))
        value.grad = torch.full((3, 3), 5.0)
        AdamW([("weight", value)], training(bias_correction=corrected, eps=1e-12)).step(0.01, 1)
        torch.testing.assert_close(value.data, torch.full((3, 3), -0.01 * share))


def test_decay_goes_to_matrices_only():
    system = System(small_recipe("bert", model__embedding=8), VOCABULARY)
    for name, value in system.named_parameters():
        # The fused projections keep their three biases in a matrix; they are biases all the same.
        assert decays(name, value) == (value.dim() > 1 and not name.endswith("inputs_bias")), name


def test_rate_zero_moves_nothing_but_the_moments():
    named = parameters()
    before = {name: value.detach().clone() for name, value in named.items()}
    optimizer = AdamW(named.items(), training())
    give_gradients(named, 1)
    optimizer.step(0.0, 1)
    assert all(torch.equal(value, before[name]) for name, value in named.items())
    assert all(value.any() for value in optimizer.state().values())


def test_a_parameter_without_gradient_is_left_alone():
    named = parameters()
    optimizer = AdamW(named.items(), training())
    give_gradients(named, 1)
    still = named["embeddings.tokens"]
    before, still.grad = still.detach().clone(), None
    optimizer.step(0.1, 1)
    assert torch.equal(still, before)
    assert not optimizer.state()["first.embeddings.tokens"].any()


@pytest.mark.parametrize("name", OPTIMIZERS.names())
@pytest.mark.parametrize("bias_correction", [True, False])
def test_state_saved_and_restored_goes_on_bitwise(name, bias_correction):
    plan, kind = training(bias_correction=bias_correction), OPTIMIZERS.get(name)
    named = parameters()
    optimizer = kind(named.items(), plan)
    for step in range(1, 4):
        give_gradients(named, step)
        optimizer.step(0.01, step)
    saved = {key: value.clone() for key, value in optimizer.state().items()}
    copies = {key: torch.nn.Parameter(value.detach().clone()) for key, value in named.items()}
    other = kind(copies.items(), plan)
    other.restore(saved)
    for values, runner in ((named, optimizer), (copies, other)):
        give_gradients(values, 4)
        runner.step(0.01, 4)
    assert all(torch.equal(named[key], copies[key]) for key in named)
    assert all(torch.equal(value, other.state()[key]) for key, value in optimizer.state().items())
