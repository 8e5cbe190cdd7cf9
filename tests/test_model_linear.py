"""Products in bfloat16 have few shapes, and the same results."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from maskery.model import linear as module
from maskery.model.linear import SLOTS, linear


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


def test_shapes_recur_in_bfloat16_alone(shapes):
    for rows in range(SLOTS, 3 * SLOTS):
        gradients(rows, "bfloat16", linear)
    assert set(shapes) == {SLOTS, 2 * SLOTS, 3 * SLOTS}
    shapes.clear()
    gradients(SLOTS + 1, "float32", linear)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        linear(torch.ones(SLOTS + 2, 12), torch.ones(20, 12), None)
    gradients(5, "bfloat16", linear)
    assert shapes == [SLOTS + 1, SLOTS + 2, 5], "as they are: in float32, without a gradient, and where they are few"
