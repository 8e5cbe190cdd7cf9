"""The flow: its inverse, its determinant against the Jacobian, its start, its likelihood, its seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from maskery.errors import ArgumentError, NonFiniteError
from maskery.train.optimizers import decays
from maskery.vectors.after.flow import Flow, FlowShape
from maskery.vectors.after.glow import Glow, widths

SHAPES = {
    "default": FlowShape(),
    "affine": FlowShape(coupling="affine"),
    "linear": FlowShape(mixing="linear", lr=1e-4),
    "both": FlowShape(mixing="linear", coupling="affine", levels=2, depth=2, width=8, lr=1e-4),
}
shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def banana(n, seed=0, dtype=np.float32):
    """Two bent planes and a shear, far from the origin: not normal, in 4 dimensions."""
    draws = np.random.default_rng(seed)
    a, b, c, d = draws.normal(size=(4, n))
    x = np.stack([2 * a, b * 0.3 + a**2, 0.5 * c, d * 0.2 + c**2 - a], axis=1) * [1, 1, 10, 3] + [5, 0, -2, 30]
    return x.astype(dtype)


def shaken(dimensions, shape, seed=0):
    """A flow in which every weight does something, not fitted."""
    flow = Flow(dimensions, shape, seed)
    draws = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in flow.glow.named_parameters():
            size = 0.01 if "mixing" in name else 0.1  # a matrix of large noise is one that hardly has an inverse
            parameter.add_(size * torch.randn(parameter.shape, generator=draws, dtype=torch.float64))
    return flow


@shapes
@pytest.mark.parametrize("d", [2, 3, 7, 16])
def test_the_determinant_is_that_of_the_jacobian(shape, d):
    flow = shaken(d, shape)
    x = np.random.default_rng(d).normal(size=(3, d))
    _, found = flow.glow(torch.from_numpy(x))
    tiny = 1e-6
    for row, mine in zip(x, found.tolist(), strict=True):
        ahead, behind = flow.exactly(row + tiny * np.eye(d)), flow.exactly(row - tiny * np.eye(d))
        sign, logarithm = np.linalg.slogdet((ahead - behind) / (2 * tiny))
        assert abs(sign) == 1
        assert mine == pytest.approx(logarithm, abs=1e-6)


@given(st.integers(2, 40), st.sampled_from(sorted(SHAPES)), st.integers(1, 5))
@settings(max_examples=15, deadline=None)
def test_there_and_back(d, name, levels):
    flow = shaken(d, SHAPES[name].model_copy(update={"levels": levels}))
    x = np.random.default_rng(d).normal(size=(5, d)).astype(np.float32)
    z = flow.apply(x)
    assert_allclose(flow.inverse(z), x, atol=1e-4)
    assert not np.allclose(z, x, atol=0.1)
    assert_allclose(flow.apply(flow.inverse(x)), x, atol=1e-4)
    with torch.no_grad():
        exact = torch.from_numpy(x.astype(np.float64))
        assert_allclose(flow.glow.inverse(flow.glow(exact)[0]), exact, atol=1e-11)


@shapes
def test_likelihood_rises_and_what_was_fitted_can_be_undone(shape):
    told = []
    flow = Flow.fit(banana(800), epochs=2, told=lambda *each: told.append(each), shape=shape)
    assert flow.fitted < flow.before - 0.02
    assert flow.notes == (("2 of 3 levels: 4 dimensions can be halved no further",) if shape.levels == 3 else ())
    assert (flow.seen, flow.held_out) == (760, 40)
    assert [number for number, _, _ in told] == list(range(1, 49))
    assert {steps for _, steps, _ in told} == {48}
    assert np.mean([bits for _, _, bits in told[-10:]]) < np.mean([bits for _, _, bits in told[:10]])
    fresh = banana(500, seed=1)
    assert flow.bits(fresh) < flow.before
    assert_allclose(flow.inverse(flow.apply(fresh)), fresh, atol=1e-4)
    assert f"{flow.before:.4f} before, {flow.fitted:.4f} after" in flow.describe()


def test_bits_are_those_of_the_formula():
    flow, x = shaken(5, FlowShape()), np.random.default_rng(0).normal(size=(6, 5))
    z, determinant = (each.detach().numpy() for each in flow.glow(torch.from_numpy(x)))
    density = np.prod(np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi), axis=1) * np.exp(determinant)
    assert flow.bits(x) == pytest.approx(np.mean(-np.log2(density)) / 5, abs=1e-10)
    with pytest.raises(ArgumentError, match="no likelihood"):
        flow.bits(x[:0])


@shapes
def test_the_first_batch_sets_mean_and_variance(shape):
    glow = Glow(6, shape.levels, shape.depth, shape.width, shape.coupling == "affine", shape.mixing == "linear", seed=1)
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(64, 6)) * [1, 10, 0.1, 3, 1, 1] + 40)
    seen = []
    for module in glow.levels[0][0].children():
        module.register_forward_hook(lambda _, inputs, outputs: seen.append(outputs[0].detach()))
    with torch.no_grad():
        glow(x, start=True)
    assert_allclose(seen[0].mean(0), 0, atol=1e-12)
    assert_allclose(seen[0].std(0, correction=0), 1, atol=1e-12)
    if shape.mixing == "reverse":
        assert_allclose(seen[1], seen[0].flip(-1))
    else:
        assert_allclose(torch.linalg.norm(seen[1], dim=1), torch.linalg.norm(seen[0], dim=1), rtol=1e-12)
    kept = glow.levels[0][0].coupling.kept
    scale = 1 / (1 + np.exp(-2.0)) if shape.coupling == "affine" else 1.0
    assert_allclose(seen[2][:, kept:], seen[1][:, kept:] * scale, rtol=1e-12)


def test_a_dimension_that_never_varies_is_told_and_not_torn_apart():
    x = banana(200, dtype=np.float64)
    x[:, 1] = 0.25
    flow = Flow.fit(x)
    assert "1 of 4 dimensions never vary" in flow.notes[0]
    near = x[:5] + np.array([0, 1e-3, 0, 0])
    assert np.abs(flow.apply(near)).max() < 100


def test_the_same_seed_gives_the_same_bits():
    x = banana(100)
    one, same, other = (Flow.fit(x, seed=seed, shape=FlowShape(mixing="linear")) for seed in (5, 5, 6))
    assert one.apply(x).tobytes() == same.apply(x).tobytes()
    assert (one.before, one.fitted) == (same.before, same.fitted)
    assert one.apply(x).tobytes() != other.apply(x).tobytes()
    torch.manual_seed(0)
    state = torch.get_rng_state()
    Flow.fit(x[:20])
    assert torch.equal(state, torch.get_rng_state()), "nobody else's randomness is used"


@pytest.mark.parametrize(
    ("dimensions", "levels", "expected"),
    [(768, 3, [768, 384, 192]), (45, 3, [45, 23, 12]), (2, 3, [2]), (3, 3, [3, 2]), (5, 9, [5, 3, 2])],
)
def test_levels(dimensions, levels, expected):
    assert widths(dimensions, levels) == expected


def test_odd_dimensions_are_told():
    flow = Flow.fit(np.random.default_rng(0).normal(size=(40, 45)))
    assert flow.notes[0] == "halves are unequal where a level has 45, 23 dimensions: the first is larger"
    assert flow.apply(np.zeros((2, 45))).shape == (2, 45)


def test_the_default_is_the_published_shape():
    flow = Flow(768, FlowShape(), 0)
    steps = [step for level in flow.glow.levels for step in level]
    assert len(steps) == 9
    hidden = {tuple(step.coupling.shifts.second.shape) for step in steps}
    assert hidden == {(32, 32)}
    names = dict(flow.glow.named_parameters())
    assert all(decays(name, value) for name, value in names.items()), "the original's decay spares nothing"
    width = [768, 384, 192]
    one = [2 * w + (w // 2) * 32 + 32 * 32 + 4 * 32 + 32 * (w // 2) + 2 * (w // 2) for w in width]
    assert sum(value.numel() for value in names.values()) == 3 * sum(one)


def test_training_that_does_not_help_is_told():
    x = np.random.default_rng(0).normal(size=(60, 12))
    flow = Flow.fit(x, epochs=20, shape=FlowShape(coupling="affine", mixing="linear", lr=0.02))
    assert flow.fitted > flow.before
    assert "no likelier after training" in flow.notes[-1]
    with pytest.raises(NonFiniteError, match="a lower rate"):
        Flow.fit(x, epochs=3, shape=FlowShape(lr=100.0))


@pytest.mark.parametrize(
    ("vectors", "epochs", "message"),
    [
        (np.zeros((20, 1)), 1, "couples dimensions"),
        (banana(7), 1, "7 vectors given: a flow needs at least 8"),
        (banana(20), 0, "0 epochs"),
    ],
    ids=["narrow", "few", "no-epoch"],
)
def test_what_a_flow_cannot_do(vectors, epochs, message):
    with pytest.raises(ArgumentError, match=message):
        Flow.fit(vectors, epochs=epochs)


def test_the_inverse_checks_what_it_is_given():
    flow = Flow.fit(banana(20))
    with pytest.raises(ArgumentError, match="5 dimensions, this was fitted to 4"):
        flow.inverse(np.zeros((2, 5)))
    with pytest.raises(ArgumentError, match="row 1 "):
        flow.inverse([[0, 0, 0, 0], [0, np.nan, 0, 0]])
