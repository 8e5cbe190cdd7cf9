"""Products in training: by the quickest library, in few shapes, and with the same results."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from maskery.model import linear as module
from maskery.model.linear import SLOTS, linear
from maskery.model.multiply import LAID_OUT, Product, amd_family, by_onednn, filled, times

needs_onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this build of torch has no oneDNN")


@pytest.fixture
def shapes(monkeypatch):
    """The rows of every product."""
    asked, plain = [], F.linear

    def watched(x, weight, bias=None):
        asked.append(x.shape[0])
        return plain(x, weight, bias)

    monkeypatch.setattr(module.F, "linear", watched)
    return asked


def gradients(rows, precision, product):
    """Of a product's sum of squares: result, and gradients of all that went in."""
    numbers = torch.Generator().manual_seed(rows)
    given = [torch.randn(size, generator=numbers).requires_grad_() for size in ((rows, 12), (20, 12), (20,))]
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bfloat16"):
        result = product(*given)
    result.float().square().sum().backward()
    return [result.detach().float(), *(each.grad for each in given)]


@pytest.mark.parametrize("rows", [1, SLOTS - 1, SLOTS, SLOTS + 1, 3 * SLOTS - 1])
def test_zeros_behind_the_rows_change_nothing(rows):
    plain = torch.nn.functional.linear
    for mine, theirs in zip(gradients(rows, "bfloat16", linear), gradients(rows, "bfloat16", plain), strict=True):
        assert mine.shape == theirs.shape
        torch.testing.assert_close(mine, theirs, atol=2e-2, rtol=2e-2)


def test_shapes_recur_where_code_is_compiled_for_them(shapes, monkeypatch):
    monkeypatch.setattr(module, "by_onednn", lambda: False)
    for rows in range(SLOTS, 3 * SLOTS):
        gradients(rows, "bfloat16", linear)
    assert set(shapes) == {SLOTS, 2 * SLOTS, 3 * SLOTS}
    shapes.clear()
    gradients(SLOTS + 1, "float32", linear)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        linear(torch.ones(SLOTS + 2, 12), torch.ones(20, 12), None)
    gradients(5, "bfloat16", linear)
    assert shapes == [SLOTS + 1, SLOTS + 2, 5], "as they are: in float32, without a gradient, and where they are few"


@pytest.fixture(params=[False, True], ids=["MKL", "oneDNN"])
def library(request, monkeypatch):
    """Both libraries on every processor that has them."""
    if request.param and not torch.backends.mkldnn.is_available():
        pytest.skip("this build of torch has no oneDNN")
    monkeypatch.setattr(module, "by_onednn", lambda: request.param)
    return request.param


def exact_gradients(rows):
    """By the definition, in double."""
    numbers = torch.Generator().manual_seed(rows)
    x, weight, bias = (torch.randn(size, generator=numbers).double() for size in ((rows, 12), (20, 12), (20,)))
    result = x @ weight.t() + bias
    outer = 2 * result
    return result, outer @ weight, outer.t() @ x, outer.sum(0)


@pytest.mark.parametrize("rows", [0, 1, SLOTS - 1, SLOTS, SLOTS + 1, 3 * SLOTS, LAID_OUT - 1, LAID_OUT, LAID_OUT + 70])
def test_float32_is_the_definition_by_either_library(rows, library):
    for mine, wanted in zip(gradients(rows, "float32", linear), exact_gradients(rows), strict=True):
        assert mine.shape == wanted.shape
        torch.testing.assert_close(mine.double(), wanted, atol=1e-5 * max(1, rows) ** 0.5, rtol=1e-5)


def test_only_float32_of_many_slots_goes_to_onednn(library, monkeypatch):
    asked = []
    monkeypatch.setattr(Product, "apply", lambda x, weight, bias: asked.append(len(x)) or F.linear(x, weight, bias))
    weight = torch.ones(3, 12)
    linear(torch.ones(SLOTS, 12), weight, None)
    linear(torch.ones(SLOTS - 1, 12), weight, None)
    linear(torch.ones(2, SLOTS, 12), weight, None)
    linear(torch.ones(SLOTS, 12).double(), weight.double(), None)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        linear(torch.ones(SLOTS, 12), weight, None)
    assert asked == ([SLOTS] if library else [])


@needs_onednn
def test_matrices_may_lie_either_way_and_a_frozen_one_has_no_gradient():
    numbers = torch.Generator().manual_seed(5)
    x, weight = (torch.randn(size, generator=numbers) for size in ((12, 70), (12, 20)))
    torch.testing.assert_close(times(x.t(), weight.t()), x.t() @ weight)
    frozen = torch.nn.Parameter(torch.randn(20, 12, generator=numbers), requires_grad=False)
    states = torch.randn(70, 12, generator=numbers, requires_grad=True)
    result = Product.apply(states, frozen, None)
    (result[:, ::2] * 3).sum().backward()
    assert frozen.grad is None
    torch.testing.assert_close(states.grad, 3 * frozen[::2].sum(0).expand(70, -1))


def test_room_behind_the_slots_is_zeros():
    wide = filled(torch.ones(SLOTS + 6, 3))
    assert wide.shape == (2 * SLOTS, 3)
    assert wide.sum() == 3 * (SLOTS + 6)
    assert not wide[SLOTS + 6 :].any()
    same = torch.ones(SLOTS, 3)
    assert filled(same) is same


@pytest.mark.parametrize(
    ("told", "family"),
    [
        ("vendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n", 26),
        ("vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n", 25),
        ("vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n", 0),
        ("AMD64 Family 26 Model 68 Stepping 0, AuthenticAMD", 26),
        ("Intel64 Family 6 Model 183 Stepping 1, GenuineIntel", 0),
        ("processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\n", 0),
        ("", 0),
    ],
)
def test_the_family_of_a_processor_is_read_as_its_system_tells_it(told, family):
    assert amd_family(told) == family


def test_which_library_is_a_fact_of_the_processor():
    assert by_onednn() is by_onednn()
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        assert not by_onednn()
