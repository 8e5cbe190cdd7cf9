"""The chain over tags against all rows of tags one by one."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from maskery.errors import InputError
from maskery.model.initial import initialise
from maskery.tasks.crf import CRF, best_paths, rule_scores
from maskery.tasks.ragged import grid_of, items_of
from maskery.tasks.tags import Rules, Tags

C = 4


def crf_of(seed, classes=C, rules=None, dtype=torch.float64):
    crf = CRF(classes, rules)
    initialise(crf, 1.0, seed)
    with torch.no_grad():
        crf.start_bias.normal_(generator=torch.Generator().manual_seed(seed))
        crf.end_bias.normal_(generator=torch.Generator().manual_seed(seed + 1))
    return crf.to(dtype)


def random_rules(seed, classes=C):
    """Half of everything is forbidden, but the first tag may stand anywhere."""
    draw = np.random.default_rng(seed)
    rules = Rules(draw.random(classes) < 0.5, draw.random((classes, classes)) < 0.5, draw.random(classes) < 0.5)
    rules.begins[0] = rules.follows[0, 0] = rules.ends[0] = True
    return rules


def every_path(crf, emissions, rules):
    """{path: score} of one row (T,C), allowed paths only."""
    found = {}
    start, moves, end = (x.detach().tolist() for x in (crf.start_bias, crf.transitions, crf.end_bias))
    said = emissions.tolist()
    for path in itertools.product(range(len(start)), repeat=len(said)):
        pairs = list(itertools.pairwise(path))
        if rules is not None and not (
            rules.begins[path[0]] and rules.ends[path[-1]] and all(rules.follows[pair] for pair in pairs)
        ):
            continue
        score = start[path[0]] + end[path[-1]] + sum(moves[a][b] for a, b in pairs)
        found[path] = score + sum(said[t][tag] for t, tag in enumerate(path))
    return found


def case(seed, lengths, rules, scale=2):
    draw = torch.Generator().manual_seed(seed)
    emissions = scale * torch.randn(sum(lengths), C, dtype=torch.float64, generator=draw)
    crf = crf_of(seed, rules=rules)
    rows = [every_path(crf, each, rules) for each in emissions.split(lengths)] if lengths else []
    picked = [list(row)[seed % len(row)] if length else () for row, length in zip(rows, lengths, strict=True)]
    return crf, emissions, rows, torch.tensor([tag for path in picked for tag in path], dtype=torch.long), picked


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 999),
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    ruled=st.booleans(),
    scale=st.sampled_from([2, 90]),  # the larger: what is left after rules may have a chance of e^-200
)
def test_everything_equals_brute_force(seed, lengths, ruled, scale):
    rules = random_rules(seed) if ruled else None
    crf, emissions, rows, tags, picked = case(seed, lengths, rules, scale)
    sizes = torch.tensor(lengths)
    expected = 0.0
    for row, right in zip(rows, picked, strict=True):
        top = max(row.values())
        expected += top + math.log(sum(math.exp(score - top) for score in row.values())) - row[right]
    assert crf.total(emissions, sizes, tags).item() == pytest.approx(expected, abs=1e-9)
    single = crf_of(seed, rules=rules, dtype=torch.float32)
    assert single.total(emissions.float(), sizes, tags).item() == pytest.approx(
        expected, rel=1e-5, abs=scale * 1e-5 / 2
    )

    paths, scores = crf.decode(emissions, sizes)
    for row, path, score in zip(rows, paths.split(lengths), scores.tolist(), strict=True):
        assert score == pytest.approx(max(row.values()), abs=1e-9)
        assert row[tuple(path.tolist())] == pytest.approx(score, abs=1e-9)

    chances = crf.marginals(emissions, sizes)
    for row, found in zip(rows, chances.split(lengths), strict=True):
        top = max(row.values())
        mass = sum(math.exp(score - top) for score in row.values())
        slow = [[0.0] * C for _ in found]
        for path, score in row.items():
            for time, tag in enumerate(path):
                slow[time][tag] += math.exp(score - top) / mass
        torch.testing.assert_close(found, found.new_tensor(slow), atol=1e-9, rtol=0)


@pytest.mark.parametrize("ruled", [False, True])
@pytest.mark.parametrize("scale", [2, 90])
def test_gradients(ruled, scale):
    rules = random_rules(3) if ruled else None
    lengths = [3, 1, 0, 4]
    crf, emissions, _, tags, _ = case(5, [3, 1, 4], rules, scale)
    sizes = torch.tensor(lengths)
    emissions.requires_grad_()
    names = ("transitions", "start_bias", "end_bias")

    def total(emissions, *weights):
        return torch.func.functional_call(crf, dict(zip(names, weights, strict=True)), ("go", emissions, sizes, tags))

    crf.forward = lambda _, *arguments: crf.total(*arguments)
    weights = [getattr(crf, name).detach().requires_grad_() for name in names]
    assert torch.autograd.gradcheck(total, (emissions, *weights))


def test_what_is_forbidden_has_no_chance_no_gradient_and_no_nan():
    rules = Tags(["X"], "BMES").rules
    crf = crf_of(0, 5, rules, torch.float32)
    emissions = torch.zeros(3, 5)
    emissions[0, 2] = emissions[2, 1] = 80.0  # M first and B last: forbidden, however sure
    emissions.requires_grad_()
    sizes, tags = torch.tensor([3]), torch.tensor([0, 0, 4])
    crf.total(emissions, sizes, tags).backward()
    for found in (emissions.grad, *(weight.grad for weight in crf.parameters())):
        assert torch.isfinite(found).all()
        assert found.abs().sum() > 0
    assert (crf.transitions.grad[~torch.from_numpy(rules.follows)] == 0).all()
    chances = crf.marginals(emissions, sizes)
    assert chances[0, 2] == 0
    assert chances[2, 1] == 0
    torch.testing.assert_close(chances.sum(1), torch.ones(3))
    path, _ = crf.decode(emissions, sizes)
    assert Tags(["X"], "BMES").well_formed(path)


def test_packed_and_padded_rows_are_the_same_and_rows_do_not_know_each_other():
    lengths = [3, 0, 1, 4]
    crf, emissions, _, tags, _ = case(7, [3, 1, 4], None)
    sizes = torch.tensor(lengths)
    grid, wanted = grid_of(emissions, sizes, fill=9.0), grid_of(tags, sizes)
    assert torch.equal(items_of(grid, sizes), emissions)
    total = crf.total(emissions, sizes, tags)
    assert torch.equal(total, crf.total(grid, sizes, wanted))
    alone = [
        crf.total(e, torch.tensor([len(e)]), t)
        for e, t in zip(emissions.split(lengths), tags.split(lengths), strict=True)
    ]
    assert sum(alone).item() == pytest.approx(total.item(), abs=1e-9)
    assert alone[1] == 0
    paths, chances = crf.decode(grid, sizes)[0], crf.marginals(grid, sizes)
    assert torch.equal(items_of(paths, sizes), crf.decode(emissions, sizes)[0])
    assert torch.equal(items_of(chances, sizes), crf.marginals(emissions, sizes))
    assert chances[1].sum() == 0
    nothing = crf.total(emissions[:0], torch.tensor([0, 0]), tags[:0])
    nothing.backward()
    assert nothing == 0
    assert all((weight.grad == 0).all() for weight in crf.parameters())
    assert crf.decode(emissions[:0], torch.tensor([0, 0]))[0].shape == (0,)


def test_bitwise_repeatable():
    draw = torch.Generator().manual_seed(0)
    sizes = torch.randint(1, 40, (32,), generator=draw)
    emissions = torch.randn(int(sizes.sum()), 9, generator=draw)
    tags = torch.randint(0, 9, (len(emissions),), generator=draw)

    def once():
        crf, leaf = crf_of(1, 9, dtype=torch.float32), emissions.clone().requires_grad_()
        total = crf.total(leaf, sizes, tags)
        total.backward()
        return [total.detach(), leaf.grad, *(weight.grad for weight in crf.parameters())]

    for one, two in zip(once(), once(), strict=True):
        assert torch.equal(one, two)


def test_plain_scores_with_rules_give_the_best_well_formed_tags():
    tags = Tags(["X", "Y"], "BMES")
    scores = torch.randn(5, len(tags), generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    path, best = best_paths(scores, torch.tensor([5]), rule_scores(tags.rules, scores))
    assert tags.well_formed(path)
    free = CRF(len(tags), tags.rules).double()
    for weight in free.parameters():
        torch.nn.init.zeros_(weight)
    assert best.item() == pytest.approx(max(every_path(free, scores, tags.rules).values()))
    ties, _ = best_paths(torch.zeros(4, len(tags)), torch.tensor([4]), rule_scores(tags.rules, torch.zeros(1)))
    assert ties.tolist() == [0, 0, 0, 0]


def test_long_rows_keep_their_digits():
    crf = crf_of(2, 5, Tags(["X"], "BMES").rules, torch.float32)
    emissions = (30 * torch.randn(600, 5, generator=torch.Generator().manual_seed(0))).requires_grad_()
    path, score = crf.decode(emissions, torch.tensor([600]))
    total = crf.total(emissions, torch.tensor([600]), path)
    total.backward()
    twice = crf_of(2, 5, Tags(["X"], "BMES").rules)
    exact, best = twice.decode(emissions.double(), torch.tensor([600]))
    assert torch.equal(path, exact)
    assert score.item() == pytest.approx(best.item(), rel=1e-6)
    assert best.item() > 1e4
    assert total.item() == pytest.approx(twice.total(emissions.double(), torch.tensor([600]), path).item(), abs=1e-3)
    assert torch.isfinite(emissions.grad).all()
    torch.testing.assert_close(emissions.grad.sum(1), torch.zeros(600), atol=1e-6, rtol=0)


def test_refusals():
    crf = crf_of(0, 3, Tags(["X"]).rules)
    emissions, sizes = torch.zeros(3, 3, dtype=torch.float64), torch.tensor([1, 2])
    with pytest.raises(InputError, match=r"row 1 .* forbid: \[0, 2\]"):
        crf.total(emissions, sizes, torch.tensor([0, 0, 2]))
    with pytest.raises(InputError, match="row 0 "):
        crf.total(emissions, sizes, torch.tensor([2, 0, 0]))
    never = CRF(2, Rules(np.array([True, False]), np.zeros((2, 2), dtype=bool), np.array([True, True])))
    initialise(never, 0.02, 0)
    with pytest.raises(InputError, match="row 1 with 2 pieces: the rules allow no tags"):
        never.marginals(torch.zeros(3, 2), sizes)


def test_what_is_saved_is_plain_tensors():
    crf = CRF(3, Tags(["X"]).rules)
    initialise(crf, 0.02, 0)
    state = crf.state_dict()
    assert {name: tuple(value.shape) for name, value in state.items()} == {
        "transitions": (3, 3),
        "start_bias": (3,),
        "end_bias": (3,),
    }
    assert (state["start_bias"] == 0).all()
    assert state["transitions"].abs().max() <= 0.04
