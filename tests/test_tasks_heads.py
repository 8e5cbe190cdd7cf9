"""Heads, columns beside the text, and losses that are sums with counts known before."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from maskery.errors import InputError, UnknownName
from maskery.model.initial import initialise
from maskery.tasks.examples import TASKS
from maskery.tasks.heads import MetaJoin, head_of, with_language_model
from maskery.tasks.losses import FITTING, LOSSES, Wanted, choice_probabilities, loss_of
from maskery.tasks.settings import HeadConfig, LayerConfig

LAYERS = (LayerConfig(width=7, activation="tanh", norm=True, dropout=0.1), LayerConfig(width=5, activation="gelu"))


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def made(width=6, classes=3, bias=True, **config):
    head = head_of(width, classes, HeadConfig(**config), bias=bias)
    initialise(head, 0.5, 0, prefix="head")
    return head


def test_a_head_is_its_list_of_layers():
    head, x = made(layers=LAYERS).eval(), drawn(4, 6)
    one, two = head.layers
    y = F.layer_norm(x @ one.dense.weight.T + one.dense.bias, (7,), one.norm.weight, one.norm.bias, 1e-12)
    y = F.gelu(torch.tanh(y) @ two.dense.weight.T + two.dense.bias)
    torch.testing.assert_close(head(x), y @ head.answer.weight.T + head.answer.bias)
    assert [tuple(value.shape) for value in head.state_dict().values()] == [
        (7, 6), (7,), (7,), (7,), (5, 7), (5,), (3, 5), (3,)
    ]  # fmt: skip
    assert (one.norm.weight == 1).all()
    assert (head.answer.bias == 0).all()
    assert set(made(bias=False).state_dict()) == {"answer.weight"}


def test_metadata_is_joined_to_the_text():
    join = MetaJoin([10])
    initialise(join, 0.02, 0, prefix="meta")
    x, category = drawn(3, 768), torch.tensor([[4], [0], [9]])
    joined = join(x, category, torch.zeros(3, 0))
    assert [tuple(table.shape) for table in join.state_dict().values()] == [(10, 32)]
    assert joined.shape == (3, 768 + 32)
    head = head_of(768 + join.added, 2)
    assert head.answer.weight.shape == (2, 800)
    assert torch.equal(joined[:, :768], x)
    assert torch.equal(joined[:, 768:], join.tables[0][category.squeeze(1)])
    several = MetaJoin([10, 3], 2, width=4)
    initialise(several, 0.02, 0)
    quantities = drawn(2, 2)
    found = several(drawn(2, 5), torch.tensor([[1, 2], [9, 0]]), quantities)
    assert found.shape == (2, 5 + several.added) == (2, 15)
    assert torch.equal(found[:, -2:], quantities)
    with pytest.raises(InputError, match="1 categories and 0 quantities"):
        several(drawn(2, 5), torch.tensor([[1], [9]]), torch.zeros(2, 0))


class TestManyDropouts:
    x, label = drawn(8, 6), torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])

    def loss(self, scores):
        return F.cross_entropy(scores, self.label, reduction="sum")

    def test_without_dropout_they_are_one_pass(self):
        many, one = made(samples=5, dropout=0.5).eval(), made(dropout=0.0)
        assert torch.equal(many(self.x), one(self.x))
        assert torch.equal(many.total(self.x, self.loss), one.total(self.x, self.loss))
        off = made(samples=5, dropout=0.0).train()
        assert torch.equal(off.total(self.x, self.loss), one.total(self.x, self.loss))

    def test_with_dropout_the_mean_is_taken(self):
        head = made(samples=5, dropout=0.5).train()
        torch.manual_seed(3)
        draws = head.draws(self.x)
        assert len(draws) == 5
        assert not torch.equal(draws[0], draws[1])
        torch.manual_seed(3)
        total = head.total(self.x, self.loss)
        torch.testing.assert_close(total, sum(map(self.loss, draws)) / 5)
        torch.manual_seed(3)
        torch.testing.assert_close(head(self.x), sum(draws) / 5)

    def test_gradients_reach_every_weight(self):
        head = made(samples=3, dropout=0.5, layers=LAYERS).train()
        head.total(self.x, self.loss).backward()
        assert all(weight.grad.abs().sum() > 0 for weight in head.parameters())


def test_the_language_model_has_half_a_say():
    assert with_language_model(torch.tensor(2.0), torch.tensor(3.0), 0.5) == 3.5


def total(name, scores, label, sizes=None, **config):
    loss = LOSSES[name](HeadConfig(**config))
    wanted = Wanted(label=label, sizes=None if sizes is None else torch.tensor(sizes, dtype=torch.long))
    return loss.total(scores, wanted).item(), loss.count(wanted)


class TestLosses:
    scores, label = drawn(5, 3), torch.tensor([0, 2, 1, 1, 0])

    def test_cross_entropy(self):
        logs = self.scores.log_softmax(1)
        right = [float(logs[n, k]) for n, k in enumerate(self.label)]
        assert total("cross_entropy", self.scores, self.label) == (pytest.approx(-sum(right), rel=1e-5), 5)
        smooth = -sum(0.9 * r + 0.1 * float(logs[n].mean()) for n, r in enumerate(right))
        assert total("cross_entropy", self.scores, self.label, smoothing=0.1)[0] == pytest.approx(smooth, rel=1e-5)

    def test_focal(self):
        right = [float(p[k]) for p, k in zip(self.scores.softmax(1), self.label, strict=True)]
        slow = -sum((1 - p) ** 2 * math.log(p) for p in right)
        assert total("focal", self.scores, self.label) == (pytest.approx(slow, rel=1e-5), 5)
        plain = total("cross_entropy", self.scores, self.label)[0]
        assert total("focal", self.scores, self.label, focus=0)[0] == pytest.approx(plain, rel=1e-5)
        sure = torch.tensor([[90.0, -90.0]], requires_grad=True)
        LOSSES["focal"](HeadConfig(focus=0.5)).total(sure, Wanted(label=torch.tensor([0]))).backward()
        assert torch.isfinite(sure.grad).all()

    def test_binary(self):
        hot = torch.tensor([[1, 0, 1]] * 2 + [[0, 0, 0]] * 3)
        p = self.scores.sigmoid().tolist()
        slow = sum(-math.log(p[n][k] if hot[n, k] else 1 - p[n][k]) / 3 for n in range(5) for k in range(3))
        assert total("binary", self.scores, hot) == (pytest.approx(slow, rel=1e-5), 5)

    def test_numbers(self):
        target = drawn(5, seed=4)
        gaps = [float(a - b) for a, b in zip(self.scores[:, 0], target, strict=True)]
        for shape in ((5,), (5, 1)):
            scores = self.scores[:, 0].reshape(shape)
            assert total("mse", scores, target) == (pytest.approx(sum(g * g for g in gaps), rel=1e-5), 5)
            assert total("mae", scores, target) == (pytest.approx(sum(map(abs, gaps)), rel=1e-5), 5)

    def test_span(self):
        slots, sizes, label = drawn(7, 2), [3, 4], torch.tensor([[0, 2], [1, 3]])
        slow = 0.0
        for row, part in zip(label.tolist(), slots.split(sizes), strict=True):
            slow -= sum(float(part[:, way].log_softmax(0)[row[way]]) / 2 for way in (0, 1))
        assert total("span", slots, label, sizes) == (pytest.approx(slow, rel=1e-5), 2)

    def test_groups_must_be_told(self):
        with pytest.raises(InputError, match="how many each"):
            total("listwise", self.scores[:, 0], self.label)


@settings(deadline=None, max_examples=40)
@given(data=st.data(), sizes=st.lists(st.integers(0, 4), min_size=1, max_size=5))
def test_losses_over_candidates_equal_loops(data, sizes):
    many = sum(sizes)
    scores = torch.tensor(data.draw(st.lists(st.floats(-5, 5, width=32), min_size=many, max_size=many)))
    relevance = torch.tensor(data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=many, max_size=many)))
    questions = list(zip(scores.double().split(sizes), relevance.double().split(sizes), strict=True))
    listed = [(s, r) for s, r in questions if r.sum() > 0]
    slow = sum(float(-(r / r.sum() * s.log_softmax(0)).sum()) for s, r in listed)
    assert total("listwise", scores, relevance, sizes) == (pytest.approx(slow, rel=1e-4, abs=1e-5), len(listed))
    pairs = [
        math.log1p(math.exp(float(s[b] - s[a])))
        for s, r in questions
        for a, b in itertools.permutations(range(len(s)), 2)
        if r[a] > r[b]
    ]
    assert total("pairwise", scores, relevance, sizes) == (pytest.approx(sum(pairs), rel=1e-4, abs=1e-5), len(pairs))
    chances = choice_probabilities(scores, torch.tensor(sizes)).split(sizes)
    for chance, (s, _) in zip(chances, questions, strict=True):
        torch.testing.assert_close(chance.double(), s.softmax(0), atol=1e-6, rtol=1e-5)
        assert not len(s) or float(chance.sum()) == pytest.approx(1, abs=1e-5)
    full = [size for size in sizes if size]
    right = torch.tensor([data.draw(st.integers(0, size - 1)) for size in full], dtype=torch.long)
    picked = [float(s.log_softmax(0)[k]) for (s, _), k in zip([q for q in questions if len(q[0])], right, strict=True)]
    assert total("choice", scores, right, full) == (pytest.approx(-sum(picked), rel=1e-4, abs=1e-5), len(full))


@pytest.mark.parametrize("name", LOSSES)
def test_parts_of_a_batch_add_up_and_gradients_are_finite(name):
    ranked = name in ("listwise", "pairwise", "choice", "span")
    wide = {"cross_entropy": 3, "focal": 3, "binary": 3, "span": 2}.get(name, 1)
    scores = (30 * drawn(8, wide)).requires_grad_()
    label = {
        "cross_entropy": torch.arange(8) % 3,
        "focal": torch.arange(8) % 3,
        "binary": torch.ones(8, 3),
        "choice": torch.tensor([1, 0]),
        "span": torch.tensor([[1, 2], [0, 4]]),
    }.get(name, torch.arange(8.0) % 3)
    loss = LOSSES[name](HeadConfig())
    sizes = torch.tensor([3, 5]) if ranked else None
    whole = Wanted(label=label, sizes=sizes)
    cut = 1 if name in ("choice", "span") else 3
    parts = [
        Wanted(label=label[:cut], sizes=None if sizes is None else sizes[:1]),
        Wanted(label=label[cut:], sizes=None if sizes is None else sizes[1:]),
    ]
    summed = loss.total(scores[:3], parts[0]) + loss.total(scores[3:], parts[1])
    torch.testing.assert_close(loss.total(scores, whole), summed)
    assert loss.count(whole) == loss.count(parts[0]) + loss.count(parts[1])
    loss.total(scores, whole).backward()
    assert torch.isfinite(scores.grad).all()
    nothing = Wanted(label=label[:0], sizes=None if sizes is None else sizes[:0])
    empty = scores[:0].detach().requires_grad_()
    loss.total(empty, nothing).backward()
    assert loss.count(nothing) == 0
    assert empty.grad is not None


def test_losses_by_name():
    assert {task: names[0] for task, names in FITTING.items()} == {
        "classify": "cross_entropy", "pair": "cross_entropy", "regress": "mse", "multilabel": "binary",
        "tag": "cross_entropy", "qa": "span", "choice": "choice", "rank": "listwise",
    }  # fmt: skip
    assert {*FITTING, "seq2seq"} == set(TASKS)
    scores, wanted = drawn(2, 3), Wanted(label=torch.tensor([0, 1]))
    smooth = loss_of("classify", HeadConfig(smoothing=0.2)).total(scores, wanted)
    assert torch.equal(smooth, F.cross_entropy(scores, wanted.label, reduction="sum", label_smoothing=0.2))
    with pytest.raises(UnknownName, match="did you mean focal"):
        loss_of("classify", HeadConfig(loss="fokal"))
    with pytest.raises(InputError, match="mse is no loss for classify"):
        loss_of("classify", HeadConfig(loss="mse"))
    with pytest.raises(InputError, match="loss of its own"):
        loss_of("seq2seq", HeadConfig())
