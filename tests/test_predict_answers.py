"""What `predict` reads from stdin and what it hands out: headers, the order of columns, texts, probabilities."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_task import examples_of, family_model, quiet

import maskery
from maskery.cli import main
from maskery.cli.task_answers import records
from maskery.errors import InputError
from maskery.tasks.examples import Example, Examples
from maskery.tasks.finetune import finetune
from maskery.tasks.model import TaskModel
from maskery.tasks.read.stdin import examples_of_lines
from maskery.tasks.read.turned import check_order
from maskery.tasks.settings import TaskConfig
from maskery.tasks.spans import find_answer, window_of
from maskery.tasks.tags import Tags


def task(kind, *fields, **more):
    return TaskConfig(task=kind, columns={"text": fields}, **more)


def texts_of(config, *lines, header="auto"):
    found = examples_of_lines(config, lines, header)
    return [each.texts for each in found], list(found.notes)


def test_a_first_line_with_the_names_of_the_columns_is_no_text():
    found, notes = texts_of(task("classify", "sentence"), "sentence", "a cat", "a mat")
    assert (found, notes) == ([("a cat",), ("a mat",)], ["stdin: the first line is a header (sentence)"])
    assert texts_of(task("classify", "sentence"), "sentence", "a cat", header="no")[0] == [("sentence",), ("a cat",)]


def test_a_usual_name_of_a_column_is_a_header_as_it_is_in_a_file():
    found, notes = texts_of(task("classify", "comment", labels=("a", "b")), "text", "a cat", "a mat")
    assert (found, "the first line is a header (it has 'text')" in notes[0]) == ([("a cat",), ("a mat",)], True)


def test_a_line_alone_is_a_text_and_other_first_lines_are_too():
    assert texts_of(task("classify", "text"), "text")[0] == [("text",)]
    assert texts_of(task("classify", "text"), "texts are long", "a cat") == ([("texts are long",), ("a cat",)], [])
    assert texts_of(task("classify", "text"), "a\tcat", "a mat")[0] == [("a\tcat",), ("a mat",)]


def test_a_header_finds_columns_in_any_order_and_leaves_others_out():
    pair = task("pair", "premise", "hypothesis")
    found, notes = texts_of(pair, "label\thypothesis\tpremise", "1\th one\tp one", "0\th two\tp two")
    assert found == [("p one", "h one"), ("p two", "h two")]
    assert notes == ["stdin: the first line is a header (premise, hypothesis); not read: label"]
    with pytest.raises(InputError, match=r"stdin:2: 2 columns, and the header has 3"):
        texts_of(pair, "label\thypothesis\tpremise", "h one\tp one")
    with pytest.raises(InputError, match=r"stdin:1: 1 texts, and the run reads premise, hypothesis"):
        texts_of(pair, "only one", "p\th")
    single, notes = texts_of(task("classify", "text"), "id\ttext", "7\ta cat")
    assert (single, notes[0].endswith("(text); not read: id")) == ([("a cat",)], True)


QA = task("qa", "context", "question")


def test_the_wrong_order_of_context_and_question_is_refused():
    right = "the cat sat on the mat\twho sat?"
    assert texts_of(QA, right) == ([("the cat sat on the mat", "who sat?")], [])
    with pytest.raises(InputError, match="1 of 1 rows have the question first: the order is context and question"):
        texts_of(QA, "who sat?\tthe cat sat on the mat")
    with pytest.raises(InputError, match="rows have the question first"):
        texts_of(QA, "谁坐在那里？\t猫坐在那张很旧的垫子上。", "谁？\t猫坐在那里。")
    named = texts_of(QA, "question\tcontext", "who sat?\tthe cat sat on the mat")[0]
    assert named == [("the cat sat on the mat", "who sat?")], "a header tells the order"
    _, notes = texts_of(QA, "a mat\twhere the cat sat down, say")
    assert notes == ["warning: 1 of 1 questions are longer than their context: the order is context and question"]
    few = Examples(task="pair", fields=("a", "b"), items=(Example(guid="0", texts=("who?", "a longer text")),))
    assert check_order(few, "stdin") is few, "other tasks have no such order"


@pytest.fixture(scope="module")
def place(tmp_path_factory, no_waiting_for_the_disk):
    """Runs: tag, chain (with a CRF), qa."""
    folder = tmp_path_factory.mktemp("answers")
    family_model(folder / "model", "bert")
    for name, kind, head in (("tag", "tag", {}), ("chain", "tag", {"crf": True}), ("qa", "qa", {})):
        settings = {"epochs": 30, "training": {"lr": 1e-2, "batch": 8}, "head": head}
        finetune(folder / "model", out=folder / name, train=examples_of(kind, 24), settings=settings, say=quiet)
    return folder


def handed_out(capsys, *arguments):
    assert main([*map(str, arguments)]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("name", ["tag", "chain", "qa"])
def test_table_json_and_python_agree(place, name, capsys, monkeypatch):
    examples = examples_of("qa" if name == "qa" else "tag", 8, 100)
    given = ["\t".join(each.texts) for each in examples]
    found = maskery.predict(place / name, [each.texts for each in examples], say=quiet)
    if name == "qa":
        expected = [[float(each)] for each in found.probabilities]
    else:
        expected = [list(each) for each in found.probabilities]
        assert [len(each) for each in expected] == [len(each) for each in found.answers]
    assert all(0 < chance <= 1 for each in expected for chance in each)
    assert any(expected)
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(given)))
    lines = [json.loads(line) for line in handed_out(capsys, "predict", place / name, "-", "--json")]
    for line, chances, example in zip(lines, expected, examples, strict=True):
        told = [line["probability"]] if name == "qa" else [span["probability"] for span in line["answer"]]
        assert told == pytest.approx(chances)
        assert list(line["texts"].values()) == list(example.texts)
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(given)))
    rows = [line.split("\t") for line in handed_out(capsys, "predict", place / name, "-")]
    assert rows[0] == ["guid", "answer", "probability", *examples.fields]
    for row, chances, example in zip(rows[1:], expected, examples, strict=True):
        assert row[2] == ",".join(f"{chance:.4f}" for chance in chances)
        assert row[3:] == list(example.texts)


def test_texts_are_left_out_if_asked(place, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("the cat x sat on"))
    header, _ = handed_out(capsys, "predict", place / "tag", "-", "--no-text")
    assert header == "guid\tanswer\tprobability"
    monkeypatch.setattr("sys.stdin", io.StringIO("the cat x sat on"))
    (line,) = handed_out(capsys, "predict", place / "tag", "-", "--no-text", "--json")
    assert "texts" not in json.loads(line)


def test_a_span_has_the_mean_probability_of_its_tags(place):
    """By hand, from the scores of the slots: of a row that is one window, softmax of each; with a CRF its marginals."""
    examples = examples_of("tag", 6, 50)
    for name in ("tag", "chain"):
        model = TaskModel.load(place / name)
        feed = model.feed(examples, quiet)
        scores, tags = model.scores(feed), Tags.of_names(model.config.labels)
        found = model.answers(feed)
        assert any(found.answers)
        for number in range(len(examples)):
            row = feed.rows[number]
            own = scores[feed.rows.start[number] : feed.rows.start[number + 1]]
            asked = np.flatnonzero(row.field == 0)
            shares = torch.softmax(torch.from_numpy(own[asked]).double(), 1)
            if name == "chain":
                shares = model.system.crf.marginals(torch.from_numpy(own[asked]), torch.tensor([len(asked)])).double()
            for span, chance in zip(found.answers[number], found.probabilities[number], strict=True):
                mine = [at for at, slot in enumerate(asked) if span.start <= row.offsets[slot][0] < span.stop]
                kind = tags.names.index(f"B-{span.kind}"), tags.names.index(f"I-{span.kind}")
                by_hand = [float(shares[at, kind[at != mine[0]]]) for at in mine]
                assert chance == pytest.approx(np.mean(by_hand), abs=1e-5)


def test_the_probability_of_no_answer_is_what_the_guesses_leave():
    window = window_of([(-1, -1), (0, 1), (2, 3)], "a b")
    found = find_answer("a b", [window], [[5.0, 0.0, 0.0]], [[5.0, 0.0, 0.0]], threshold=0.0)
    assert found.best is None
    assert found.probability == pytest.approx(np.exp(10) / (np.exp(10) + 3))
    sure = find_answer("a b", [window], [[0.0, 9.0, 0.0]], [[0.0, 9.0, 0.0]], threshold=0.0)
    assert (sure.best.text, sure.probability) == ("a", pytest.approx(1, abs=1e-3))
    nothing = find_answer("", [window_of([(-1, -1)], "")], [[0.0]], [[0.0]])
    assert np.isnan(nothing.probability)


def test_questions_without_readable_context_have_no_probability(place):
    items = (Example(guid="0", texts=("", "x?"), answers=()), Example(guid="1", texts=("the cat", "x?")))
    found = maskery.predict(place / "qa", replace(examples_of("qa", 2), items=items), say=quiet)
    assert np.isnan(found.probabilities).tolist() == [True, False]
    assert [
        "probability" in each for each in records(Examples(task="qa", fields=QA.columns.text, items=items), found, ())
    ] == [False, True]
