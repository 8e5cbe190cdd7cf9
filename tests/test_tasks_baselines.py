"""Baselines beside every figure: what they answer, the sentence that compares, and the warning of one class."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from small_task import examples_of, family_model, of_two_classes, quiet, write_tsv

from maskery.cli import main
from maskery.errors import InputError
from maskery.tasks.estimator import Classifier
from maskery.tasks.examples import Example, Examples, Span
from maskery.tasks.finetune import finetune
from maskery.tasks.judge import baselines as module
from maskery.tasks.judge.baselines import baselines_of
from maskery.tasks.judge.measure import compared, judge
from maskery.tasks.judging import read_judgement


def texts_of(task, *rows, fields=("text",)):
    items = [Example(guid=str(at), texts=texts, label=label) for at, (texts, label) in enumerate(rows)]
    return Examples(task=task, fields=fields, items=tuple(items))


def answers(task, train, dev):
    return {each.name: each.answers for each in baselines_of(train, dev).each}


def test_classes_by_majority_and_words():
    train = texts_of("classify", *[((f"good film {n}",), "1") for n in range(5)], *[(("bad",), "0")] * 4)
    dev = texts_of("classify", (("a good one",), "1"), (("so bad",), "0"))
    assert answers("classify", train, dev) == {"majority": ["1", "1"], "tfidf": ["1", "0"]}


def test_chinese_is_counted_by_characters():
    train = texts_of("classify", *[(("好电影",), "1")] * 3, *[(("坏东西",), "0")] * 3)
    dev = texts_of("classify", (("这是好的",), "1"), (("太坏了",), "0"))
    assert answers("classify", train, dev)["tfidf"] == ["1", "0"]


def test_sets_of_classes():
    train, dev = examples_of("multilabel", 64), examples_of("multilabel", 8, 64)
    found = answers("multilabel", train, dev)
    assert found["tfidf"] == [each.label for each in dev], "a word for each class"
    assert len(set(found["majority"])) == 1


def test_scores():
    rows = [((f"a b {word}", f"a c {word}" if same else "d e"), float(same)) for word in "xyz" for same in (0, 1)]
    train = texts_of("regress", *rows, fields=("text_a", "text_b"))
    found = answers("regress", train, train)
    assert found["mean"] == [0.5] * 6
    assert np.corrcoef(found["cosine"], [each.label for each in train])[0, 1] > 0.9
    assert len(found["tfidf"]) == 6
    one = texts_of("regress", *[((word,), float(at)) for at, word in enumerate(["low", "mid", "high"])])
    assert answers("regress", one, one).keys() == {"mean", "tfidf"}


def test_other_tasks():
    assert answers("rank", examples_of("rank", 30), examples_of("rank", 9)).keys() == {"cosine"}
    found = answers("choice", examples_of("choice", 18), examples_of("choice", 9))
    assert set(found["cosine"]) <= {"0", "1", "2"}
    tag = examples_of("tag", 24)
    spans = answers("tag", tag, tag)["seen_spans"]
    assert any(span == Span(span.start, span.stop, "one") for each in spans for span in each)
    assert judge("tag", [each.spans for each in tag], spans).metrics["recall"] > 0.5
    qa = texts_of("qa", (("The cat sat. A dog ran!", "who ran"), None), fields=("context", "question"))
    assert answers("qa", qa, qa) == {"overlap": ["A dog ran!"]}
    copy = texts_of("seq2seq", (("a b",), "a"), fields=("source",))
    assert answers("seq2seq", copy, copy) == {"copy": ["a b"]}


def test_without_the_extra_the_rest_is_there(monkeypatch):
    def missing(*_):
        raise InputError("not installed", repair="pip")

    monkeypatch.setattr(module, "optional", missing)
    found = baselines_of(examples_of("classify", 8), examples_of("classify", 4))
    assert [each.name for each in found.each] == ["majority"]
    assert "maskery[sklearn]" in found.notes[0]


def test_a_sample_is_counted_and_told():
    found = baselines_of(examples_of("classify", 40), examples_of("classify", 4), most=20)
    assert any("20 of 40 training examples" in note for note in found.notes)


@pytest.mark.parametrize(
    ("right", "word"), [(95, "ahead of"), (50, "level with"), (20, "behind")], ids=["ahead", "level", "behind"]
)
def test_the_sentence_says_who_is_ahead(right, word):
    gold = ["a", "b"] * 50
    predicted = [label if at < right else "ab".replace(label, "") for at, label in enumerate(gold)]
    found = compared(judge("classify", gold, predicted, labels=("a", "b")), gold, predicted, {"majority": ["a"] * 100})
    assert f"the model is {word} the best baseline, majority" in found.verdict
    low, high = map(float, re.search(r"\[(.*), (.*)\]", found.verdict).groups())
    difference = found.metrics["accuracy"] - found.baselines["majority"]["accuracy"]
    assert low <= difference <= high
    draws = np.random.default_rng(0).integers(0, 100, (4000, 100))
    each = np.array([p == g for p, g in zip(predicted, gold, strict=True)], float) - np.array([g == "a" for g in gold])
    assert np.quantile(each[draws].mean(1), 0.025) == pytest.approx(low, abs=0.02)


def test_a_figure_without_a_baseline_has_no_sentence():
    scores = [0.0, 1.0, 2.0, 3.0]
    found = compared(judge("regress", scores, scores), scores, scores, {"mean": [1.5] * 4})
    assert found.verdict == "", "of equal scores there is no rank correlation"
    assert found.baselines == {"mean": {"mse": 1.25}}


def test_one_class_is_warned_of_only_where_classes_differ():
    warned = [judge("classify", gold, ["a"] * 4, labels=("a", "b")).notes for gold in (["a", "b"] * 2, ["a"] * 4)]
    assert [any(note.startswith("warning: all 4 examples") for note in notes) for notes in warned] == [True, False]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base") / "model"
    family_model(folder, "bert")
    return folder


STILL = {"epochs": 1, "training": {"lr": 1e-9, "batch": 8}}


def test_every_door_shows_them(model, tmp_path, capsys):
    data = tmp_path / "data"
    data.mkdir()
    write_tsv(data / "train.tsv", of_two_classes(0, 32))
    write_tsv(data / "dev.tsv", of_two_classes(100, 16))
    out = tmp_path / "run"
    code = main(["finetune", str(model), "--data", str(data), "--out", str(out), "--epochs", "1", "--lr", "1e-9"])
    printed = capsys.readouterr()
    assert code == 0
    assert "majority" in printed.out
    assert "the best baseline, tfidf" in printed.out
    assert "warning: all 16 examples are predicted as" in printed.err
    kept = json.loads((out / "evaluation.json").read_text())
    assert kept["baselines"]["tfidf"]["accuracy"] > 0.9
    page, card = (out / "report.html").read_text(), (out / "README.md").read_text()
    assert "tfidf" in page
    assert "warning: all 16 examples" in page
    assert "tfidf" in card
    assert read_judgement(out).verdict == kept["verdict"]


def test_without_a_development_set_the_training_data_show_it(model, tmp_path, capsys):
    labelled, told = examples_of("classify", 24), []
    train = replace(labelled, items=tuple(replace(each, texts=("the cat sat",)) for each in labelled))
    finetune(model, out=tmp_path / "run", train=train, settings=STILL, say=told.append)
    assert any(line.startswith("warning: all 24 examples are predicted") for line in told)
    made = Classifier(model, epochs=1, lr=1e-9)
    made.fit([each.texts[0] for each in train], [each.label for each in train])
    assert any(note.startswith("warning: all 24") for note in made.notes_)
    assert "warning: all 24" in capsys.readouterr().err, "it is printed though verbose is off"


def test_seeds_and_samples_have_them_too(model, tmp_path):
    from maskery.tasks.plan import Plan

    train, dev = examples_of("classify", 24), examples_of("classify", 12, 50)
    run = finetune(
        model, out=tmp_path / "run", train=train, dev=dev, settings=STILL, plan=Plan(seeds=2), say=quiet
    )  # fmt: skip
    assert set(run.judgement.baselines) == {"majority", "tfidf"}
    some = replace(dev, items=dev.items[3:6])
    found = baselines_of(train, dev).at(dev, some)
    assert found.each[1].answers == baselines_of(train, dev).each[1].answers[3:6]
