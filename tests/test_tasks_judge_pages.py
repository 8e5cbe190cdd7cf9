"""Calibration, confusions, errors, repeats, and the pages, cards and files that tell of them."""

import json
import re

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import SVG, check_page, check_svg, texts
from scipy.optimize import minimize_scalar
from sklearn import metrics as oracle

from maskery.errors import InputError, UnknownName
from maskery.tasks.examples import TASKS, Answer, Example, Span
from maskery.tasks.judge import (
    Evidence,
    LearningCurve,
    LearningPoint,
    calibrated,
    calibration,
    confusion,
    confusion_picture,
    cooled,
    eval_block,
    eval_results,
    fit_temperature,
    judge,
    learning_picture,
    model_card,
    over_seeds,
    reliability_picture,
    report,
    sizes_of,
    worst_mistakes,
    write_card,
    write_eval_results,
)
from maskery.tasks.judge.calibration import COLDEST, HOTTEST
from maskery.tasks.judge.card import PIPELINES


def drawn(seed=0, n=300, classes=3, heat=1.0):
    draw = np.random.default_rng(seed)
    scores = draw.normal(size=(n, classes)) * 2
    chances = cooled(np.exp(scores) / np.exp(scores).sum(1, keepdims=True), 1.0)
    gold = np.array([draw.choice(classes, p=line) for line in chances])
    return cooled(chances, heat), gold


# -- calibration


def slow_ece(chances, gold, bins):
    total = 0.0
    for number in range(bins):
        inside = [i for i, line in enumerate(chances) if number / bins < max(line) <= (number + 1) / bins]
        if inside:
            sure = sum(max(chances[i]) for i in inside) / len(inside)
            right = sum(np.argmax(chances[i]) == gold[i] for i in inside) / len(inside)
            total += len(inside) / len(gold) * abs(sure - right)
    return total


@pytest.mark.parametrize("bins", [1, 10, 15])
def test_ece_equals_the_definition(bins):
    chances, gold = drawn(1)
    found = calibration(chances, gold, bins)
    assert found.ece == pytest.approx(slow_ece(chances, gold, bins), abs=1e-12)
    assert found.nll == pytest.approx(oracle.log_loss(gold, chances), abs=1e-12)
    assert sum(each.n for each in found.bins) == 300
    assert len(found.bins) == bins


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.floats(0.2, 4.0))
def test_the_temperature_is_that_of_the_least_loss(seed, heat):
    chances, gold = drawn(seed, heat=heat)

    def loss(log_temperature):
        return calibration(cooled(chances, np.exp(log_temperature)), gold).nll

    best = minimize_scalar(loss, bounds=(np.log(COLDEST), np.log(HOTTEST)), method="bounded", options={"xatol": 1e-9})
    found = fit_temperature(chances, gold)
    assert found == pytest.approx(np.exp(best.x), rel=1e-4)
    assert loss(np.log(found)) <= best.fun + 1e-12


def test_a_temperature_repairs_what_it_can():
    chances, gold = drawn(3, n=4000, heat=0.4)
    other, right = drawn(4, n=4000, heat=0.4)
    found = calibrated(other, right, fit_temperature(chances, gold))
    assert found.temperature == pytest.approx(2.5, rel=0.06)
    assert found.after.ece < 0.3 * found.before.ece
    assert found.after.nll < found.before.nll
    assert not found.fitted_here
    assert found.notes == ()
    assert set(found.plain()) == {"temperature", "ece", "ece_after", "nll", "nll_after"}


def test_temperatures_have_limits_and_these_are_told():
    right = calibrated([[0.9, 0.1]] * 5, [0] * 5)
    assert right.temperature == COLDEST
    assert any("all answers are right" in note for note in right.notes)
    assert any("fitted on the same examples" in note for note in right.notes)
    assert fit_temperature([[0.9, 0.1]] * 5, [1] * 5) == HOTTEST
    certain = calibrated([[1.0, 0.0], [0.0, 1.0]], [0, 0])
    assert certain.temperature == HOTTEST, "a right answer of chance 0"
    assert np.isfinite(certain.before.nll)


def test_chances_that_are_none_are_refused():
    with pytest.raises(InputError, match="example 1: the chances of an example do not add up to 1"):
        calibration([[0.5, 0.5], [0.5, 0.6]], [0, 1])
    with pytest.raises(InputError, match="for 3 right answers"):
        calibration([[0.5, 0.5]], [0, 1, 1])


# -- confusion, errors, repeats


def test_a_confusion_equals_scikit_learn():
    chances, gold = drawn(5, classes=4)
    names = [f"c{each}" for each in gold], [f"c{each}" for each in chances.argmax(1)]
    found = confusion(*names)
    assert (found.counts == oracle.confusion_matrix(*names)).all()
    precision, recall, f1, many = oracle.precision_recall_fscore_support(*names)
    for place, line in enumerate(found.by_class()):
        assert line == (f"c{place}", many[place], *(pytest.approx(each[place]) for each in (precision, recall, f1)))
    wrong = sorted((int(found.counts[i, j]) for i in range(4) for j in range(4) if i != j), reverse=True)
    assert [n for _, _, n in found.largest(5)] == wrong[:5]
    assert json.dumps(found.plain())


def test_rare_classes_are_put_together():
    found = confusion([*"aaabbcd"], [*"aababdc"])
    small = found.gathered(3, "rest")
    assert small.labels == ("a", "b", "rest")
    assert small.counts.tolist() == [[2, 1, 0], [1, 1, 0], [0, 0, 2]]
    assert found.gathered(4, "rest") is found


def example(number, *texts, **more):
    return Example(guid=f"dev-{number}", texts=texts, file="dev.tsv", line=number + 1, **more)


def test_the_surest_errors_come_first():
    examples = [example(number, f"text {number}") for number in range(5)]
    found = worst_mistakes("classify", examples, [*"aabba"], [*"abbab"], [0.9, 0.6, 0.9, 0.99, 0.7], most=2)
    assert [(each.place, each.gold, each.predicted, each.chance) for each in found] == [
        ("dev.tsv:4", "b", "a", 0.99),
        ("dev.tsv:5", "a", "b", 0.7),
    ]
    assert found[0].plain()["texts"] == ["text 3"]
    assert worst_mistakes("classify", examples[:1], ["a"], ["a"]) == []


@pytest.mark.parametrize(
    ("task", "gold", "predicted", "wanted"),
    [
        ("regress", [1.0, 2.0], [1.5, 5.0], [("2", "5"), ("1", "1.5")]),
        ("multilabel", [frozenset("ab"), frozenset()], [frozenset("ab"), frozenset("c")], [("–", "c")]),
        ("tag", [[Span(0, 2, "X")], []], [[], []], [("小宏 [X]", "–")]),
        ("qa", [[Answer(0, "小宏"), Answer(0, "小宏")], []], ["宏", ""], [("小宏", "宏")]),
        ("choice", ["0", "1"], ["1", "1"], [("0: left", "1: right")]),
        ("choice", [0, 1], [1, 1], [("0: left", "1: right")]),
        ("seq2seq", ["ab", "cd"], ["ab", "cx"], [("cd", "cx")]),
        ("rank", [0.0, 1.0], [3.0, 1.0], [("0", "3")]),
    ],
)
def test_errors_of_every_task_are_told_in_words(task, gold, predicted, wanted):
    examples = [example(number, "小宏去买酱油", choices=("left", "right")) for number in range(2)]
    if task != "choice":
        examples = [example(number, "小宏去买酱油") for number in range(2)]
    found = worst_mistakes(task, examples, gold, predicted)
    assert [(each.gold, each.predicted) for each in found] == wanted


def test_seeds_and_sizes_are_taken_together():
    found = over_seeds({1: {"accuracy": 0.5, "f1": 1.0}, 2: {"accuracy": 0.7}, 3: {"accuracy": 0.9}})
    assert set(found) == {"accuracy"}
    assert (found["accuracy"].mean, found["accuracy"].sd) == pytest.approx((0.7, 0.2))
    assert found["accuracy"].each == (0.5, 0.7, 0.9)
    assert over_seeds({1: {"f1": 0.5}})["f1"].sd == 0
    assert sizes_of(1600) == [100, 200, 400, 800, 1600]
    assert sizes_of(300) == [100, 150, 300]
    assert sizes_of(40) == [40]
    with pytest.raises(InputError, match="there is no run"):
        over_seeds({})


# -- pictures and pages

HARD = ("<b>mean & cruel</b>", "正面", "c|d")


def evidence(lang="en"):
    chances, gold = drawn(7)
    names = [HARD[each] for each in gold], [HARD[each] for each in chances.argmax(1)]
    examples = [example(number, "<script>alert(1)</script>" + "长" * 400, "b") for number in range(len(gold))]
    points = tuple(LearningPoint(size, seed, {"accuracy": 0.5 + seed / 50}) for size in (100, 200) for seed in (1, 2))
    judged = judge("classify", *names, labels=HARD, probabilities=chances)
    return judged, Evidence(
        confusion=confusion(*names, HARD),
        calibration=calibrated(chances, gold),
        mistakes=worst_mistakes("classify", examples, *names, chances.max(1), most=3),
        lengths=list(range(1, 101)),
        limit=90,
        seeds=over_seeds({1: judged.metrics, 2: judged.metrics}),
        learning=LearningCurve(points),
        training=[
            {"step": 1, "loss": 2.0},
            {"step": 2, "loss": 1.0, "eval/accuracy": 0.5},
            {"step": 3, "loss": 0.5, "eval/accuracy": 0.75},
        ],
        facts={"model": "runs/<mini>"},
    )


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_report_is_one_offline_page(lang):
    judged, found = evidence()
    page = check_page(report(judged, "a <name>", found, lang).html())
    for told in (*HARD, "a <name>", "dev.tsv:", "runs/<mini>", "…"):
        assert told in page.text
    assert f"{judged.metrics['accuracy']:.4f}" in page.text
    assert f"{judged.intervals['macro_f1'][0]:.4f}" in page.text
    assert ("10 of 100 rows (10.0 %)" if lang == "en" else "100 行中有 10 行（10.0 %）") in page.text
    for told in {
        "en": ("Loss of every update", "accuracy of every evaluation"),
        "zh": ("每步的损失", "每次评测的验证集"),
    }[lang]:
        assert told in page.text
    assert not any("alert(1)" in script for script in page.scripts)


def test_a_report_needs_no_more_than_the_figures():
    judged = judge("tag", [[Span(0, 1, "人")]] * 40, [[Span(0, 1, "人")]] * 39 + [[]])
    page = check_page(report(judged, "ner").html())
    assert "Kind by kind" in page.text
    assert "人" in page.text
    assert "worst errors" not in page.text
    assert "No answer is wrong." in check_page(report(judged, "ner", Evidence(mistakes=[])).html()).text
    with pytest.raises(UnknownName, match="fr"):
        report(judged, "ner", lang="fr")


@pytest.mark.parametrize("many", [2, 15, 60])
def test_a_confusion_is_drawn_whole(many):
    draw = np.random.default_rng(many)
    names = [f"class {number}" for number in range(many)]
    gold, predicted = (draw.choice(names, 500).tolist() for _ in range(2))
    picture = confusion_picture(confusion(gold + names, predicted + names))
    root = check_svg(picture.svg)
    cells = [each for each in root.iter(f"{SVG}rect") if "mk-cell" in each.get("class", "")]
    assert len(cells) == min(many, 30) ** 2
    assert ("Of 60 classes the 29 commonest are drawn" in picture.note) == (many == 60)
    if many == 2:
        assert set(map(str, confusion(gold + names, predicted + names).counts.ravel())) <= set(texts(root))
    right = float(root.get("width"))
    assert all(float(each.get("x")) + float(each.get("width")) <= right for each in cells)


def test_plots_are_drawings():
    _, found = evidence()
    reliable = check_svg(reliability_picture(found.calibration).svg)
    assert any("after the temperature" in text for text in texts(reliable))
    learned = check_svg(learning_picture(found.learning, "accuracy", "zh").svg)
    assert {"100", "200", "训练样本数"} <= set(texts(learned))
    assert len(list(learned.iter(f"{SVG}circle"))) == 4
    check_svg(learning_picture(LearningCurve(found.learning.points[:1]), "accuracy").svg)
    with pytest.raises(InputError, match="no point of the curve has f1"):
        learning_picture(found.learning, "f1")


# -- card and results


def test_a_card_has_a_head_and_the_figures(tmp_path):
    judged, found = evidence()
    use = [("python", "import maskery")]
    path = write_card(tmp_path, model_card(judged, "a <name>", labels=HARD, use=use, evidence=found))
    head, text = re.fullmatch(r"---\n(.*?)---\n(.*)", path.read_text(encoding="utf-8"), re.S).groups()
    assert path.name == "README.md"
    assert yaml.safe_load(head) == {"pipeline_tag": "text-classification", "tags": ["maskery"], "metrics": ["accuracy"]}
    assert f"| accuracy | {judged.metrics['accuracy']:.4f} | {judged.intervals['accuracy'][0]:.4f} |" in text
    assert "| macro_f1 |" in text
    assert r"\<b\>mean & cruel\</b\>, 正面, c\|d" in text
    assert "ECE (15 bins)" in text
    assert text.endswith("## Use\n\n```python\nimport maskery\n```\n")
    assert yaml.safe_load(model_card(judged, "x", language="zh").split("---")[1])["language"] == "zh"


def test_every_task_has_a_pipeline_of_the_hub():
    assert set(PIPELINES) == set(TASKS)


def test_results_read_as_those_of_run_classifier(tmp_path):
    judged = judge("classify", ["a", "b"] * 25, ["a", "b"] * 24 + ["a", "a"])
    found = eval_results(judged, eval_loss=0.0711234567891, global_step=343)
    assert eval_block(found) == (
        "***** Eval results *****\n  eval_accuracy = 0.98\n  eval_loss = 0.071123457\n  global_step = 343\n"
        "  loss = 0.071123457"
    )
    path = write_eval_results(tmp_path, found)
    assert path.name == "eval_results.txt"
    assert path.read_text() == (
        "eval_accuracy = 0.98\neval_loss = 0.071123457\nglobal_step = 343\nloss = 0.071123457\n"
    )
    scores = judge("regress", [1.0, 2.0], [1.0, 2.0])
    assert list(eval_results(scores, eval_loss=1.0, global_step=2, loss=0.5)) == [
        "eval_loss", "eval_pearson", "eval_spearman", "global_step", "loss",
    ]  # fmt: skip
