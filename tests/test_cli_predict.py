"""`maskery predict` and `maskery evaluate`: answers of one run and of several, figures, what is refused."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import pytest
from networks import model_of
from small_task import of_two_classes, write_tsv

from maskery.cli import main
from maskery.cli.evaluate import plain
from maskery.cli.task_answers import json_lines, records, tsv
from maskery.tasks.examples import Example, Examples, Span
from maskery.tasks.finetune import finetune
from maskery.tasks.judge.measure import Judgement
from maskery.tasks.questions import Predicted
from maskery.tasks.settings import TaskConfig
from maskery.tasks.together import averaged

QUICK = {"epochs": 1, "training": {"lr": 3e-3, "batch": 8}}


def quiet(_text):
    pass


@pytest.fixture(scope="module")
def place(tmp_path_factory, no_waiting_for_the_disk):
    """Runs: one, other (another family), strange (other labels), scores (another task)."""
    folder = tmp_path_factory.mktemp("predict")
    model_of(pooler=True).save(folder / "bert")
    model_of(seed=1, segments=0).save(folder / "distilbert")
    train = write_tsv(folder / "train.tsv", of_two_classes(0, 24))
    write_tsv(folder / "dev.tsv", of_two_classes(100, 12))
    write_tsv(folder / "test.tsv", ([text] for _, text in of_two_classes(200, 3)), "text\n")
    odd = write_tsv(
        folder / "odd.tsv",
        [("animal" if label == "animal" else "ghost", text) for label, text in of_two_classes(0, 24)],
    )
    scores = write_tsv(
        folder / "scores.tsv", [(f"{at / 7:.2f}", text) for at, (_, text) in enumerate(of_two_classes(0, 24))]
    )
    dev = folder / "dev.tsv"
    finetune(folder / "bert", train=train, dev=dev, out=folder / "one", settings=QUICK, say=quiet)
    finetune(folder / "distilbert", train=train, out=folder / "other", settings=QUICK, say=quiet)
    finetune(folder / "bert", train=odd, out=folder / "strange", settings=QUICK, say=quiet)
    finetune(folder / "bert", train=scores, task="regress", out=folder / "scores", settings=QUICK, say=quiet)
    return folder


@pytest.fixture
def run(place, capsys, monkeypatch):
    monkeypatch.chdir(place)

    def call(*arguments):
        code = main([*map(str, arguments)])
        output = capsys.readouterr()
        return code, output.out, output.err

    return call


def answers_of(run, *paths):
    code, printed, _ = run("predict", *paths, "--json")
    assert code == 0
    return [json.loads(line) for line in printed.splitlines()]


def test_answers_as_a_table_and_as_json(run):
    code, printed, told = run("predict", "one", "test.tsv")
    rows = [line.split("\t") for line in printed.splitlines()]
    assert code == 0
    assert rows[0] == ["guid", "answer", "probability", "text"]
    assert [row[0] for row in rows[1:]] == ["test-1", "test-2", "test-3"]
    assert "test.tsv: texts as in the training data" in told
    found = answers_of(run, "one", "test.tsv")
    assert [each["line"] for each in found] == [2, 3, 4]
    for row, each in zip(rows[1:], found, strict=True):
        assert row[1:] == [each["answer"], f"{each['probability']:.4f}", each["texts"]["text"]]
        assert each["probability"] == max(each["probabilities"].values())
        assert sum(each["probabilities"].values()) == pytest.approx(1)


def test_several_runs_are_averaged_whatever_their_family(run):
    both = answers_of(run, "one", "other", "test.tsv")
    parts = zip(answers_of(run, "one", "test.tsv"), answers_of(run, "other", "test.tsv"), strict=True)
    for found, (one, other) in zip(both, parts, strict=True):
        for name in ("animal", "thing"):
            mean = (one["probabilities"][name] + other["probabilities"][name]) / 2
            assert found["probabilities"][name] == pytest.approx(mean)


def test_labels_in_another_order_are_put_in_order():
    first, second = (TaskConfig(task="classify", labels=tuple(names)) for names in ("ab", "ba"))
    one = Predicted(answers=["a", "b"], probabilities=np.array([[0.9, 0.1], [0.4, 0.6]]))
    other = Predicted(answers=["b", "b"], probabilities=np.array([[0.6, 0.4], [0.7, 0.3]]))
    found = averaged([(first, one), (second, other)])
    assert found.answers == ["a", "b"]
    assert found.probabilities == pytest.approx(np.array([[0.65, 0.35], [0.35, 0.65]]))
    sets = TaskConfig(task="multilabel", labels=("a", "b"))
    assert averaged([(sets, one), (sets, other)]).answers == [frozenset("a"), frozenset("a")]
    scores = TaskConfig(task="regress")
    assert averaged([(scores, Predicted(answers=[1.0, 3.0])), (scores, Predicted(answers=[2.0, 5.0]))]).answers == [
        1.5,
        4,
    ]


def test_texts_from_stdin(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("a cat\n\nthe mat\n"))
    code, printed, told = run("predict", "one", "-")
    assert (code, [line.split("\t")[0] for line in printed.splitlines()]) == (0, ["guid", "line-1", "line-3"])
    assert "1 empty line left out" in told


def test_spans_are_places_in_the_text_as_it_stands(run, place):
    """Text that nobody tagged is not parted at its spaces: two of them stay two."""
    told = [{"text": f"a  b {word} 北京。", "entities": [{"start": 7, "end": 9, "label": "LOC"}]} for word in "cdef"]
    (place / "spans.jsonl").write_text("".join(json.dumps(each) + "\n" for each in told), "utf-8")
    (place / "plain.jsonl").write_text("".join(json.dumps({"text": each["text"]}) + "\n" for each in told), "utf-8")
    settings = {"epochs": 60, "training": {"lr": 1e-2, "batch": 4}}
    finetune(place / "bert", train=place / "spans.jsonl", out=place / "tags", settings=settings, say=quiet)
    wanted = [{"kind": "LOC", "start": 7, "stop": 9, "text": "北京"}]
    for file in ("spans.jsonl", "plain.jsonl"):
        found = [each["answer"] for each in answers_of(run, "tags", file)]
        assert all(0.5 < span.pop("probability") <= 1 for spans in found for span in spans)
        assert found == [wanted] * 4
    assert run("evaluate", "tags", "--data", "spans.jsonl")[0] == 0


def test_the_number_of_a_label_column_is_not_asked_of_files_without_labels(run, place):
    rows = [(f"{text} .", "the cat sat", label) for label, text in of_two_classes(0, 16)]
    train = write_tsv(place / "pairs.tsv", rows)
    write_tsv(place / "unlabelled.tsv", (row[:2] for row in rows))
    settings = {**QUICK, "columns": {"text": ["1", "2"], "label": "3"}}
    finetune(place / "bert", train=train, task="pair", out=place / "pairs", settings=settings, say=quiet)
    assert len(answers_of(run, "pairs", "unlabelled.tsv")) == 16
    assert run("evaluate", "pairs", "--data", "pairs.tsv")[0] == 0


def test_into_a_file(run, place):
    code, printed, told = run("predict", "scores", "test.tsv", "--out", "answers.tsv")
    assert (code, printed, "written: answers.tsv (3 answers)" in told) == (0, "", True)
    rows = [line.split("\t") for line in (place / "answers.tsv").read_text().splitlines()]
    assert all(math.isfinite(float(row[1])) and row[2] == "" for row in rows[1:])


REFUSED = {
    "one path": (("predict", "one"), "maskery predict RUN FILE"),
    "no run": (("predict", "nowhere", "test.tsv"), "nowhere: there is no such run"),
    "file first": (("predict", "test.tsv", "one"), "runs come first"),
    "no task": (("predict", "bert", "test.tsv"), "bert: has no task.toml"),
    "no file": (("predict", "one", "nowhere.tsv"), "nowhere.tsv: no such file"),
    "labels": (("predict", "one", "strange", "test.tsv"), "it lacks thing; it has besides ghost"),
    "tasks": (("predict", "one", "scores", "test.tsv"), "scores: its task is regress, that of one is classify"),
    "columns of stdin": (("predict", "one", "-", "--text", "a"), "stdin has texts and no columns"),
    "header": (("predict", "one", "test.tsv", "--header", "maybe"), "--header: Input should be 'auto', 'yes' or 'no'"),
    "no data": (("evaluate", "one"), "Missing option '--data'"),
    "another task": (("evaluate", "one", "--data", "dev.tsv", "--task", "pair"), "one: its task is classify, not pair"),
    "unknown task": (("evaluate", "one", "--data", "dev.tsv", "--task", "pear"), "did you mean pair"),
    "no labels": (("evaluate", "one", "--data", "test.tsv"), "test.tsv: no column looks like a label"),
    "unknown label": (("evaluate", "one", "--data", "odd.tsv"), "odd.tsv:2: the label 'ghost' is not one of those"),
    "empty folder": (("evaluate", "one", "--data", "bert"), "there is no dev file and no test file"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused(case, run):
    arguments, told = REFUSED[case]
    code, printed, error = run(*arguments)
    assert (code, printed) == (2, "")
    assert told in error


def test_figures_with_intervals(run, place):
    code, printed, _ = run("evaluate", "one", "--data", "dev.tsv", "--json")
    found = json.loads(printed)
    assert (code, found["n"], found["task"]) == (0, 12, "classify")
    assert {"accuracy", "macro_f1"} <= set(found)
    low, high = found["intervals"]["accuracy"]
    assert low <= found["accuracy"] <= high
    said = [json.loads(line)["answer"] for line in run("predict", "one", "dev.tsv", "--json")[1].splitlines()]
    right = [label for label, _ in of_two_classes(100, 12)]
    assert found["accuracy"] == pytest.approx(np.mean([one == other for one, other in zip(said, right, strict=True)]))
    code, printed, _ = run("evaluate", "one", "--data", place, "--html", "page.html")
    assert (code, "accuracy" in printed, "12 examples" in printed) == (0, True, True)
    assert "<html" in (place / "page.html").read_text("utf-8")


def test_a_figure_that_cannot_be_told_is_null():
    found = plain(Judgement(task="classify", n=1, metrics={"auc": math.nan}, intervals={"auc": (math.nan, 1.0)}))
    assert (found["auc"], found["intervals"]) == (None, {"auc": [None, 1.0]})


def test_every_kind_of_answer_has_its_line():
    def told(task, answer, chances=None, labels=(), **example):
        items = (Example(guid="t\t0", texts=("北京 x",), **example),)
        found = Predicted(answers=[answer], probabilities=None if chances is None else np.array([chances]))
        made = records(Examples(task=task, fields=("text",), items=items), found, labels)
        assert json.loads(json_lines(made)) == made[0]
        return tsv(made).splitlines()[1].split("\t")

    assert told("multilabel", frozenset("ab"), [0.9, 0.6, 0.1], "bac") == ["t\\t0", "b,a", "0.9000,0.6000"]
    assert told("multilabel", frozenset(), [0.1, 0.2], "ab")[1:] == ["", ""]
    assert told("choice", "1", [0.25, 0.75, 0.0], choices=("x", "y"))[1:] == ["1", "0.7500"]
    assert told("tag", (Span(0, 2, "LOC"),))[1:] == ["LOC 0-2 北京", ""]
    assert told("qa", "two\nlines")[1:] == ["two\\nlines", ""]
    assert told("rank", 0.125)[1:] == ["0.125", ""]
