"""qa: when no answer is given. Windows against a slow reference, the threshold against SQuAD 2's way to find it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_task import config_of, examples_of, family_model, quiet, task_model

from maskery.checkpoint.load import load
from maskery.errors import InputError
from maskery.tasks.examples import Answer, Example, Examples
from maskery.tasks.finetune import finetune
from maskery.tasks.judge import judge
from maskery.tasks.model import TaskModel, read_task
from maskery.tasks.no_answer import fitted, with_threshold
from maskery.tasks.questions import OfSpans
from maskery.tasks.resolve import Splits, resolve
from maskery.tasks.run import tune

FAST = {"training": {"lr": 3e-2, "batch": 8}, "rows": {"length": 12, "windows": 4}}


def some_unanswered(many, first=0):
    """Every third context does not hold what is asked for."""
    items = list(examples_of("qa", many, first))
    for at in range(0, many, 3):
        context, question = items[at].texts
        items[at] = replace(items[at], texts=(context.replace(f"{question[0]} b", "z b"), question), answers=())
    return Examples(task="qa", fields=("context", "question"), items=tuple(items))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "model"
    family_model(folder, "bert")
    return folder


# -- the rule


def slow_words(text):
    """As SQuAD compares: small letters, no articles, no signs."""
    return [word for word in re.sub(r"[^\w\s]", "", text.lower()).split() if word not in ("a", "an", "the")]


def slow_f1(gold, said):
    best = 0.0
    for right in gold or [""]:
        a, b = slow_words(right), slow_words(said)
        same = sum(min(a.count(word), b.count(word)) for word in set(a))
        best = max(best, float(a == b) if not a or not b else 2 * same / (len(a) + len(b)))
    return best


def slow_found(question, rows, scores, longest=30):
    """Of each example: the least null score of its windows, and the best span's score and text, pair by pair."""
    nulls, spans = {}, {}
    for number in range(len(rows)):
        at = int(rows.example[number])
        part = scores[rows.start[number] : rows.start[number + 1]]
        row, context = rows[number], question.examples[at].texts[0]
        null = float(part[0, 0]) + float(part[0, 1])
        nulls[at] = min(nulls.get(at, np.inf), null)
        shown = [slot for slot in range(len(part)) if row.field[slot] == 0]
        for first in shown:
            for last in (slot for slot in shown if first <= slot < first + longest):
                text = context[row.offsets[first][0] : row.offsets[last][1]]
                score = float(part[first, 0]) + float(part[last, 1])
                if at not in spans or score > spans[at][0]:
                    spans[at] = score, text
    return nulls, spans


def slow_best(differences, gold, guesses):
    """SQuAD 2's search: answers are let in one by one, the surest first; the best mean F1 that is met on the way."""
    order = sorted(range(len(gold)), key=lambda at: differences[at])
    now = sum(slow_f1(right, "") for right in gold)
    best = now
    for place, at in enumerate(order):
        now += slow_f1(gold[at], guesses[at]) - slow_f1(gold[at], "")
        after = order[place + 1] if place + 1 < len(order) else None
        if after is None or differences[after] > differences[at]:  # equal ones are let in together
            best = max(best, now)
    return best / len(gold)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_windows_and_threshold_equal_a_slow_reference(model, seed):
    examples = some_unanswered(18)
    made = task_model(load(model), "qa", examples, **FAST)
    feed = made.feed(examples, quiet)
    rows, question = feed.rows, feed.question
    assert isinstance(question, OfSpans)
    assert rows.part.max() > 0, "some have several windows"
    scores = np.random.default_rng(seed).normal(size=(len(rows.ids), 2)).astype(np.float64)
    nulls, spans = slow_found(question, rows, scores)
    differences = [nulls[at] - spans[at][0] for at in range(len(examples))]
    guesses = [spans[at][1] for at in range(len(examples))]
    found = question.found(rows, scores)
    assert [each.difference for each in found] == pytest.approx(differences)
    assert [each.best.text for each in found] == guesses, "without a threshold there is always an answer"
    best = fitted(question, found)
    assert best.score == pytest.approx(slow_best(differences, question.gold, guesses))
    told = replace(question, threshold=best.value).predicted(rows, scores).answers
    assert told == ["" if gap > best.value else text for gap, text in zip(differences, guesses, strict=True)]
    assert np.mean([slow_f1(*each) for each in zip(question.gold, told, strict=True)]) == pytest.approx(best.score)


@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_figures_with_and_without_an_answer(data):
    word = st.sampled_from(["", "cat", "the cat", "cat mat", "mat"])
    gold = data.draw(st.lists(st.lists(word.filter(bool), max_size=2), min_size=2, max_size=8))
    said = [data.draw(word) for _ in gold]
    metrics = judge("qa", gold, said).metrics
    f1 = [slow_f1(*each) for each in zip(gold, said, strict=True)]
    em = [
        float(any(slow_words(said[at]) == slow_words(right) for right in gold[at] or [""])) for at in range(len(gold))
    ]
    assert list(metrics)[:2] == ["f1", "em"], "the headline comes first"
    assert (metrics["f1"], metrics["em"]) == pytest.approx((np.mean(f1), np.mean(em)))
    none = [at for at, right in enumerate(gold) if not right]
    have = [at for at, right in enumerate(gold) if right]
    if none and have:
        assert metrics["has_answer_f1"] == pytest.approx(np.mean([f1[at] for at in have]))
        assert metrics["has_answer_em"] == pytest.approx(np.mean([em[at] for at in have]))
        assert metrics["no_answer_accuracy"] == pytest.approx(np.mean([em[at] for at in none]))
        assert [f1[at] for at in none] == [em[at] for at in none], "one figure is enough there"
    else:
        assert set(metrics) == {"f1", "em"}


# -- what is settled, and by whom


def test_without_such_questions_there_is_always_an_answer(model, tmp_path):
    told = []
    config = resolve(config_of("qa", **FAST), load(model), Splits(examples_of("qa", 12)), (), told.append)
    assert config.threshold is None
    assert "every question of the training data has an answer, so there will always be one" in told


@pytest.mark.parametrize(
    ("dev", "threshold", "said"),
    [
        (None, 0.0, "there is no dev set"),
        (examples_of("qa", 6), 0.0, "all of dev have one"),
        (some_unanswered(6), None, "dev will tell"),
    ],
    ids=["no dev", "dev all answered", "dev tells"],
)
def test_what_dev_can_tell(dev, threshold, said):
    told = []
    config = with_threshold(config_of("qa"), some_unanswered(9), dev, told.append)
    assert config.threshold == threshold
    assert told[0].startswith("3 of 9 questions have no answer")
    assert said in told[0]


def test_a_threshold_by_hand_is_kept_and_belongs_to_qa():
    told = []
    config = config_of("qa", threshold=2.5)
    assert with_threshold(config, some_unanswered(9), some_unanswered(6), told.append) is config
    assert told == ['"no answer" has to score better by more than 2.5, as asked for']
    with pytest.raises(InputError, match="this is classify"):
        with_threshold(config_of("classify", threshold=1.0), examples_of("classify"), None, quiet)


@pytest.fixture(scope="module")
def runs(model, tmp_path_factory):
    """One whose threshold dev told, with what was said."""
    told, out = [], tmp_path_factory.mktemp("run") / "run"
    splits = {"train": some_unanswered(24), "dev": some_unanswered(12, 50)}
    made = finetune(model, out=out, settings={"epochs": 3, **FAST}, say=told.append, **splits)
    return made, splits, told


def test_training_writes_the_threshold_and_everything_uses_it(runs):
    run, splits, told = runs
    value = read_task(run.path).threshold
    assert value is not None
    assert any(line.startswith("no answer is given where that scores better by more than") for line in told)
    made = TaskModel.load(run.path)
    feed = made.feed(splits["dev"], quiet)
    scores = made.scores(feed)
    assert value == pytest.approx(fitted(feed.question, feed.question.found(feed.rows, scores)).value, abs=1e-4)
    expected = replace(feed.question, threshold=value).predicted(feed.rows, scores).answers
    assert made.predict(splits["dev"], quiet).answers == expected
    always = [each.best.text for each in replace(feed.question, threshold=None).found(feed.rows, scores)]
    figures = [judge("qa", feed.question.gold, said).metrics["f1"] for said in (expected, always)]
    assert figures[0] >= figures[1]
    assert "" in expected, "a third of them have none: that pays even for a model that knows little"
    assert run.judgement.metrics["f1"] == pytest.approx(figures[0])


def test_the_threshold_of_a_hand_is_used(runs, model, tmp_path):
    _, splits, _ = runs
    for value, none in ((1e6, False), (-1e6, True)):
        out = tmp_path / str(none)
        given = {"epochs": 0.4, "threshold": value, **FAST}
        run = finetune(model, out=out, settings=given, say=quiet, **splits)
        assert read_task(out).threshold == value
        answers = run.model.predict(splits["dev"], quiet).answers
        assert all((said == "") is none for said in answers)
        assert (run.judgement.metrics["no_answer_accuracy"] == 1) is none


def test_a_run_that_goes_on_ends_with_the_same_threshold(runs, model, tmp_path):
    _, splits, _ = runs
    made = load(model)
    both = Splits(splits["train"], splits["dev"])
    config = resolve(config_of("qa", epochs=3, head={"dropout": 0.1}, **FAST), made, both, (), quiet)

    def ends(update, _line):
        if update.step == config.training.steps - 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(TaskModel(made, config), both, tmp_path / "again", say=quiet, watch=ends)
    again = TaskModel(load(model), config)
    tune(again, both, tmp_path / "again", resume=True, say=quiet)
    whole = TaskModel(load(model), config)
    tune(whole, both, tmp_path / "whole", say=quiet)
    assert again.config.threshold == whole.config.threshold == read_task(tmp_path / "again").threshold
    assert (tmp_path / "again/task.toml").read_bytes() == (tmp_path / "whole/task.toml").read_bytes()


def test_a_context_that_nobody_could_read_leaves_no_choice(model):
    examples = Examples(
        task="qa",
        fields=("context", "question"),
        items=(
            Example(guid="a", texts=(" ", "the ?"), answers=()),
            Example(guid="b", texts=("the cat", "x ?"), answers=(Answer(4, "cat"),)),
        ),
    )
    made = task_model(load(model), "qa", examples)
    feed = made.feed(examples, quiet)
    found = feed.question.found(feed.rows, made.scores(feed))
    assert found[0].best is None
    alone = replace(feed.question, examples=replace(examples, items=examples.items[1:]))
    assert fitted(feed.question, found) == fitted(alone, found[1:])
