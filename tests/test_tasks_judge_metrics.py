"""Metrics of classes, scores and spans against scikit-learn, SciPy and slow obvious references; intervals."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as oracle

from maskery.errors import InputError, UnknownName
from maskery.inspection.bootstrap import weights as resampled_weights
from maskery.inspection.statistics import wilson
from maskery.tasks.examples import TASKS, Span
from maskery.tasks.judge import HEADLINES, judge, measure
from maskery.tasks.judge.classes import class_tally
from maskery.tasks.judge.scores import score_tally
from maskery.tasks.judge.tagging import span_tally

CLOSE = {"abs": 1e-12, "rel": 0}
SEEDS = st.integers(0, 10_000)


def drawn_classes(seed, classes, n=60):
    """Gold, predictions and chances; every class is there, some chances are equal."""
    draw = np.random.default_rng(seed)
    gold = np.concatenate([np.arange(classes), draw.integers(0, classes, n)])
    scores = np.round(draw.normal(size=(len(gold), classes)) + np.eye(classes)[gold], 1)
    chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    return gold, chances.argmax(1), chances


def named(numbers):
    return [f"c{number}" for number in numbers]


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.integers(2, 6))
def test_classes_equal_scikit_learn(seed, classes):
    gold, predicted, chances = drawn_classes(seed, classes)
    found = measure("classify", named(gold), named(predicted), labels=named(range(classes)), probabilities=chances)
    assert found["accuracy"] == pytest.approx(oracle.accuracy_score(gold, predicted), **CLOSE)
    assert found["macro_f1"] == pytest.approx(oracle.f1_score(gold, predicted, average="macro"), **CLOSE)
    assert found["mcc"] == pytest.approx(oracle.matthews_corrcoef(gold, predicted), **CLOSE)
    if classes == 2:
        assert found["f1"] == pytest.approx(oracle.f1_score(gold, predicted), **CLOSE)
        area = oracle.roc_auc_score(gold, chances[:, 1])
    else:
        assert "f1" not in found
        area = oracle.roc_auc_score(gold, chances, multi_class="ovr", average="macro")
    assert found["auc"] == pytest.approx(area, **CLOSE)


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_label_sets_equal_scikit_learn(seed):
    draw = np.random.default_rng(seed)
    gold, predicted = (draw.random((30, 5)) < 0.3 for _ in range(2))
    gold[0] = True
    sets = [[frozenset(named(np.flatnonzero(line))) for line in side] for side in (gold, predicted)]
    found = measure("multilabel", *sets, labels=named(range(5)))
    assert found["micro_f1"] == pytest.approx(oracle.f1_score(gold, predicted, average="micro"), **CLOSE)
    assert found["macro_f1"] == pytest.approx(oracle.f1_score(gold, predicted, average="macro"), **CLOSE)
    assert found["subset_accuracy"] == pytest.approx(oracle.accuracy_score(gold, predicted), **CLOSE)


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.sampled_from([0, 1, 6]))
def test_scores_equal_scipy(seed, digits):
    draw = np.random.default_rng(seed)
    gold = np.round(draw.normal(size=40), digits)
    predicted = np.round(gold + draw.normal(size=40), digits)
    found = measure("regress", gold, predicted)
    assert found["spearman"] == pytest.approx(stats.spearmanr(gold, predicted).statistic, **CLOSE)
    assert found["pearson"] == pytest.approx(stats.pearsonr(gold, predicted).statistic, **CLOSE)
    assert found["mse"] == pytest.approx(oracle.mean_squared_error(gold, predicted), **CLOSE)


@settings(max_examples=12, deadline=None)
@given(SEEDS)
def test_a_resample_is_the_set_that_was_drawn(seed):
    """Weights say the same as examples written out as often as they were drawn."""
    draw = np.random.default_rng(seed)
    weights = draw.multinomial(24, np.full(24, 1 / 24), size=3).astype(float)
    gold, predicted, chances = drawn_classes(seed, 3, 21)
    scores = np.round(draw.normal(size=(2, 24)), 1)
    spans = [[[Span(int(at), int(at) + 2, "AB"[at % 2]) for at in draw.integers(0, 6, 2)] for _ in gold] for _ in "12"]
    tallies = {
        "classify": class_tally(named(gold), named(predicted), named(range(3)), chances).values(weights),
        "regress": score_tally(*scores).values(weights),
        "tag": span_tally(*spans).values(weights),
    }
    for number, line in enumerate(weights.astype(int)):
        rows = np.repeat(np.arange(24), line)
        written = {
            "classify": measure(
                "classify", named(gold[rows]), named(predicted[rows]), labels=named(range(3)),
                probabilities=chances[rows],
            ),
            "regress": measure("regress", *scores[:, rows]),
            "tag": measure("tag", *([side[row] for row in rows] for side in spans)),
        }  # fmt: skip
        for task, figures in written.items():
            for name, value in figures.items():
                assert tallies[task][name][number] == pytest.approx(value, abs=1e-9), (task, name)


def slow_spans(gold, predicted, kind=None):
    hits = given = right = 0
    for wanted, found in zip(gold, predicted, strict=True):
        wanted = {span for span in wanted if kind in (None, span.kind)}
        found = {span for span in found if kind in (None, span.kind)}
        hits, given, right = hits + len(wanted & found), given + len(found), right + len(wanted)
    precision, recall = hits / given if given else 0.0, hits / right if right else 0.0
    return precision, recall, 2 * precision * recall / (precision + recall) if hits else 0.0


SPANS = st.lists(st.builds(lambda at, long, kind: Span(at, at + long, kind), st.integers(0, 5), st.integers(1, 2),
                           st.sampled_from(["PER", "地址"])), max_size=4)  # fmt: skip


@settings(max_examples=40)
@given(st.lists(st.tuples(SPANS, SPANS), min_size=1, max_size=6))
def test_spans_equal_counting(pairs):
    gold, predicted = zip(*pairs, strict=True)
    found = measure("tag", gold, predicted)
    for kind in (None, *{span.kind for side in (*gold, *predicted) for span in side}):
        behind = "" if kind is None else f"/{kind}"
        wanted = dict(zip(("precision", "recall", "span_f1"), slow_spans(gold, predicted, kind), strict=True))
        assert {name: found[name + behind] for name in wanted} == pytest.approx(wanted, abs=1e-12)


def test_tokens_of_tags_are_counted_where_they_are_given():
    tags = ([["B", "I", "O"], ["O"]], [["B", "O", "O"], ["O"]])
    assert measure("tag", [[], []], [[], []], tags=tags)["token_accuracy"] == 0.75
    assert "token_accuracy" not in measure("tag", [[], []], [[], []])
    with pytest.raises(InputError, match="1 predicted tags for 2 tokens"):
        measure("tag", [[]], [[]], tags=([["O", "O"]], [["O"]]))


# -- what the data does not define


def test_one_class_has_defined_figures_and_is_told():
    found = judge("classify", ["a"] * 4, ["a", "a", "b", "a"], labels=["a", "b"], probabilities=[[0.6, 0.4]] * 4)
    assert (found.metrics["mcc"], found.metrics["auc"], found.metrics["f1"]) == (0, 0.5, 0)
    assert any("all right answers are 'a': mcc is 0 and auc 0.5" in note for note in found.notes)
    same = judge("classify", ["a", "b"] * 3, ["a"] * 6)
    assert same.metrics["mcc"] == 0
    assert any("all predictions are 'a'" in note for note in same.notes)


def test_classes_that_do_not_occur_are_left_out_and_told():
    found = judge("classify", ["a", "b", "b"], ["a", "b", "a"], labels=["a", "b", "never"])
    assert found.metrics["macro_f1"] == pytest.approx(2 / 3)
    assert any("leaves out what neither occurs nor is predicted: never" in note for note in found.notes)


def test_a_class_that_the_model_never_saw_has_chance_zero():
    found = measure(
        "classify", ["a", "b", "new"], ["a", "b", "a"], labels=["a", "b"], probabilities=np.eye(2)[[0, 1, 0]]
    )
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["auc"] == pytest.approx((0.75 + 1 + 0.5) / 3)


@pytest.mark.parametrize(("gold", "predicted"), [([0.1] * 7, range(7)), (range(7), [0.1] * 7)])
def test_scores_that_are_all_alike_have_no_correlation(gold, predicted):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = judge("regress", list(gold), list(predicted))
    assert found.metrics["spearman"] == found.metrics["pearson"] == 0
    assert found.intervals["pearson"] == (0, 0)
    assert any("0 by definition" in note for note in found.notes)


def test_no_spans_are_zero_and_told():
    found = judge("tag", [[Span(0, 1, "A")]], [[]])
    assert (found.metrics["precision"], found.metrics["recall"], found.metrics["span_f1"]) == (0, 0, 0)
    assert "no span was predicted: precision and span_f1 are 0 by definition" in found.notes
    assert "no right span is there: recall and span_f1 are 0 by definition" in judge("tag", [[]], [[]]).notes


@pytest.mark.parametrize("task", TASKS)
def test_nothing_cannot_be_judged(task):
    with pytest.raises(InputError, match="nothing to judge"):
        measure(task, [], [], groups=[])
    with pytest.raises(InputError, match="1 predictions for 2 examples"):
        measure(task, ["1", "2"], ["1"], groups=[1, 2])


def test_what_cannot_be_is_refused():
    with pytest.raises(UnknownName, match="classify"):
        measure("clasify", ["a"], ["a"])
    with pytest.raises(InputError, match=r"shape \(2, 3\) for 2 examples of 2 classes"):
        measure("pair", ["a", "b"], ["a", "b"], probabilities=np.ones((2, 3)))
    with pytest.raises(InputError, match="example 1: a probability is not a number"):
        measure("pair", ["a", "b"], ["a", "b"], probabilities=[[0.5, 0.5], [np.nan, 1]])
    with pytest.raises(InputError, match="example 0: a predicted score is not a number"):
        measure("regress", [1.0], [np.nan])


# -- intervals


def slow_macro_f1(gold, predicted):
    found = []
    for each in {*gold, *predicted}:
        hits = sum(one == other == each for one, other in zip(gold, predicted, strict=True))
        found.append(2 * hits / (gold.count(each) + predicted.count(each)))
    return sum(found) / len(found)


def test_an_interval_is_that_of_examples_drawn_one_by_one():
    gold, predicted, _ = drawn_classes(1, 3, 47)
    found = judge("classify", named(gold), named(predicted))
    slow = []
    for some in resampled_weights(50):
        for line in some.astype(int):
            rows = np.repeat(np.arange(50), line)
            slow.append(slow_macro_f1(gold[rows].tolist(), predicted[rows].tolist()))
    assert found.intervals["macro_f1"] == pytest.approx(np.quantile(slow, [0.025, 0.975]), abs=1e-12)


def test_intervals_of_all_metrics_lie_around_them():
    gold, predicted, chances = drawn_classes(3, 4, 300)
    found = judge("classify", named(gold), named(predicted), probabilities=chances)
    assert set(found.intervals) == set(found.metrics)
    for name, (low, high) in found.intervals.items():
        assert low < found.metrics[name] < high
    assert found == judge("classify", named(gold), named(predicted), probabilities=chances), "drawn alike each time"


def test_a_share_that_is_whole_is_not_certain():
    found = judge("choice", ["1"] * 40, ["1"] * 40)
    assert found.metrics == {"accuracy": 1}
    assert found.intervals["accuracy"] == wilson(1.0, 40)


def test_an_interval_covers_as_often_as_it_says():
    draw, covered = np.random.default_rng(0), 0
    for _ in range(30):
        gold = (draw.random(150) < 0.5).astype(int)
        predicted = np.where(draw.random(150) < 0.8, gold, 1 - gold)
        low, high = judge("pair", named(gold), named(predicted)).intervals["mcc"]
        covered += low <= 0.6 <= high
    assert covered >= 25


def test_a_judgement_is_plain_json_under_the_usual_names():
    plain = judge("regress", [1.0, 2.0, 3.0, 5.0], [1.0, 2.0, 3.0, 4.0]).plain()
    assert plain["n"] == 4
    assert plain["spearman"] == 1
    assert set(plain["intervals"]) == {"spearman", "pearson", "mse"}
    assert set(HEADLINES) == set(TASKS)
