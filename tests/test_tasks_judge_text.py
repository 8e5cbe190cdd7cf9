"""Metrics of answers, orders and written texts against slow obvious references and hand counts."""

import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as oracle

from maskery.errors import InputError, UnknownName
from maskery.tasks.examples import Answer
from maskery.tasks.judge import judge, measure
from maskery.tasks.judge.answers import answer_scores, normal_answer, segments
from maskery.tasks.judge.common import common_run, common_sequence, overlap_f1, units

FEW = st.text("ab中文 ", max_size=9)
CLOSE = {"abs": 1e-12, "rel": 0}


# -- what two texts have in common


def slow_sequence(one, other):
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def slow_run(one, other):
    runs = [one[i:j] for i in range(len(one)) for j in range(i + 1, len(one) + 1)]
    return max((len(run) for run in runs if run in other), default=0)


@settings(max_examples=100)
@given(FEW, FEW)
def test_common_parts_equal_the_obvious(one, other):
    assert common_sequence(one, other) == slow_sequence(one, other)
    assert common_run(one, other) == slow_run(one, other)
    same = sum(min(one.count(sign), other.count(sign)) for sign in set(one))
    f1 = 2 * same / (len(one) + len(other)) if one or other else 1.0
    assert overlap_f1(one, other) == pytest.approx(f1)


def test_units_are_signs_and_words():
    assert units("我爱NLP2024，don't_x  ok 🙂カナ") == [
        "我", "爱", "NLP2024", "，", "don", "'", "t", "_", "x", "ok", "🙂", "カ", "ナ",
    ]  # fmt: skip


# -- qa


@pytest.mark.parametrize(
    ("gold", "predicted", "em", "f1"),
    [
        (["The Eiffel Tower!"], "eiffel tower", 1, 1),
        (["the Norman conquest of England", "Norman conquest"], "Norman conquest of", 0, 6 / 7),
        (["in 1066"], "1066", 0, 2 / 3),
        (["10-20"], "1020", 1, 1),
        ([], "", 1, 1),
        ([], "anything", 0, 0),
        (["x"], "", 0, 0),
        (["the", "An"], "", 1, 1),
        (["to be or not to be"], "to to to", 0, 2 * 2 / 9),
    ],
)
def test_english_answers_as_squad_counts(gold, predicted, em, f1):
    assert answer_scores(gold, predicted, "en") == pytest.approx((em, f1))


@pytest.mark.parametrize(
    ("gold", "predicted", "em", "f1"),
    [
        (["《村雨城》"], "村雨城", 1, 1),
        (["任天堂游戏谜之村雨城"], "村雨城", 0, 2 * 3 / 13),
        (["甲乙丙丁"], "甲丙乙丁", 0, 2 * 1 / 8),
        (["甲乙", "甲乙丙"], "乙丙", 0, 4 / 5),
        (["Windows XP系统"], "windows xp", 0, 2 * 2 / 6),
        (["1990年"], "1990", 0, 2 / 3),
        (["5%"], "5", 0, 2 / 3),
        ([], "", 1, 1),
        (["甲"], "", 0, 0),
        (["甲"], "乙", 0, 0),
    ],
)
def test_chinese_answers_as_cmrc_counts(gold, predicted, em, f1):
    assert answer_scores(gold, predicted, "zh") == pytest.approx((em, f1))


def test_segments_and_normal_forms():
    assert segments("在3.5 版，u.s.a. it's") == ["在", "3.5", "版", "，", "u.s.a", ".", "it's"]
    assert normal_answer(" A：B-C《丁》", "zh") == "abc丁"
    assert normal_answer("An apple,  a day (the end)", "en") == "apple day end"


def test_questions_without_an_answer_are_told_apart():
    gold = [[Answer(3, "Paris")], [Answer(0, "Rome"), Answer(9, "in Rome")], [], []]
    found = judge("qa", gold, ["paris", "Milan", "", "Oslo"])
    assert found.metrics == {
        "em": 0.5, "f1": 0.5, "has_answer_em": 0.5, "has_answer_f1": 0.5, "no_answer_accuracy": 0.5,
    }  # fmt: skip
    assert "answers are compared as SQuAD does, by the writing of the right ones" in found.notes
    assert "2 of 4 have no answer: right if nothing is predicted" in found.notes
    assert set(measure("qa", gold[:2], ["x", "y"])) == {"em", "f1"}


def test_the_language_is_found_by_the_right_answers():
    assert "as CMRC does" in judge("qa", [["北京"], ["上海", "in 上海"]], ["a", "b"]).notes[0]
    assert judge("qa", [["北京"]], ["北京"], language="en").notes[0] == "answers are compared as SQuAD does"
    with pytest.raises(UnknownName, match="de"):
        measure("qa", [["a"]], ["a"], language="de")


# -- rank


def slow_rank(relevance, scores):
    """Everything by places, for scores that are all different."""
    order = sorted(range(len(scores)), key=lambda at: -scores[at])
    right = [relevance[at] > 0 for at in order]
    precisions = [sum(right[: place + 1]) / (place + 1) for place in range(len(order)) if right[place]]
    return {
        "mrr": 1 / (right.index(True) + 1),
        "map": sum(precisions) / len(precisions),
        "accuracy@1": float(right[0]),
    }


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_orders_equal_places_and_scikit_learn(seed, tied):
    draw = np.random.default_rng(seed)
    groups, wanted = [], []
    relevance, scores = draw.integers(0, 3, (4, 13)) * (draw.random((4, 13)) < 0.3), draw.random((4, 13))
    relevance[:, 0] = 1
    scores = np.round(scores, 1) if tied else scores
    for number in range(4):
        groups += [f"q{number}"] * 13
        one = slow_rank(relevance[number], scores[number]) if not tied else {}
        one["map"] = oracle.average_precision_score(relevance[number] > 0, scores[number])
        one["ndcg@10"] = oracle.ndcg_score([relevance[number]], [scores[number]], k=10)
        wanted.append(one)
    found = measure("rank", relevance.ravel(), scores.ravel(), groups=groups)
    for name in wanted[0]:
        assert found[name] == pytest.approx(sum(one[name] for one in wanted) / 4, **CLOSE), name


def test_equal_scores_gain_nothing():
    found = judge("rank", [0, 1, 0, 0, 1, 0], [1, 1, 1, 0.1, 0.9, 0.9], groups=list("aaabbb"))
    assert found.metrics["mrr"] == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert found.metrics["accuracy@1"] == 0
    assert any("2 questions have candidates of equal score" in note for note in found.notes)


def test_questions_without_a_right_candidate_are_left_out():
    found = judge("rank", [1, 0, 0, 0], [2, 1, 5, 4], groups=[1, 1, 2, 2])
    assert (found.n, found.metrics["mrr"]) == (1, 1)
    assert "left out: 1 questions without a right candidate" in found.notes
    with pytest.raises(InputError, match="no question has a right candidate"):
        measure("rank", [0, 0], [1, 2], groups=[1, 1])
    with pytest.raises(InputError, match="which candidates belong to one question"):
        measure("rank", [1, 0], [1, 2])


# -- seq2seq


def slow_bleu(gold, written):
    """Of one right text each, with n-grams counted by hand."""
    logs = []
    for order in (1, 2, 3, 4):
        right = every = 0
        for wanted, said in zip(gold, written, strict=True):
            left = Counter(tuple(wanted[at : at + order]) for at in range(len(wanted) - order + 1))
            for at in range(len(said) - order + 1):
                gram = tuple(said[at : at + order])
                every += 1
                if left[gram]:
                    left[gram] -= 1
                    right += 1
        if not right:
            return 0.0
        logs.append(math.log(right / every))
    lengths = sum(map(len, gold)), sum(map(len, written))
    return math.exp(sum(logs) / 4) * min(1.0, math.exp(1 - lengths[0] / lengths[1]))


@pytest.mark.parametrize("seed", range(12))
def test_written_texts_equal_the_obvious(seed):
    draw = random.Random(seed)
    gold = ["".join(draw.choices("甲乙丙丁", k=draw.randint(4, 12))) for _ in range(6)]
    written = [text[draw.randint(0, 2) :] + "".join(draw.choices("甲戊", k=draw.randint(0, 3))) for text in gold]
    found = measure("seq2seq", gold, written)
    rouge = [2 * slow_sequence(a, b) / (len(a) + len(b)) for a, b in zip(gold, written, strict=True)]
    assert found["bleu"] == pytest.approx(slow_bleu(gold, written), abs=1e-12)
    assert found["rouge_l"] == pytest.approx(sum(rouge) / 6, abs=1e-12)
    assert found["exact_match"] == sum(a == b for a, b in zip(gold, written, strict=True)) / 6


def test_bleu_of_the_paper():
    """Papineni et al. 2002, example 2: of "the" seven times two are right."""
    gold = [["The cat is on the mat".lower(), "There is a cat on the mat".lower()]]
    found = judge("seq2seq", gold, ["the the the the the the the"])
    assert found.metrics["bleu"] == 0
    assert "no four units in a row are right anywhere: bleu is 0 by definition" in found.notes
    assert measure("seq2seq", gold, ["the cat is on the mat"])["bleu"] == 1


def test_texts_left_empty_are_zero_and_told():
    found = judge("seq2seq", ["a b c d e"] * 2, ["", "a b c d e"])
    assert found.metrics["exact_match"] == found.metrics["rouge_l"] == 0.5
    assert found.metrics["bleu"] == pytest.approx(math.exp(-1))
    assert "1 of 2 texts were left empty" in found.notes
    assert measure("seq2seq", ["a"], [""])["bleu"] == 0
