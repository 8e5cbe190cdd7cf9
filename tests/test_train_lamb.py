"""LAMB against its formula, one tensor at a time in double precision; q, k and v are three tensors."""

import pytest
import torch
from small_model import VOCABULARY, small_batch, small_recipe

from maskery.system import System
from maskery.train.config import OPTIMIZERS, TrainingConfig
from maskery.train.lamb import Lamb

STEPS = 12


def training(**changes):
    return TrainingConfig(**({"betas": (0.9, 0.999), "eps": 1e-6, "weight_decay": 0.01} | changes))


NETWORKS = {
    "every head": ("structbert", {"model__embedding": 8, "objectives__span_boundary__weight": 1.0}),
    "shared": ("albert", {"model__layers": 4, "model__groups": 2}),
}


def weights(dtype=torch.float32, network="every head"):
    """Those of a real network with all its heads, so that no kind of parameter is forgotten."""
    name, changes = NETWORKS[network]
    system = System(small_recipe(name, **changes), VOCABULARY)
    system.initialise(0)
    return dict(system.to(dtype).named_parameters())


def give_gradients(named, step):
    for number, value in enumerate(named.values()):
        draw = torch.Generator().manual_seed(1000 * step + number)
        value.grad = (torch.randn(value.shape, generator=draw) * 0.1).to(value.dtype)


def rates():
    return [2e-2 * (1 - step / (2 * STEPS)) for step in range(STEPS)]


def tensors_of(name, value):
    """The tensors that a parameter holds, as a published model has them: q, k and v apart."""
    return list(value.unbind()) if name.endswith(("attention.inputs", "attention.inputs_bias")) else [value]


def slow(named, plan):
    """u = m / (sqrt(v) + eps) + decay w; w -= lr |w|/|u| u; biases and norms: neither decay nor ratio."""
    one, two = plan.betas
    state = {}
    for step, lr in enumerate(rates(), start=1):
        give_gradients(named, step)
        for name, value in named.items():
            plain = "norm" in name or name.endswith("bias")
            for number, (weight, gradient) in enumerate(
                zip(tensors_of(name, value.data), tensors_of(name, value.grad), strict=True)
            ):
                first, second = state.get((name, number), (0.0, 0.0))
                first, second = one * first + (1 - one) * gradient, two * second + (1 - two) * gradient**2
                state[name, number] = first, second
                if plan.bias_correction:
                    first, second = first / (1 - one**step), second / (1 - two**step)
                update = first / (second.sqrt() + plan.eps) + (0.0 if plain else plan.weight_decay) * weight
                sizes = float(weight.norm()), float(update.norm())
                ratio = sizes[0] / sizes[1] if min(sizes) > 0 and not plain else 1.0
                weight -= lr * ratio * update
    return named


def run(plan, named):
    optimizer = Lamb(named.items(), plan)
    for step, lr in enumerate(rates(), start=1):
        give_gradients(named, step)
        optimizer.step(lr, step)
    return optimizer


@pytest.mark.parametrize("bias_correction", [True, False], ids=["corrected", "uncorrected"])
@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
@pytest.mark.parametrize("network", NETWORKS)
def test_the_formula(bias_correction, weight_decay, network):
    plan = training(bias_correction=bias_correction, weight_decay=weight_decay)
    named, expected = weights(network=network), slow(weights(torch.float64, network), plan)
    run(plan, named)
    for name, value in named.items():
        torch.testing.assert_close(value.double(), expected[name], rtol=1e-5, atol=1e-6, msg=name)


def test_q_k_and_v_have_ratios_of_their_own():
    stacked = torch.nn.Parameter(torch.stack([torch.full((4, 4), size) for size in (1.0, 10.0, 0.0)]))
    before = stacked.detach().clone()
    stacked.grad = torch.ones_like(stacked)
    Lamb([("attention.inputs", stacked)], training(weight_decay=0.0, eps=1e-12)).step(0.1, 1)
    moved = (stacked.detach() - before).norm(dim=(1, 2))
    torch.testing.assert_close(moved[0] / before[0].norm(), torch.tensor(0.1))
    torch.testing.assert_close(moved[1] / before[1].norm(), torch.tensor(0.1))
    torch.testing.assert_close(moved[2], torch.tensor(0.1 * 4.0), msg="a weight of 0 has ratio 1")


def test_the_step_is_a_share_of_the_weights_whatever_the_gradient():
    for size in (1e-4, 1.0, 1e4):
        value = torch.nn.Parameter(torch.randn(6, 5, generator=torch.Generator().manual_seed(1)))
        before = value.detach().clone()
        value.grad = size * torch.randn(6, 5, generator=torch.Generator().manual_seed(2))
        Lamb([("weight", value)], training(weight_decay=0.0, eps=1e-12)).step(0.01, 1)
        assert float((value.detach() - before).norm() / before.norm()) == pytest.approx(0.01, rel=1e-5)


@pytest.mark.parametrize("layers", [1, 4])
def test_a_weight_that_several_layers_use_takes_one_step(layers):
    """Its gradient is the sum over the layers, its step the same share of it, however many they are."""
    recipe = small_recipe("albert", model__layers=layers)
    system = System(recipe, VOCABULARY)
    system.initialise(0)
    sum(system(small_batch([9, 12], list(recipe.objectives))).values()).backward()
    named = dict(system.named_parameters())
    before = {name: value.detach().clone() for name, value in named.items()}
    Lamb(named.items(), training(weight_decay=0.0, bias_correction=False)).step(0.01, 1)
    matrices = [name for name in named if "layers" in name and "norm" not in name and not name.endswith("bias")]
    assert {name.split("layers.")[1].split(".")[0] for name in matrices} == {"0"}
    for name in matrices:
        for old, new in zip(tensors_of(name, before[name]), tensors_of(name, named[name].detach()), strict=True):
            assert float((new - old).norm() / old.norm()) == pytest.approx(0.01, rel=1e-4), name


def test_no_gradient_no_step_and_a_zero_update_none_either():
    still, zero = (torch.nn.Parameter(torch.ones(3, 3)) for _ in range(2))
    zero.grad = torch.zeros(3, 3)
    optimizer = Lamb([("still.weight", still), ("zero.weight", zero)], training(weight_decay=0.0))
    optimizer.step(0.1, 1)
    assert torch.equal(still.data, torch.ones(3, 3))
    assert torch.equal(zero.data, torch.ones(3, 3)), "no NaN where the update has no size"


def test_it_is_registered():
    assert OPTIMIZERS.get("lamb") is Lamb
    assert small_recipe("bert", training__optimizer="lamb").training.optimizer == "lamb"
