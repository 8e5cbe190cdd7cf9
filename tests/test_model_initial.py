"""Initial weights: the published law, and every tensor by its own name."""

import pytest
import torch
from small_model import VOCABULARY, small_recipe

from maskery.model.initial import initialise
from maskery.system import System


def system(name="bert", seed=0, **changes):
    made = System(small_recipe(name, **changes), VOCABULARY)
    made.initialise(seed)
    return made


def test_norms_biases_and_matrices():
    kinds = {"ones": 0, "zeros": 0, "drawn": 0}
    for name, value in system(model__norm="pre", model__embedding=8).named_parameters():
        if name.endswith("norm.weight"):
            kinds["ones"] += 1
            assert (value == 1).all(), name
        elif name.endswith("bias"):
            kinds["zeros"] += 1
            assert (value == 0).all(), name
        else:
            kinds["drawn"] += 1
            assert value.dim() > 1, name
            assert value.abs().max() <= 0.04, name
            assert value.abs().max() > 0.02, name
            assert value.unique().numel() > 0.95 * value.numel() - 1, name
    assert all(kinds.values())


def test_the_law_is_a_normal_cut_at_two_deviations():
    wide = torch.nn.ParameterDict({"weight": torch.nn.Parameter(torch.empty(500, 500))})
    initialise(wide, 0.02, 0)
    x = wide["weight"].detach() / 0.02
    assert float(x.mean()) == pytest.approx(0, abs=4 * 0.88 / 500)
    assert float(x.std()) == pytest.approx(0.8796, abs=0.004)
    assert float((x.abs() < 1).float().mean()) == pytest.approx(0.6827 / 0.9545, abs=0.004)
    assert float(x.abs().max()) <= 2


def test_a_deviation_of_the_recipe_is_used():
    small, large = system(), system(model__init_std=0.2)
    ratio = large.network.embeddings.tokens / small.network.embeddings.tokens
    torch.testing.assert_close(ratio, torch.full_like(ratio, 10.0), rtol=1e-4, atol=0)


def test_another_head_changes_no_other_tensor():
    bert, roberta = dict(system("bert").named_parameters()), dict(system("roberta").named_parameters())
    assert set(roberta) < set(bert)
    assert all(torch.equal(value, bert[name]) for name, value in roberta.items())
    deeper = dict(system(model__layers=3).named_parameters())
    assert all(torch.equal(value, deeper[name]) for name, value in bert.items())


def test_seeds_and_names_draw_apart():
    one, two, again = (dict(system(seed=seed).named_parameters()) for seed in (0, 1, 0))
    drawn = [name for name, value in one.items() if value.unique().numel() > 1]
    assert drawn
    for name in drawn:
        assert torch.equal(one[name], again[name])
        assert not torch.equal(one[name], two[name])
    firsts = {float(one[name].flatten()[0].detach()) for name in drawn}
    assert len(firsts) == len(drawn)
