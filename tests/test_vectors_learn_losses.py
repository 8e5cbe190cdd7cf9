"""Losses of sentence vectors against sentence-transformers' own on the same batch, closed forms and slow references."""

from __future__ import annotations

import math

import pytest
import torch

from maskery.batches import Targets
from maskery.vectors.learn.contrast import CoSENT, InBatch, left_out, not_rivals, not_rivals_among_all, partners
from maskery.vectors.learn.losses import TEXTS, CosineRegression, Softmax, Triplet
from maskery.vectors.learn.settings import JOINS, LOSSES, learn_config

UNITS, WIDTH = 7, 12


def drawn(k, units=UNITS, seed=0):
    made = torch.Generator().manual_seed(seed)
    return torch.randn(units, k, WIDTH, generator=made, dtype=torch.float64).requires_grad_()


def asked(units=UNITS, label=None, texts=None, k=2):
    return Targets(
        index=torch.arange(units),
        label=torch.zeros(units) if label is None else torch.as_tensor(label),
        extra={TEXTS: torch.arange(units * k).view(units, k) if texts is None else torch.as_tensor(texts)},
    )


class Model(torch.nn.Module):
    device = torch.device("cpu")


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("sentence_transformers.sentence_transformer.losses")


def assert_same(ours, vectors, theirs_loss, label=None):
    """The mean over units, and its gradient."""
    mean = ours.losses.mean()
    (gradient,) = torch.autograd.grad(mean, vectors)
    other = theirs_loss.compute_loss_from_embeddings(list(vectors.unbind(1)), label)
    (wanted,) = torch.autograd.grad(other, vectors)
    assert mean.item() == pytest.approx(other.item(), rel=1e-9)
    assert torch.linalg.vector_norm(gradient - wanted) <= 1e-6 * torch.linalg.vector_norm(wanted)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_multiple_negatives(theirs, k):
    vectors = drawn(k)
    found = InBatch().compare(vectors, asked(k=k))
    assert_same(found, vectors, theirs.MultipleNegativesRankingLoss(Model()))
    both = InBatch(13.0, symmetric=True).compare(vectors, asked(k=k))
    directions = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
    assert_same(both, vectors, theirs.MultipleNegativesRankingLoss(Model(), scale=13.0, **directions))


def test_cosent(theirs):
    vectors, label = drawn(2), torch.tensor([0.0, 1, 1, 3, 5, 0, 2])
    found = CoSENT().compare(vectors, asked(label=label))
    assert len(set(found.losses.tolist())) == 1
    assert_same(found, vectors, theirs.CoSENTLoss(Model()), label)
    assert float(CoSENT().compare(vectors, asked(label=torch.ones(UNITS))).losses[0].detach()) == 0.0


def test_cosine_regression(theirs):
    vectors, label = drawn(2), torch.linspace(0, 5, UNITS, dtype=torch.float64)
    found = CosineRegression(5.0).compare(vectors, asked(label=label))
    assert_same(found, vectors, theirs.CosineSimilarityLoss(Model()), label / 5)


def test_triplet(theirs):
    vectors = drawn(3)
    far = {"distance_metric": lambda one, other: (one - other).norm(dim=1), "triplet_margin": 1}
    assert_same(Triplet().compare(vectors, asked()), vectors, theirs.TripletLoss(Model(), **far))
    # Theirs adds 1e-6 to every difference, so that it is another number by about as much.
    found = Triplet(5.0).compare(vectors, asked()).losses.mean()
    other = theirs.TripletLoss(Model()).compute_loss_from_embeddings(list(vectors.unbind(1)), None)
    assert found.item() == pytest.approx(other.item(), rel=1e-6)
    cosine = {"distance_metric": theirs.TripletDistanceMetric.COSINE, "triplet_margin": 0.5}
    assert_same(Triplet(0.5, "cosine").compare(vectors, asked()), vectors, theirs.TripletLoss(Model(), **cosine))


@pytest.mark.parametrize("join", JOINS)
def test_softmax(theirs, join, monkeypatch):
    vectors, label = drawn(2), torch.tensor([0, 2, 1, 0, 2, 2, 1])
    parts = join.split("_")
    other = theirs.SoftmaxLoss(
        Model(),
        WIDTH,
        3,
        concatenation_sent_rep="uv" in parts,
        concatenation_sent_difference="difference" in parts,
        concatenation_sent_multiplication="product" in parts,
    ).double()
    ours = Softmax(WIDTH, 3, join).double()
    ours.classes.load_state_dict(other.classifier.state_dict())
    module = __import__(type(other).__module__, fromlist=["embed_columns"])
    monkeypatch.setattr(module, "embed_columns", lambda model, features: list(vectors.unbind(1)))
    found, wanted = ours.compare(vectors, asked(label=label)), other([], label)
    assert found.losses.mean().item() == pytest.approx(wanted.item(), rel=1e-9)
    for one, two in ((vectors, vectors), (ours.classes.weight, other.classifier.weight)):
        (mine,) = torch.autograd.grad(found.losses.mean(), one, retain_graph=True)
        (gradient,) = torch.autograd.grad(wanted, two, retain_graph=True)
        assert torch.linalg.vector_norm(mine - gradient) <= 1e-6 * torch.linalg.vector_norm(gradient)
    assert found.hits.tolist() == (ours.scores(vectors).argmax(1) == label).tolist()


def test_the_head_and_the_triplet_of_the_paper():
    assert Softmax(768, 3, "uv_difference").classes.weight.shape == (3, 3 * 768)
    assert Softmax(768, 3, "uv_difference").classes.weight.numel() == 6912
    three = torch.tensor([[[0.0, 0], [3, 4], [0, 1]], [[0, 0], [0, 1], [3, 4]]])
    assert Triplet().compare(three, asked(2)).losses.tolist() == [5.0, 0.0]


def slow_simbert(vectors, scale):
    """Row by row, as the loss is told: rows a1 b1 a2 b2, each looks for its partner and never for itself."""
    flat = vectors.flatten(0, 1)
    flat = [row / row.norm() for row in flat]
    losses = []
    for i, row in enumerate(flat):
        partner = i + 1 if i % 2 == 0 else i - 1
        scores = [float(scale * (row @ other)) for j, other in enumerate(flat) if j != i]
        losses.append(math.log(sum(map(math.exp, scores))) - float(scale * (row @ flat[partner])))
    return sum(losses) / len(losses)


def test_simbert_finds_the_partner_among_all_but_itself():
    assert partners(4).tolist() == [1, 0, 3, 2]
    vectors = drawn(2)
    loss = LOSSES.get("simbert").of(learn_config("simbert"), WIDTH)
    assert (loss.scale, loss.rivals, learn_config("simbert").generate) == (30.0, "all", 1.0)
    found = loss.compare(vectors, asked())
    assert found.losses.mean().item() == pytest.approx(slow_simbert(vectors.detach(), 30), rel=1e-9)
    assert found.losses.shape == (UNITS,)


def test_simcse_may_be_simbert_of_a_line_with_itself():
    """The same comparison with b = a under another dropout, and nothing is written."""
    config = learn_config("simcse", {"rivals": "all", "scale": 30.0})
    assert config.generate == 0
    vectors = drawn(2)
    twice = [[unit, unit] for unit in range(UNITS)]
    found = LOSSES.get("simcse").of(config, WIDTH).compare(vectors, asked(texts=twice)).losses.mean()
    assert found.item() == pytest.approx(slow_simbert(vectors.detach(), 30), rel=1e-9)


def test_simcse_is_at_temperature_a_twentieth():
    config = learn_config("simcse")
    assert (1 / config.scale, config.projection) == (0.05, "training")
    assert learn_config("simcse_supervised").projection == "kept"
    vectors = drawn(2).detach()
    one, other = (part / part.norm(dim=1, keepdim=True) for part in vectors.unbind(1))
    wanted = torch.nn.functional.cross_entropy(one @ other.t() / 0.05, torch.arange(UNITS))
    found = LOSSES.get("simcse").of(config, WIDTH).compare(vectors, asked()).losses.mean()
    assert float(found) == pytest.approx(float(wanted), rel=1e-9)


def slow_not_rivals(texts):
    units, k = len(texts), len(texts[0])
    found = [[False] * (units * (k - 1)) for _ in range(units)]
    for i in range(units):
        for column in range(1, k):
            for j in range(units):
                if column == 1 and i == j:
                    continue
                right = texts[j][column] in (texts[i][0], texts[i][1]) or (column == 1 and texts[j][0] == texts[i][0])
                found[i][(column - 1) * units + j] = right
    return found


@pytest.mark.parametrize("seed", range(4))
def test_what_is_right_is_never_a_negative(seed):
    made = torch.Generator().manual_seed(seed)
    texts = torch.randint(0, 9, (6, 3), generator=made)
    assert not_rivals(texts).tolist() == slow_not_rivals(texts.tolist())
    vectors = drawn(3, 6, seed)
    equal = InBatch().compare(vectors, asked(6, texts=texts)).losses
    apart = InBatch().compare(vectors, asked(6, k=3)).losses
    masked = not_rivals(texts).any(1)
    assert (equal <= apart).all()
    assert ((equal < apart) == masked).all()


def test_equal_texts_are_counted_and_kept_apart():
    texts = torch.tensor([[0, 1], [2, 1], [0, 3], [4, 5]])  # 1 is right for 0 and 2, and 0 has two that are right
    assert not_rivals(texts).tolist() == [
        [False, True, True, False],
        [True, False, False, False],
        [True, False, False, False],
        [False] * 4,
    ]
    assert left_out(texts.numpy(), "across") == 4
    every = not_rivals_among_all(texts)
    assert every.diagonal().all()
    assert every[0].tolist() == [True, False, False, True, True, False, False, False]
    assert left_out(texts.numpy(), "all") == int(every.sum()) - 8


def test_hits_are_units_that_are_nearest_to_their_own():
    vectors = torch.eye(3).unsqueeze(1).expand(3, 2, 3).contiguous()
    assert InBatch().compare(vectors, asked(3)).hits.tolist() == [True] * 3
    assert InBatch(rivals="all").compare(vectors, asked(3)).hits.tolist() == [True] * 3
    vectors[0, 1] = vectors[1, 0]
    assert InBatch().compare(vectors, asked(3)).hits.tolist() == [False, False, True]
