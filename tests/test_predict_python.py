"""`maskery.predict` and `maskery.evaluate`: what the commands answer, in Python."""

from __future__ import annotations

import json

import numpy as np
import pytest
from networks import model_of
from small_task import examples_of, of_two_classes, quiet, write_tsv

import maskery
from maskery.cli import main
from maskery.cli.evaluate import plain
from maskery.errors import MaskeryError

QUICK = {"epochs": 1, "training": {"lr": 3e-3, "batch": 8}}


@pytest.fixture(scope="module")
def place(tmp_path_factory, no_waiting_for_the_disk):
    folder = tmp_path_factory.mktemp("predict")
    for seed, name in enumerate(("one", "two")):
        model_of(pooler=True, seed=seed).save(folder / f"bert-{name}")
    train = write_tsv(folder / "train.tsv", of_two_classes(0, 24))
    write_tsv(folder / "dev.tsv", of_two_classes(100, 12))
    write_tsv(folder / "test.tsv", ([text] for _, text in of_two_classes(200, 3)), "text\n")
    for name in ("one", "two"):
        maskery.finetune(folder / f"bert-{name}", train=train, out=folder / name, settings=QUICK, say=quiet)
    return folder


@pytest.fixture(scope="module")
def texts():
    return [text for _, text in of_two_classes(200, 3)]


def by_command(capsys, *arguments):
    assert main(["predict", *map(str, arguments), "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_texts_and_files_are_answered_as_by_the_command(place, texts, capsys):
    found = by_command(capsys, place / "one", place / "test.tsv")
    for given in (texts, place / "test.tsv", tuple(texts), iter(texts)):
        for model in (place / "one", str(place / "one")):
            if given is texts or model == place / "one":
                answered = maskery.predict(model, given, say=quiet)
                assert answered.answers == [line["answer"] for line in found]
                shares = [line["probability"] for line in found]
                assert answered.probabilities.max(1) == pytest.approx(shares, abs=1e-6)


def test_one_text_is_one_text(place, texts):
    assert maskery.predict(place / "one", texts[0]).answers == maskery.predict(place / "one", texts[:1]).answers


def test_several_runs_are_averaged(place, texts, capsys):
    found = by_command(capsys, place / "one", place / "two", place / "test.tsv")
    answered = maskery.predict([place / "one", place / "two"], texts)
    assert answered.answers == [line["answer"] for line in found]
    alone = [maskery.predict(place / name, texts).probabilities for name in ("one", "two")]
    assert answered.probabilities == pytest.approx(np.mean(alone, axis=0))


def test_a_run_in_hand_is_a_model(place, texts):
    model = maskery.finetune(
        place / "bert-one", train=place / "train.tsv", out=place / "again", settings=QUICK, say=quiet
    )
    expected = maskery.predict(place / "again", texts).answers
    assert maskery.predict(model, texts).answers == expected
    assert maskery.predict(model.model, texts).answers == expected


def test_evaluate_gives_the_figures_of_the_command(place, capsys):
    assert main(["evaluate", str(place / "one"), "--data", str(place / "dev.tsv"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    found = maskery.evaluate(place / "one", place / "dev.tsv", say=quiet)
    assert plain(found) == told
    assert maskery.evaluate(place / "one", str(place / "dev.tsv"), task="classify", say=quiet).metrics == found.metrics


def test_evaluate_measures_vectors(place, tmp_path):
    rows = [(text, other, float(number % 3)) for number, ((_, text), (_, other)) in
            enumerate(zip(of_two_classes(0, 9), of_two_classes(40, 9), strict=True))]  # fmt: skip
    encoder = maskery.Encoder(place / "bert-one", say=quiet)
    of_path = maskery.evaluate(place / "bert-one", rows, task="sts", say=quiet)
    assert maskery.evaluate(encoder, rows, task="sts").metrics == of_path.metrics


WRONG = {
    "texts None": (lambda run: maskery.predict(run, None), "texts is None"),
    "texts number": (lambda run: maskery.predict(run, 3), "texts is 3 (int)"),
    "texts with None": (lambda run: maskery.predict(run, ["a", None]), "texts[1] is None"),
    "texts bytes": (lambda run: maskery.predict(run, [b"a"]), "texts[0] is b'a' (bytes)"),
    "pairs": (lambda run: maskery.predict(run, [("a", "b")]), "2 texts"),
    "empty": (lambda run: maskery.predict(run, []), "texts is an empty list"),
    "data None": (lambda run: maskery.evaluate(run, None), "data is None"),
    "another task": (lambda run: maskery.evaluate(run, "dev.tsv", task="pair"), "the model's task is classify"),
    "nowhere": (lambda run: maskery.predict(run.parent / "no", "a"), "no such folder"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(place, name):
    call, words = WRONG[name]
    with pytest.raises(MaskeryError) as caught:
        call(place / "one")
    assert words in caught.value.text()
    assert caught.value.repair


def test_a_task_of_choices_wants_a_file(place, tmp_path):
    train = examples_of("choice")
    run = maskery.finetune(place / "bert-one", train=train, out=tmp_path / "choice", settings=QUICK, say=quiet)
    with pytest.raises(MaskeryError, match="the task reads choices"):
        maskery.predict(run, "a text")
    assert len(maskery.predict(run, train, say=quiet).answers) == len(train)
