"""Products laid out for use: the same numbers as the network's own, or as near as whole numbers come."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import model_of
from vector_models import TEXTS, made_of, quiet

from maskery.errors import ArgumentError, UnknownName
from maskery.model import int8, products
from maskery.model.int8 import BytesProduct
from maskery.model.products import BATCH, FloatProduct, PackedProduct, float_product, products_of
from maskery.vectors.encoder import Encoder

needs_mkl = pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="this build of torch has no MKL")
SHAPES = [
    {},
    {"share": "all", "layers": 3},
    {"norm": "pre", "activation": "gelu_tanh"},
    {"activation": "relu", "attention_bias": False},
    {"positions": "nezha"},
    {"embedding": 8},
]


def encoder(arithmetic, **shape):
    made = made_of()
    if shape:
        made = type(made)(model_of(pooler=True, **shape), made.config)
    return Encoder(made, arithmetic=arithmetic, say=quiet)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_laid_out_weights_say_what_the_network_says(shape):
    plain, quick = (encoder(name, **shape).encode(TEXTS) for name in ("plain", "float32"))
    assert np.abs(plain - quick).max() < 1e-5
    assert (encoder("float32", **shape).products is None) is False


@pytest.mark.parametrize("activation", ["none", "gelu", "gelu_tanh", "relu"])
@pytest.mark.parametrize("rows", [0, 1, 7, 300, BATCH])
@pytest.mark.parametrize("make", [FloatProduct, pytest.param(PackedProduct, marks=needs_mkl)])
def test_a_product_is_a_linear_layer_with_its_activation(make, activation, rows):
    torch.manual_seed(0)
    weight, bias, x = torch.randn(24, 16), torch.randn(24), torch.randn(rows, 16)
    bends = {"none": lambda x: x, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "relu": F.relu}
    wanted = bends[activation](F.linear(x, weight, bias))
    found = make(weight, bias, activation)(x)
    assert found.shape == wanted.shape
    assert torch.allclose(found, wanted, atol=1e-5)
    assert torch.allclose(make(weight, None, "none")(x), F.linear(x, weight), atol=1e-5)


def slow_bytes(weight, bias, x, levels):
    """Whole numbers by the definition, one product at a time, in exact arithmetic."""
    step = np.abs(weight).max(1) / 127
    whole = np.rint(weight / step[:, None])
    found = np.empty((len(x), len(weight)))
    for row, each in enumerate(x):
        mine = np.abs(each).max() / levels
        counted = np.floor(each / mine + 0.5)
        for place in range(len(weight)):
            total = sum(int(a) * int(b) for a, b in zip(counted, whole[place], strict=True))
            found[row, place] = total * mine * step[place] + bias[place]
    return found


@pytest.mark.skipif(not int8.levels(), reason="no products of eight bits here")
def test_bytes_are_the_definition():
    torch.manual_seed(1)
    weight, bias, x = torch.randn(20, 32) * 0.05, torch.randn(20), torch.randn(9, 32)
    x[3] *= 1000  # an outlier costs no other row its digits
    found = BytesProduct(weight, bias, "none")(x).numpy()
    wanted = slow_bytes(weight.double().numpy(), bias.double().numpy(), x.double().numpy(), int8.levels())
    # A number on the edge between two whole ones may go either way.
    assert np.abs(found - wanted).max(1) == pytest.approx(np.zeros(9), abs=2e-3 * 1000)
    others = [row for row in range(9) if row != 3]
    assert np.abs(found - wanted)[others].max() < 5e-3


@pytest.mark.skipif(not int8.levels(), reason="no products of eight bits here")
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), rows=st.integers(1, 5), width=st.sampled_from([8, 16, 48]))
def test_bytes_err_by_less_than_a_step_of_each_side(seed, rows, width):
    torch.manual_seed(seed)
    weight, x = torch.randn(12, width), torch.randn(rows, width)
    found = BytesProduct(weight, None, "none")(x)
    steps = x.abs().amax(1, keepdim=True) / int8.levels(), weight.abs().amax(1) / 127
    most = width * (steps[0] * weight.abs().amax(1) + x.abs().amax(1, keepdim=True) * steps[1])
    assert ((found - F.linear(x, weight)).abs() <= most / 2 + 1e-4).all()


@pytest.mark.skipif(not int8.levels(), reason="no products of eight bits here")
@pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
def test_vectors_of_bytes_are_near_and_do_not_depend_on_their_neighbours(shape):
    plain, quick = encoder("plain", **shape), encoder("int8", **shape)
    one, other = plain.encode(TEXTS, normalize=True), quick.encode(TEXTS, normalize=True)
    assert (one * other).sum(1).min() > 0.99
    alone = np.stack([quick.encode(text, normalize=True) for text in TEXTS])
    assert np.abs(alone - other).max() < 1e-5
    assert np.abs(one - other).max() > 1e-5, "these are no whole numbers"


def test_rows_of_zeros_are_the_bias():
    if not int8.levels():
        pytest.skip("no products of eight bits here")
    bias = torch.arange(6.0)
    assert torch.equal(BytesProduct(torch.randn(6, 8), bias, "none")(torch.zeros(2, 8)), bias.expand(2, 6))


@pytest.mark.parametrize(("capability", "make"), [("AVX512", FloatProduct), ("AVX2", PackedProduct)])
def test_the_processor_says_whose_product_is_taken(capability, make, monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    assert float_product() is make
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    assert float_product() is FloatProduct


def test_shared_layers_have_one_product():
    network = model_of(pooler=True, share="all", layers=3).network
    made = products_of(network, FloatProduct)
    assert len(made) == 3
    assert made[0].up is made[1].up is made[2].up
    assert made[0].up is not made[0].down


def test_a_model_in_training_multiplies_with_its_own_weights():
    given = Encoder(made_of(), say=quiet)
    assert given.products is None
    before = given.encode("the cat")
    with torch.no_grad():
        given.made.model.network.blocks[0].up.weight.mul_(3.0)
    assert not np.allclose(before, given.encode("the cat"))


def test_a_folder_is_laid_out_and_steps_behind_keep_it(tmp_path, no_waiting_for_the_disk):
    Encoder(made_of(), say=quiet).save(tmp_path / "model")
    opened = Encoder(tmp_path / "model", say=quiet)
    assert opened.arithmetic == "float32"
    assert opened.products is not None
    assert opened.fit_after("centring", TEXTS).products is opened.products


def test_what_cannot_be_had_is_refused_or_left(monkeypatch):
    with pytest.raises(UnknownName, match="int9"):
        Encoder(made_of(), arithmetic="int9", say=quiet)
    monkeypatch.setattr(products, "has_kernels", lambda: False)
    assert encoder("float32").products is None
    with pytest.raises(ArgumentError, match="no oneDNN"):
        encoder("int8").encode("the cat")
    monkeypatch.setattr(products, "has_kernels", lambda: True)
    monkeypatch.setattr(int8, "levels", lambda: 0)
    with pytest.raises(ArgumentError, match="eight bits"):
        encoder("int8").encode("the cat")


def test_a_processor_that_overflows_counts_less_far(monkeypatch):
    exact = int8._multiply

    def overflows(whole, weight, step, zero):
        """Two products in 16 bits: what does not fit is cut, as without VNNI."""
        return exact(whole, weight, step, zero) if int(whole.max()) <= 127 else exact(whole // 2, weight, step, zero)

    monkeypatch.setattr(int8, "_multiply", overflows)
    int8.levels.cache_clear()
    try:
        assert int8.levels() == 63
    finally:
        int8.levels.cache_clear()
