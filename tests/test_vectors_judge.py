"""Figures of sentence vectors against scipy, scikit-learn and slow references."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as sk

from maskery.errors import ArgumentError, InputError, UnknownName
from maskery.inspection.bootstrap import resamples
from maskery.vectors.judge.encodes import Encodes, vectors_of
from maskery.vectors.judge.examples import TextPairs
from maskery.vectors.judge.geometry import GeometryTally, alignment_of
from maskery.vectors.judge.measure import evaluate_vectors
from maskery.vectors.judge.pairs import PairTally
from maskery.vectors.judge.similarity import similarities
from maskery.vectors.judge.sts import SimilarityTally


class Table:
    """An encoder that knows its vectors."""

    def __init__(self, vectors):
        self.vectors = {text: np.asarray(each, dtype=np.float32) for text, each in vectors.items()}
        self.asked = []

    def encode(self, texts):
        self.asked += texts
        return np.stack([self.vectors[text] for text in texts])


def drawn(n, d=8, seed=0, around=0.0):
    draws = np.random.default_rng(seed)
    return Table({f"t{k}": draws.normal(size=d) + around for k in range(n)})


def pairs_of(encoder, n, seed=1, labels=False):
    draws = np.random.default_rng(seed)
    rows = []
    for k in range(n):
        one, other = encoder.vectors[f"t{2 * k}"], encoder.vectors[f"t{2 * k + 1}"]
        score = float(one @ other) / 4 + draws.normal()
        rows.append((f"t{2 * k}", f"t{2 * k + 1}", float(score > 0) if labels else round(score)))
    return rows


def test_equal_texts_are_encoded_once_and_have_one_vector():
    encoder = drawn(3)
    found = vectors_of(encoder, ["t1", "t0", "t1"])
    assert sorted(encoder.asked) == ["t0", "t1"]
    assert (found[0] == found[2]).all()
    assert found.dtype == np.float32
    assert isinstance(encoder, Encodes)


def test_ten_thousand_sentences_are_ten_thousand_readings():
    """A model that reads pairs has 49,995,000 of them to read: 65 hours at 213.7 pairs a second (SBERT's figures)."""
    read = []

    class Counting:
        def encode(self, texts):
            read.extend(texts)
            return np.ones((len(texts), 2), dtype=np.float32)

    texts = [f"sentence {number}" for number in range(10_000)]
    assert vectors_of(Counting(), texts).shape == (10_000, 2)
    pairs = len(texts) * (len(texts) - 1) // 2
    assert (len(read), pairs, round(pairs / (65 * 3600), 1)) == (10_000, 49_995_000, 213.7)
    root = Path(__file__).parent.parent
    for page in ("docs/sentence-vectors.md", "docs/zh/sentence-vectors.md"):
        assert f"{pairs:,}" in (root / page).read_text(encoding="utf-8")


def test_similarities_are_what_they_are_called():
    draws = np.random.default_rng(3)
    one, other = draws.normal(size=(2, 40, 7)).astype(np.float32)
    found = similarities(one, other)
    for k in range(40):
        a, b = one[k].astype(float), other[k].astype(float)
        assert found["cosine"][k] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), rel=1e-6)
        assert found["dot"][k] == pytest.approx(a @ b, rel=1e-6)
        assert found["euclidean"][k] == pytest.approx(-math.dist(a, b), rel=1e-6)
        assert found["manhattan"][k] == pytest.approx(-sum(abs(a - b)), rel=1e-6)


def test_equal_vectors_have_the_cosine_one_exactly():
    vectors = np.random.default_rng(0).normal(size=(200, 33)).astype(np.float32)
    assert set(similarities(vectors, vectors)["cosine"]) == {1.0}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3)), min_size=3, max_size=40))
def test_correlations_with_ties_are_those_of_scipy(rows):
    gold, found = (np.array(side, dtype=np.float64) for side in zip(*rows, strict=True))
    if len(set(gold)) < 2 or len(set(found)) < 2:
        return
    figures = SimilarityTally(gold, {"cosine": found}).values(np.ones((1, len(gold))))
    assert figures["spearman"][0] == pytest.approx(stats.spearmanr(gold, found).statistic, abs=1e-12)
    assert figures["pearson"][0] == pytest.approx(stats.pearsonr(gold, found).statistic, abs=1e-12)


def test_a_resampled_correlation_is_that_of_the_rows_repeated():
    draws = np.random.default_rng(0)
    gold, found = draws.integers(0, 6, 50).astype(float), draws.normal(size=50).round(1)
    weights = draws.multinomial(50, np.full(50, 1 / 50), size=6).astype(float)
    figures = SimilarityTally(gold, {"cosine": found, "dot": -found}).values(weights)
    for k, each in enumerate(weights.astype(int)):
        x, y = np.repeat(gold, each), np.repeat(found, each)
        assert figures["spearman"][k] == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
        assert figures["spearman_dot"][k] == pytest.approx(-figures["spearman"][k], abs=1e-12)


def test_sts_from_texts_to_json():
    encoder = drawn(400)
    rows = pairs_of(encoder, 200)
    found = evaluate_vectors(encoder, "sts", rows)
    vectors = [[encoder.vectors[row[side]] for row in rows] for side in (0, 1)]
    cosine = 1 - sk.pairwise.paired_cosine_distances(*vectors)
    expected = stats.spearmanr([row[2] for row in rows], cosine).statistic
    assert found.metrics["spearman"] == pytest.approx(expected, abs=1e-6)
    low, high = found.intervals["spearman"]
    assert low < found.metrics["spearman"] < high
    plain = json.loads(json.dumps(found.plain(), allow_nan=False))
    assert plain["n"] == 200
    assert plain["spearman"] == found.metrics["spearman"] == found.value
    assert {"pearson", "spearman_dot", "pearson_euclidean", "spearman_manhattan"} <= set(plain)
    assert any("spearman " in line and "[" in line for line in found.lines())
    alone = evaluate_vectors(encoder, "sts", rows, besides=False)
    assert list(alone.metrics) == ["spearman", "pearson"]
    assert alone.intervals["spearman"] == found.intervals["spearman"]


def test_constant_vectors_have_no_correlation_and_this_is_told():
    found = evaluate_vectors(
        Table({text: [0.1, 0.7, 0.3] for text in "abcdef"}), "sts", [("a", "b", 1), ("c", "d", 2), ("e", "f", 3)]
    )
    assert all(math.isnan(value) for value in found.metrics.values())
    assert found.plain()["spearman"] is None
    assert found.plain()["intervals"]["spearman"] == [None, None]
    assert any("no correlation" in note for note in found.notes)
    assert "not defined" in "\n".join(found.lines())
    same = evaluate_vectors(drawn(6), "sts", [("t0", "t1", 2), ("t2", "t3", 2), ("t4", "t5", 2)])
    assert math.isnan(same.value)
    assert any("all scores are 2" in note for note in same.notes)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    """40 draws of 60 pairs of a known correlation: of 95 % intervals, 33 to 40 are to hold it."""
    held, true = 0, 6 / np.pi * np.arcsin(0.6 / 2)
    for seed in range(40):
        x, y = np.random.default_rng(seed).multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 60).T
        low, high = np.quantile(resamples(SimilarityTally(x, {"cosine": y}).values, 60)["spearman"], (0.025, 0.975))
        held += low <= true <= high
    assert 33 <= held <= 40


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=2, max_size=30))
def test_pairs_with_ties_are_those_of_scikit_learn_and_of_trying_all_thresholds(rows):
    same, found = (np.array(side, dtype=np.float64) for side in zip(*rows, strict=True))
    if same.min() == same.max():
        return
    tally = PairTally(same, {"cosine": found})
    figures = {name: value[0] for name, value in tally.values(np.ones((1, len(same)))).items()}
    assert figures["average_precision"] == pytest.approx(sk.average_precision_score(same, found), abs=1e-12)
    tried = [found >= threshold for threshold in np.arange(-0.5, 8)]
    assert figures["accuracy"] == max(np.mean(each == same) for each in tried)
    assert figures["f1"] == pytest.approx(max(f1_of(same, each) for each in tried), abs=1e-12)
    told = tally.thresholds()
    assert np.mean((found >= told["accuracy_threshold"]) == same) == figures["accuracy"]
    best = found >= told["f1_threshold"]
    assert f1_of(same, best) == pytest.approx(figures["f1"], abs=1e-12)
    assert told["precision"] == pytest.approx(same[best].mean(), abs=1e-12)
    assert told["recall"] == pytest.approx(best[same == 1].mean(), abs=1e-12)


def f1_of(same, taken):
    return 2 * (same * taken).sum() / (same.sum() + taken.sum())


def test_pairs_of_one_label_or_of_scores_are_refused():
    with pytest.raises(InputError, match="all 2 pairs have the label 1"):
        evaluate_vectors(drawn(4), "pairs", [("t0", "t1", 1), ("t2", "t3", 1)])
    with pytest.raises(InputError, match="label of pair 1 is 3"):
        evaluate_vectors(drawn(4), "pairs", [("t0", "t1", 1), ("t2", "t3", 3)])


def test_geometry_is_its_formulas_pair_by_pair():
    vectors = np.random.default_rng(5).normal(size=(30, 6)) + 0.7
    figures = {name: value[0] for name, value in GeometryTally(vectors).values(np.ones((1, 30))).items()}
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    couples = [(i, j) for i in range(30) for j in range(i)]
    assert figures["mean_cosine"] == pytest.approx(np.mean([unit[i] @ unit[j] for i, j in couples]), abs=1e-12)
    close = np.mean([math.exp(-2 * math.dist(unit[i], unit[j]) ** 2) for i, j in couples])
    assert figures["uniformity"] == pytest.approx(math.log(close), abs=1e-12)
    spread = np.sort(np.linalg.eigvalsh(np.cov(vectors.T)))[::-1]
    for k in (1, 3, 10):
        assert figures[f"variance@{k}"] == pytest.approx(spread[:k].sum() / spread.sum(), abs=1e-12)


def test_alignment_is_over_the_pairs_that_mean_the_same():
    encoder = drawn(12)
    rows = [(f"t{2 * k}", f"t{2 * k + 1}", score) for k, score in enumerate((5, 4.2, 4, 3, 0, 1))]
    found = evaluate_vectors(encoder, "geometry", rows)
    unit = {text: each / np.linalg.norm(each) for text, each in encoder.vectors.items()}
    near = [math.dist(unit[a], unit[b]) ** 2 for a, b, score in rows if score > 4]
    assert found.metrics["alignment"] == pytest.approx(np.mean(near), rel=1e-5)
    assert any("2 pairs with a score above 4" in note for note in found.notes)
    assert "alignment" not in evaluate_vectors(encoder, "geometry", ["t0", "t1", "t2"]).metrics
    assert alignment_of(np.ones((1, 2), np.float32), -np.ones((1, 2), np.float32))[0] == pytest.approx(4)


def test_vectors_that_are_all_alike_have_no_direction():
    found = evaluate_vectors(Table({text: [1.0, 2.0] for text in "abc"}), "geometry", list("abc"))
    assert found.metrics["mean_cosine"] == pytest.approx(1)
    assert found.metrics["uniformity"] == pytest.approx(0)
    assert math.isnan(found.metrics["variance@1"])
    assert any("all vectors are the same" in note for note in found.notes)


def test_zero_vectors_are_told():
    found = evaluate_vectors(
        Table({"a": [0, 0], "b": [1, 0], "c": [1, 1], "d": [0, 1]}), "sts", [("a", "b", 1), ("c", "d", 2)]
    )
    assert any("all zeros" in note for note in found.notes)


class Broken:
    def __init__(self, made):
        self.made = made

    def encode(self, texts):
        return self.made(texts)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda texts: np.full((len(texts), 2), np.nan, np.float32), "not finite"),
        (lambda texts: np.zeros((1, 2), np.float32), r"of 4 texts"),
        (lambda texts: np.zeros((len(texts), 2), np.int64), "int64"),
    ],
    ids=["nan", "too few", "integers"],
)
def test_vectors_that_cannot_be_are_refused(made, message):
    with pytest.raises(InputError, match=message):
        evaluate_vectors(Broken(made), "sts", [("a", "b", 1), ("c", "d", 2)])


def test_what_cannot_be_judged_is_refused_with_its_place():
    with pytest.raises(InputError, match="nothing to judge") as caught:
        TextPairs(first=(), second=(), score=np.array([]), place="empty.tsv")
    assert caught.value.where == "empty.tsv"
    for kind in ("sts", "pairs", "retrieval", "clustering", "geometry"):
        with pytest.raises(InputError, match="nothing to judge"):
            evaluate_vectors(drawn(2), kind, [])
    with pytest.raises(UnknownName, match="sts"):
        evaluate_vectors(drawn(2), "stss", [])
    with pytest.raises(ArgumentError, match="text 0 is 3"):
        evaluate_vectors(drawn(2), "sts", [(3, "t0", 1.0)])
    with pytest.raises(ArgumentError, match="example 0"):
        evaluate_vectors(drawn(2), "sts", [("t0", "t1")])
    with pytest.raises(ArgumentError, match="no encode"):
        evaluate_vectors(object(), "sts", [("t0", "t1", 1)])
    with pytest.raises(InputError, match="not a number"):
        evaluate_vectors(drawn(2), "sts", [("t0", "t1", math.nan)])
